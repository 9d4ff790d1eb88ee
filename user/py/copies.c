/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * co_tlbc points to a _PyCodeArray {Py_ssize_t size; char *entries[]} (Include/cpython/code.h), in which a
 * thread's number (tlbc_index) is that of its copy, or of NULL. A longer array replaces one that is too
 * short, so what was read counts only if co_tlbc has not changed meanwhile.
 */
#include "py/copies.h"

#include "base/hmap.h"
#include "base/util.h"

#include <errno.h>

#define FIRST_ENTRIES	 31 /* read at once */
#define ENTRIES_MAX	 16384
#define TRIES		 3
#define INTERPRETERS_MAX 64

struct array {
	uint64_t size;
	py_addr entries[FIRST_ENTRIES];
};

static int add_entries(struct py_copies *copies, const py_addr *entries, size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		if (entries[i])
			err = vec__push(&copies->starts, entries[i]);
	return err;
}

/* The entries that were not read at once. */
static int read_rest(struct py_copies *copies, struct remote *remote, py_addr array, uint64_t size)
{
	py_addr entries[FIRST_ENTRIES];
	int err = 0;

	for (uint64_t i = FIRST_ENTRIES; i < size && !err; i += FIRST_ENTRIES) {
		size_t count = min_u64(size - i, FIRST_ENTRIES);

		err = remote__read(remote, array + 8 + i * 8, entries, count * 8)
			      ?: add_entries(copies, entries, count);
	}
	return err;
}

static int read_array(struct py_copies *copies, struct remote *remote, py_addr at)
{
	struct array array = {0};
	struct remote_segment segment = {.addr = at, .dest = &array, .len = sizeof(array)};
	int err = remote__read_batch(remote, &segment, 1);
	size_t whole = segment.got / 8;

	if (err)
		return err;
	if (!whole || array.size > ENTRIES_MAX || whole - 1 < min_u64(array.size, FIRST_ENTRIES))
		return -EFAULT;
	return add_entries(copies, array.entries, min_u64(array.size, FIRST_ENTRIES))
		       ?: read_rest(copies, remote, at, array.size);
}

int py_copies__read(struct py_copies *copies, struct remote *remote, const struct py_offsets *offsets,
		    py_addr code)
{
	py_addr array = 0, again = 0;
	int err = 0;

	for (int i = 0; i < TRIES; i++) {
		err = remote__read(remote, code + offsets->code_co_tlbc, &array, sizeof(array));
		if (err)
			return err;
		copies->starts.len = 0;
		if (array)
			err = read_array(copies, remote, array)
				      ?: remote__read(remote, code + offsets->code_co_tlbc, &again,
						      sizeof(again));
		if (!array || (err && err != -EFAULT) || (!err && again == array))
			return err;
	}
	copies->starts.len = 0;
	return err ?: -EAGAIN;
}

int64_t py_copies__lasti(const struct py_copies *copies, uint32_t code_bytes, uint64_t instr)
{
	for (size_t i = 0; i < copies->starts.len; i++)
		if (instr - copies->starts.items[i] < code_bytes)
			return instr - copies->starts.items[i];
	return -1;
}

void py_copies__free(struct py_copies *copies)
{
	vec__free(&copies->starts);
}

uint64_t py_copies__generation(struct remote *remote, const struct py_offsets *offsets, py_addr runtime)
{
	py_addr interp = 0;
	uint64_t sum = 0;

	remote__read(remote, runtime + offsets->runtime_interpreters_head, &interp, sizeof(interp));
	for (int i = 0; interp && i < INTERPRETERS_MAX; i++) {
		uint32_t generation = 0;
		py_addr next = 0;
		struct remote_segment segments[] = {
			{.addr = interp + offsets->interp_tlbc_generation, .dest = &generation, .len = 4},
			{.addr = interp + offsets->interp_next, .dest = &next, .len = 8},
		};

		if (remote__read_batch(remote, segments, ARRAY_SIZE(segments)))
			break;
		sum = hmap_mix(sum ^ interp) + generation;
		interp = next;
	}
	return sum;
}
