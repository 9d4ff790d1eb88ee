/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For run/waits*.c only: waits.c takes what the kernel side tells of waits, waits_asleep.c finds and reads
 * those that it has not seen begin, or has not walked.
 */
#pragma once

#include "run/waits.h"

/* Times of ours, by the clock of the records. */
uint64_t waits_kernel_ns(const struct waits *waits, uint64_t now);

/* That wait of a thread, if it is open; NULL. Lent until the next one is opened or closed. */
struct open_wait *waits_find_open(const struct waits *waits, pid_t tid, uint64_t out_ns);
/* ... in any case; one of its thread that is over may have been in its place. NULL: out of memory. */
struct open_wait *waits_keep_open(struct waits *waits, pid_t tid, uint64_t out_ns);

/*
 * When a thread that is ready to run has come back without that being told of: by its CPU time since, as
 * end_unseen() of the kernel side finds it. 0: it has not, as far as is known.
 */
uint64_t waits_came_back(pid_t tid, const struct pbp_off_thread *thread, uint64_t now);
