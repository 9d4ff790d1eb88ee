/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For run/follow*.c only: follow.c (START HERE), follow_look.c (what may have become Python without an exec), follow_end.c
 * (ends, and the CPU time up to them), follow_scope.c (who is in a cgroup).
 */
#pragma once

#include "run/follow.h"

#define RETRIES_QUICK 10 /* soon one after the other, for what has just started */

/* --- follow.c --- */

uint64_t follow_now_ns(void);
/* It is no Python (now), and it is for us to find out when it is one. */
bool follow_wants_python(const struct process *process);
/* When to look again whether it is. */
void follow_retry_at(struct follower *follower, struct process *process, uint64_t when);
/* What is to come of one that was just looked at. `was_python`: before that; `reason`: why it is none. */
void follow_judge(struct follower *follower, struct process *process, bool was_python, const char *reason);
/* By what it is now; after an exec it is asked again. */
bool follow_is_wanted(const struct follower *follower, const struct process *process);

/* --- follow_look.c --- */

/*
 * Looks at processes that a pass over everything has found, or that have called exec, until that time. Those that are no
 * Python are not followed: they may be tens of thousands.
 */
void follow_look_at_strangers(struct follower *follower, uint64_t until_ns);
/* It has loaded something. */
void follow_look(struct follower *follower, pid_t pid);
/* Without a kernel side that tells: one that has, if there is any. */
void follow_look_at_changed(struct follower *follower, uint64_t now);
/* One that nobody follows has called exec, and everything is wanted. */
void follow_watch(struct follower *follower, pid_t pid);
/* Has it, since it was found to be no Python? A look takes much longer than this. */
bool follow_has_new_code(struct process *process);

/* --- follow_end.c --- */

/* The kernel side saw its end, or that it was reaped, and knows what it used up to then. */
void follow_take_end(struct follower *follower, struct process *process, const struct pbp_process *record);
/* Ends of those without a pidfd, which may not have been told. */
void follow_look_for_ends(struct follower *follower);
/* Forgets those that ended before that time. */
void follow_sweep(struct follower *follower, uint64_t before_ns);

/* --- follow_scope.c --- */

/* All that is in the cgroups now, and nothing that is not. */
void follow_scope_scan(struct follower *follower);
/* The process may be in another cgroup than before. */
void follow_scope_look(struct follower *follower, pid_t pid);
/* Without BPF: whatever is due. */
void follow_scope_poll(struct follower *follower, uint64_t now);
