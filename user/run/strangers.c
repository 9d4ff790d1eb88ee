/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See strangers.h. What is known of one that has ended stays until the memory is full, or a pass meets it;
 * one that has its pid then has, as a rule, other code.
 */
#include "run/strangers.h"

#include "base/util.h"
#include "os/proc.h"

#define KNOWN_MAX 32768
#define DUE_MAX	  4096
#define SECOND	  1000000000ull
#define SHARE	  100 /* a pass takes one part in this many of a CPU at most */
#define LOOK_COST 40000 /* ns */
#define LOOKS	  16	/* of one call */

#define AGAIN_NS 5000000ull /* from the first look to the second, doubling from then on */
#define TURNS	 6

/* --- those that have called exec --- */

void strangers__watch(struct strangers *strangers, pid_t pid, uint64_t due_ns)
{
	strangers__forget(strangers, pid);
	if (strangers->due.len < DUE_MAX)
		vec__push(&strangers->due, ((struct stranger_turn){.pid = pid, .due_ns = due_ns}));
}

pid_t strangers__next_due(struct strangers *strangers, uint64_t now)
{
	for (size_t i = 0; i < strangers->due.len; i++) {
		struct stranger_turn *turn = &strangers->due.items[i];
		pid_t pid = turn->pid;

		if (now < turn->due_ns)
			continue;
		turn->due_ns = now + (AGAIN_NS << turn->looks);
		if (++turn->looks == TURNS)
			*turn = strangers->due.items[--strangers->due.len];
		return pid;
	}
	return 0;
}

uint64_t strangers__due_ns(const struct strangers *strangers)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < strangers->due.len; i++)
		first = min_u64(first, strangers->due.items[i].due_ns);
	return first;
}

void strangers__forget(struct strangers *strangers, pid_t pid)
{
	hmap__del(&strangers->code, pid);
	for (size_t i = 0; i < strangers->due.len; i++)
		if (strangers->due.items[i].pid == pid)
			strangers->due.items[i--] = strangers->due.items[--strangers->due.len];
}

/* --- those that are no Python --- */

static void note(struct strangers *strangers, pid_t pid, uint64_t code)
{
	if (strangers->code.len >= KNOWN_MAX)
		hmap__clear(&strangers->code);
	hmap__set(&strangers->code, pid, code);
}

void strangers__add(struct strangers *strangers, pid_t pid)
{
	note(strangers, pid, 0);
}

/* The same number as long as it runs the same program, with the same code. */
static int code_of(pid_t pid, uint64_t *out)
{
	uint64_t program = 0, bytes;
	int err = proc__code_bytes(pid, &bytes);

	/* Another user's program is not told. */
	if (!err)
		proc__exec_id(pid, &program);
	*out = err ? 0 : hmap_mix(bytes) ^ program;
	return err;
}

bool strangers__has_changed(struct strangers *strangers, pid_t pid)
{
	uint64_t *known = hmap__get(&strangers->code, pid), code;

	if (code_of(pid, &code)) {
		strangers__forget(strangers, pid);
		return false;
	}
	if (known && *known == code)
		return false;
	note(strangers, pid, code);
	return true;
}

static void begin_pass(struct strangers *strangers, uint64_t now)
{
	const struct hmap_slot *slot;
	size_t iter = 0;

	if (now < strangers->next_ns)
		return;
	strangers->next_ns = now + max_u64(SECOND, strangers->code.len * LOOK_COST * SHARE);
	while ((slot = hmap__next(&strangers->code, &iter)))
		if (vec__push(&strangers->pass, (pid_t)slot->key))
			return;
}

pid_t strangers__next_changed(struct strangers *strangers, uint64_t now)
{
	if (!strangers->pass.len)
		begin_pass(strangers, now);
	for (int i = 0; i < LOOKS && strangers->pass.len; i++) {
		pid_t pid = strangers->pass.items[--strangers->pass.len];

		if (strangers__has_changed(strangers, pid))
			return pid;
	}
	return 0;
}

void strangers__free(struct strangers *strangers)
{
	hmap__free(&strangers->code);
	vec__free(&strangers->due);
	vec__free(&strangers->pass);
}
