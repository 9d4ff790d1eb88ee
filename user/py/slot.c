/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The facts about glibc used here: fsbase points to struct pthread (its header is the TCB), so pthread_self()
 * == fsbase; at +8 is the dtv, an array of {pointer, to_free} indexed by TLS module; at +0x310 are 32 {seq,
 * data} of pthread keys, and at +0x510 pointers to further blocks of 32 (nptl/descr.h; the same in 2.36
 * and 2.43). A mistake in any of them, or another libc, fails the check on the live threads and costs a list
 * walk, nothing else.
 */
#include "py/slot.h"

#include "base/util.h"
#include "py/slot_code.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define TCB_DTV		   8
#define DTV_ENTRY_BYTES	   16
#define PTHREAD_KEYS	   0x310 /* struct pthread.specific_1stblock */
#define PTHREAD_KEY_BLOCKS 0x510 /* struct pthread.specific */
#define KEY_BYTES	   16
#define KEY_DATA	   8
#define KEYS_PER_BLOCK	   32
#define MAX_KEYS	   1024 /* PTHREAD_KEYS_MAX */
#define MAX_MODULES	   65536
#define MAX_TLS_OFFSET	   (1 << 30)
#define MAX_CHECKED	   64 /* threads */

/* Exported, takes no argument, returns _Py_tss_gilstate and nothing else (Python/pystate.c, 3.15). */
#define ACCESSOR "PyGILState_GetThisThreadState"

struct slot {
	uint32_t kind; /* PBP_SLOT_* */
	int64_t offset;
	uint64_t offset2;
	uint64_t module;
};

struct search {
	struct remote *remote;
	struct py_runtime *runtime;
	const struct py_thread *threads;
	size_t count;
	char *how;
	size_t how_size;
};

/* ---- the pthread key, up to 3.14 ---- */

static int find_key(struct search *search, struct slot *slot)
{
	struct {
		int32_t is_initialized;
		uint32_t key;
	} tss; /* Py_tss_t, Include/pythread.h */
	int err = remote__read(search->remote,
			       search->runtime->addr + search->runtime->offsets.runtime_auto_tss_key, &tss,
			       sizeof(tss));

	if (err)
		return err;
	if (tss.is_initialized != 1 || tss.key >= MAX_KEYS)
		return -ENOENT;
	if (tss.key < KEYS_PER_BLOCK) {
		*slot = (struct slot){.kind = PBP_SLOT_FSBASE,
				      .offset = PTHREAD_KEYS + tss.key * KEY_BYTES + KEY_DATA};
	} else {
		*slot = (struct slot){.kind = PBP_SLOT_KEY2,
				      .offset = PTHREAD_KEY_BLOCKS + tss.key / KEYS_PER_BLOCK * 8,
				      .offset2 = tss.key % KEYS_PER_BLOCK * KEY_BYTES + KEY_DATA};
	}
	snprintf(search->how, search->how_size, "pthread key %u", tss.key);
	return 0;
}

/* ---- the thread-local variable, from 3.15 on ---- */

/*
 * The block of a TLS module in one thread. `is_static`: it was laid out at program start (or in its surplus),
 * at the same distance from fsbase in every thread; else it was allocated, and glibc keeps a pointer to free
 * it.
 */
static int read_dtv(struct search *search, uint64_t fsbase, uint64_t module, uint64_t *block, bool *is_static)
{
	uint64_t dtv, entry[2];
	int err = remote__read(search->remote, fsbase + TCB_DTV, &dtv, sizeof(dtv));

	if (!err)
		err = remote__read(search->remote, dtv + module * DTV_ENTRY_BYTES, entry, sizeof(entry));
	if (err)
		return err;
	if (!entry[0] || entry[0] == UINT64_MAX) /* TLS_DTV_UNALLOCATED */
		return -ENOENT;
	*block = entry[0];
	*is_static = !entry[1];
	return 0;
}

/* Is the module's block static in all threads that have one? Then *distance is block - fsbase. */
static bool has_static_block(struct search *search, uint64_t module, int64_t *distance)
{
	size_t seen = 0;

	for (size_t i = 0; i < search->count && i < MAX_CHECKED; i++) {
		uint64_t fsbase = search->threads[i].thread_id, block;
		bool is_static;

		if (!fsbase || read_dtv(search, fsbase, module, &block, &is_static))
			continue;
		if (!is_static || (seen && (int64_t)(block - fsbase) != *distance))
			return false;
		*distance = block - fsbase;
		seen++;
	}
	return seen > 0;
}

static int use_module(struct search *search, struct slot *slot, uint64_t tls_index, int64_t offset)
{
	uint64_t index[2]; /* tls_index: {module, offset} */
	int64_t distance = 0;
	int err = remote__read(search->remote, tls_index, index, sizeof(index));

	if (err)
		return err;
	if (!index[0] || index[0] >= MAX_MODULES || index[1] >= MAX_TLS_OFFSET)
		return -EINVAL;
	offset += index[1];
	if (has_static_block(search, index[0], &distance) && distance < 0 && distance > -MAX_TLS_OFFSET)
		*slot = (struct slot){.kind = PBP_SLOT_FSBASE, .offset = distance + offset};
	else
		*slot = (struct slot){.kind = PBP_SLOT_DTV, .offset = offset, .module = index[0]};
	return 0;
}

/*
 * A TLS descriptor's argument is the offset from fsbase, or points to a tls_index
 * (sysdeps/x86_64/dl-tlsdesc.h).
 */
static int use_descriptor(struct search *search, struct slot *slot, uint64_t descriptor, int64_t offset)
{
	int64_t argument;
	int err = remote__read(search->remote, descriptor + 8, &argument, sizeof(argument));

	if (err)
		return err;
	if (argument > 0)
		return use_module(search, slot, argument, offset);
	if (argument < -MAX_TLS_OFFSET)
		return -EINVAL;
	*slot = (struct slot){.kind = PBP_SLOT_FSBASE, .offset = argument + offset};
	return 0;
}

static int use_got(struct search *search, struct slot *slot, uint64_t got, int64_t offset)
{
	int64_t distance;
	int err = remote__read(search->remote, got, &distance, sizeof(distance));

	if (err)
		return err;
	if (distance >= 0 || distance < -MAX_TLS_OFFSET)
		return -EINVAL;
	*slot = (struct slot){.kind = PBP_SLOT_FSBASE, .offset = distance + offset};
	return 0;
}

static int find_variable(struct search *search, struct slot *slot)
{
	uint8_t bytes[SLOT_CODE_MAX];
	struct remote_segment segment = {.dest = bytes, .len = sizeof(bytes)};
	struct slot_code code;
	int err = py_runtime__symbol(search->runtime, ACCESSOR, &segment.addr);

	if (!err)
		err = remote__read_batch(search->remote, &segment, 1);
	if (!err)
		err = slot_code__decode(&code, bytes, segment.got, segment.addr);
	if (err)
		return err;
	snprintf(search->how, search->how_size, "thread-local variable");
	switch (code.kind) {
	case SLOT_CODE_LOCAL_EXEC:
		*slot = (struct slot){.kind = PBP_SLOT_FSBASE, .offset = code.offset};
		return 0;
	case SLOT_CODE_INITIAL_EXEC:
		return use_got(search, slot, code.got, code.offset);
	case SLOT_CODE_DYNAMIC:
		return use_module(search, slot, code.got, code.offset);
	case SLOT_CODE_DESCRIPTOR:
		return use_descriptor(search, slot, code.got, code.offset);
	}
	return -EINVAL;
}

/* ---- the check ---- */

/* What the BPF program would read (bpf/tstate.bpf.h, read_slot). */
static int read_slot(struct search *search, const struct slot *slot, uint64_t fsbase, uint64_t *value)
{
	uint64_t block;
	bool is_static;
	int err;

	switch (slot->kind) {
	case PBP_SLOT_FSBASE:
		return remote__read(search->remote, fsbase + slot->offset, value, 8);
	case PBP_SLOT_KEY2:
		err = remote__read(search->remote, fsbase + slot->offset, &block, 8);
		if (!err && !block)
			*value = 0;
		return err || !block ? err : remote__read(search->remote, block + slot->offset2, value, 8);
	case PBP_SLOT_DTV:
		err = read_dtv(search, fsbase, slot->module, &block, &is_static);
		return err ?: remote__read(search->remote, block + slot->offset, value, 8);
	}
	return -EINVAL;
}

/* Does the slot of the thread at fsbase hold a thread state of that thread? 1 yes, 0 it is empty, -1 no. */
static int check_thread(struct search *search, const struct slot *slot, uint64_t fsbase)
{
	uint64_t tstate, owner;

	if (read_slot(search, slot, fsbase, &tstate))
		return -1;
	if (!tstate)
		return 0;
	for (size_t i = 0; i < search->count; i++) {
		if (search->threads[i].tstate == tstate)
			return search->threads[i].thread_id == fsbase ? 1 : -1;
	}
	/* Not listed: new since. */
	if (remote__read(search->remote, tstate + search->runtime->offsets.thread_thread_id, &owner, 8))
		return -1;
	return owner == fsbase ? 1 : -1;
}

/*
 * A thread that ends meanwhile may give a wrong answer, so a few are forgiven. Number of right answers, 0 =
 * refused.
 */
static size_t check(struct search *search, const struct slot *slot)
{
	size_t right = 0, empty = 0, wrong = 0;

	for (size_t i = 0; i < search->count && right + empty + wrong < MAX_CHECKED; i++) {
		uint64_t fsbase = search->threads[i].thread_id;
		int answer;

		if (!fsbase) /* made by PyThreadState_New, not run by a thread yet */
			continue;
		answer = check_thread(search, slot, fsbase);
		right += answer > 0;
		empty += answer == 0;
		wrong += answer < 0;
	}
	return wrong * 4 <= right && empty <= right ? right : 0;
}

static void describe(struct search *search, const struct slot *slot, size_t checked)
{
	size_t len = strlen(search->how);
	char *end = search->how + len;
	size_t room = search->how_size - len;

	switch (slot->kind) {
	case PBP_SLOT_FSBASE:
		len = snprintf(end, room, " at fsbase%+" PRId64, slot->offset);
		break;
	case PBP_SLOT_KEY2:
		len = snprintf(end, room, " behind fsbase%+" PRId64, slot->offset);
		break;
	case PBP_SLOT_DTV:
		len = snprintf(end, room, " in TLS module %" PRIu64 " at %+" PRId64, slot->module,
			       slot->offset);
		break;
	}
	if (len < room)
		snprintf(end + len, room - len, " (right for %zu thread%s)", checked, plural(checked));
}

bool py_slot__find(struct pbp_target *layout, char *how, size_t how_size, struct remote *remote,
		   struct py_runtime *runtime, const struct py_thread *threads, size_t count)
{
	struct search search = {remote, runtime, threads, count, how, how_size};
	struct slot slot = {.kind = PBP_SLOT_NONE};
	size_t checked = 0;
	int err;

	snprintf(how, how_size, "%s", "");
	if (runtime->offsets.runtime_auto_tss_key != PY_ABSENT)
		err = find_key(&search, &slot);
	else
		err = find_variable(&search, &slot);
	if (!err)
		checked = check(&search, &slot);
	if (!checked) {
		slot = (struct slot){.kind = PBP_SLOT_NONE};
		snprintf(how, how_size, "list of thread states (%s)",
			 err ? "no slot of a thread's own is known" : "the slot found gave wrong answers");
	} else {
		describe(&search, &slot, checked);
	}
	layout->slot_kind = slot.kind;
	layout->slot_offset = slot.offset;
	layout->slot_offset2 = slot.offset2;
	layout->slot_module = slot.module;
	return checked > 0;
}
