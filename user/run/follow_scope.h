/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside of following: processes by their cgroup (follow_scope.c).
 */
#pragma once

#include "run/follow.h"

/* All that is in the cgroups now, and nothing that is not. */
void follow_scope__scan(struct follower *follower);
/* The process may be in another cgroup than before. */
void follow_scope__look(struct follower *follower, pid_t pid);
/* Without BPF: whatever is due. */
void follow_scope__poll(struct follower *follower, uint64_t now);

/* follow.c: a process that was there before, if it is not known yet. */
void follower__add_found(struct follower *follower, pid_t pid);
