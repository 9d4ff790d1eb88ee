/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See strangers.h. Those that have ended are found out by a pass; one that has the pid of another has, as a rule, other
 * code, too.
 */
#include "run/strangers.h"

#include "base/util.h"
#include "os/proc.h"

#define MAX	  32768
#define SECOND	  1000000000ull
#define SHARE	  100 /* a pass takes one part in this many of a CPU at most */
#define LOOK_COST 30000 /* ns */
#define LOOKS	  16	/* of one call */

void strangers__add(struct strangers *strangers, pid_t pid, uint64_t code_bytes)
{
	if (strangers->code_bytes.len < MAX)
		hmap__set(&strangers->code_bytes, pid, code_bytes);
}

static void begin_pass(struct strangers *strangers, uint64_t now)
{
	const struct hmap_slot *slot;
	size_t iter = 0;

	if (now < strangers->next_ns)
		return;
	strangers->next_ns = now + max_u64(SECOND, strangers->code_bytes.len * LOOK_COST * SHARE);
	while ((slot = hmap__next(&strangers->code_bytes, &iter)))
		if (vec__push(&strangers->pass, (pid_t)slot->key))
			return;
}

pid_t strangers__next(struct strangers *strangers, uint64_t now)
{
	if (!strangers->pass.len)
		begin_pass(strangers, now);
	for (int i = 0; i < LOOKS && strangers->pass.len; i++) {
		pid_t pid = strangers->pass.items[--strangers->pass.len];
		uint64_t *known = hmap__get(&strangers->code_bytes, pid), bytes;

		if (proc__code_bytes(pid, &bytes)) {
			hmap__del(&strangers->code_bytes, pid);
		} else if (known && *known != bytes) {
			*known = bytes;
			return pid;
		}
	}
	return 0;
}

void strangers__free(struct strangers *strangers)
{
	hmap__free(&strangers->code_bytes);
	vec__free(&strangers->pass);
}
