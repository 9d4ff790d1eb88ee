/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For run/follow*.c only: follow.c (START HERE: what happens to processes), follow_judge.c (is it Python, and
 * wanted), follow_find.c (what is there already; what starts, without BPF), follow_look.c (what may have
 * become Python without an exec), follow_scope.c (who is in a cgroup), follow_end.c (ends, and the CPU time
 * up to them).
 */
#pragma once

#include "run/follow.h"

#define RETRIES_QUICK  10 /* soon one after the other, for what has just started */
#define RETRY_FIRST_NS 5000000ull /* after an exec */
#define STARTING_NS    2000000ull /* between looks at one that is starting */

/* --- follow.c --- */

/*
 * When a pass is to be made again that began when we had used so much CPU time: not at once, if it was long.
 * By the wall clock it is long, too, when a target has the CPU.
 */
uint64_t follow_next_pass(uint64_t began_cpu_ns, uint64_t pause_ns);
void follow_note_error(struct follower *follower, int err);
/* There was no room for one. The next pass meets it again. */
void follow_note_beyond(struct follower *follower);
/* Are there to be more processes than were asked for? */
bool follow_finds(const struct follower *follower);
bool follow_is_tracked(const struct follower *follower, pid_t pid);
/*
 * One more. `epoch`: as the kernel side, which samples it already, was told of it; 0: it was found by us.
 * `is_new`: it has just begun.
 */
void follow_add(struct follower *follower, pid_t pid, struct process *parent, uint32_t epoch, bool is_new);
/* When to look again whether it is Python. */
void follow_retry_at(struct follower *follower, struct process *process, uint64_t when);

/* --- follow_judge.c --- */

/* It is no Python (now), and it is for us to find out when it is one. */
bool follow_wants_python(const struct process *process);
/* Looks at those that are due. */
void follow_judge_due(struct follower *follower, uint64_t now);
/* What is to come of one that was just looked at. `was_python`: before that; `reason`: why it is none. */
void follow_judge(struct follower *follower, struct process *process, bool was_python, const char *reason);
/*
 * By what it is now; after an exec it is asked again. 1, 0, or -errno: it is not known, as of one that has
 * ended.
 */
int follow_is_wanted(const struct follower *follower, const struct process *process);

/* --- follow_find.c --- */

/* Without BPF nobody tells of execs, */
void follow_look_for_execs(struct follower *follower);
/* nor of new processes, but numbers have been given out. */
void follow_look_for_new(struct follower *follower);
/* A process has ended: its number may be given out again, which would be no new one. */
void follow_number_is_free(struct follower *follower, pid_t pid);

/* --- follow_look.c --- */

/*
 * Looks at processes that a pass over everything has found, or that have called exec, until that time. Those
 * that are no Python are not followed: they may be tens of thousands.
 */
void follow_look_at_strangers(struct follower *follower, uint64_t until_ns);
/* Tells the engine of one that it is not to sample yet, whatever is known of its target. 0 or -errno. */
int follow_add_unattached(struct follower *follower, struct process *process);
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
