/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is read of interpreters along with the stacks of their threads: collecting garbage, the count of code
 * objects that were freed, the first thread, and who holds the GIL.
 */
#include "py/unwind_parts.h"

#include <errno.h>

#define INTERPRETERS_MAX 1024
#define GIL_LAST_HOLDER	 8 /* struct _gil_runtime_state, Include/internal/pycore_gil.h, GIL builds */
#define GIL_LOCKED	 16
#define GIL_BYTES	 24

static void widen(uint32_t *first, uint32_t *end, uint32_t offset, uint32_t width)
{
	if (!offset || offset == PY_ABSENT)
		return;
	*first = min_u64(*first, offset);
	*end = max_u64(*end, offset + width);
}

/* The fields that change lie within a few hundred bytes of each other in every version that has them. */
void unwind_choose_interp_span(struct unwinder *unwinder)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	uint32_t first = UINT32_MAX, end = 0;

	widen(&first, &end, layout->in_threads_head, 8);
	widen(&first, &end, layout->in_gc_collecting, 4);
	widen(&first, &end, layout->in_generation, 8);
	widen(&first, &end, layout->in_gc_frame, 8);
	widen(&first, &end, layout->in_requester, 8);
	if (end <= first || end - first > UNWIND_INTERP_BYTES)
		return;
	unwinder->interp_first = first;
	unwinder->interp_len = end - first;
}

/*
 * In a free-threaded build a thread that runs Python code runs, as the kernel says, also with PYTHON_GIL=1.
 */
static int add_gil(struct unwinder *unwinder, py_addr address)
{
	struct unwind_gil gil = {.address = address};

	if (!address || unwinder->target->offsets.free_threaded)
		return 0;
	for (size_t i = 0; i < unwinder->gils.len; i++)
		if (unwinder->gils.items[i].address == address)
			return 0;
	return vec__push(&unwinder->gils, gil);
}

static int read_interp(struct unwinder *unwinder, struct unwind_interp *interp, py_addr *next)
{
	const struct py_offsets *offsets = &unwinder->target->offsets;
	struct remote_segment segments[] = {
		{.addr = interp->address + offsets->interp_next, .dest = next, .len = 8},
		{.addr = interp->address + offsets->interp_id, .dest = &interp->id, .len = 8},
		{.addr = interp->address + offsets->interp_threads_head,
		 .dest = &interp->threads_head,
		 .len = 8},
		{.addr = interp->address + offsets->interp_ceval_gil, .dest = &interp->gil, .len = 8},
	};
	size_t count = ARRAY_SIZE(segments) - (offsets->interp_ceval_gil == PY_ABSENT);
	int err = remote__read_batch(&unwinder->target->remote, segments, count);

	for (size_t i = 0; i < count && !err; i++)
		err = segments[i].got < segments[i].len ? -EFAULT : 0;
	return err;
}

int unwinder__find_interpreters(struct unwinder *unwinder)
{
	struct py_target *target = unwinder->target;
	py_addr at = 0;
	int err = remote__read(&target->remote, target->runtime + target->offsets.runtime_interpreters_head,
			       &at, 8);

	unwinder->interps.len = 0;
	unwinder->gils.len = 0;
	/* To 3.11 there is one GIL, and the runtime says whose it is. */
	if (!err)
		err = add_gil(unwinder, target->layout.gil_tstate);
	while (!err && at && unwinder->interps.len < INTERPRETERS_MAX) {
		struct unwind_interp interp = {.address = at};

		err = read_interp(unwinder, &interp, &at) ?: vec__push(&unwinder->interps, interp)
							  ?: add_gil(unwinder, interp.gil);
	}
	return err == -EFAULT ? 0 : err;
}

struct unwind_interp *unwind_find_interp(const struct unwinder *unwinder, py_addr address)
{
	for (size_t i = 0; i < unwinder->interps.len; i++)
		if (unwinder->interps.items[i].address == address)
			return &unwinder->interps.items[i];
	return NULL;
}

const struct unwind_interp *unwinder__interp(const struct unwinder *unwinder, py_addr address)
{
	return unwind_find_interp(unwinder, address);
}

bool unwind_has_generation(const struct unwinder *unwinder)
{
	return unwinder->target->layout.in_generation && unwinder->interp_len;
}

/* The generation first and last: identities read in between hold for it only if it is the same. */
int unwind_plan_generations(struct unwinder *unwinder)
{
	int err = 0;

	for (size_t i = 0; i < unwinder->interps.len && !err; i++) {
		struct unwind_interp *interp = &unwinder->interps.items[i];

		err = unwind_add_segment(unwinder, interp->address + unwinder->target->layout.in_generation,
					 &interp->generation_before, 8);
	}
	return err;
}

/* 0: the version has no such field. */
static uint64_t interp_field(const struct unwinder *unwinder, const struct unwind_interp *interp,
			     uint32_t offset)
{
	return offset ? load_u64(interp->bytes + (offset - unwinder->interp_first)) : 0;
}

static bool reads_gils(const struct unwinder *unwinder)
{
	return unwinder->want_gils || unwinder->target->layout.gil_tstate;
}

int unwind_plan_interps(struct unwinder *unwinder)
{
	int err = 0;

	for (size_t i = 0; i < unwinder->interps.len && !err; i++) {
		struct unwind_interp *interp = &unwinder->interps.items[i];

		interp->segment = unwinder->segments.len;
		err = unwind_add_segment(unwinder, interp->address + unwinder->interp_first, interp->bytes,
					 unwinder->interp_len);
	}
	for (size_t i = 0; i < unwinder->gils.len && reads_gils(unwinder) && !err; i++) {
		struct unwind_gil *gil = &unwinder->gils.items[i];

		gil->segment = unwinder->segments.len;
		err = unwind_add_segment(unwinder, gil->address, gil->bytes, GIL_BYTES);
	}
	unwinder->head = unwinder->interps.len ? unwinder->interps.items[0].address : 0;
	if (!err && unwinder->want_gils)
		err = unwind_add_segment(unwinder, unwinder->target->layout.interpreters_head,
					 &unwinder->head, sizeof(unwinder->head));
	if (!err && unwinder->target->layout.gc_collecting)
		err = unwind_add_segment(unwinder, unwinder->target->layout.gc_collecting,
					 &unwinder->collecting, sizeof(unwinder->collecting));
	return err;
}

void unwind_take_interps(struct unwinder *unwinder)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	uint32_t first = unwinder->interp_first;

	for (size_t i = 0; i < unwinder->interps.len; i++) {
		struct unwind_interp *interp = &unwinder->interps.items[i];

		interp->readable = unwinder->interp_len &&
				   unwinder->segments.items[interp->segment].got == unwinder->interp_len;
		if (!interp->readable)
			continue;
		interp->threads_head = load_u64(interp->bytes + (layout->in_threads_head - first));
		interp->collecting = layout->in_gc_collecting &&
				     load_u32(interp->bytes + (layout->in_gc_collecting - first));
		interp->generation = interp_field(unwinder, interp, layout->in_generation);
		interp->gc_frame = interp_field(unwinder, interp, layout->in_gc_frame);
		interp->requester = interp_field(unwinder, interp, layout->in_requester);
	}
	for (size_t i = 0; i < unwinder->gils.len; i++) {
		struct unwind_gil *gil = &unwinder->gils.items[i];
		bool whole = reads_gils(unwinder) && unwinder->segments.items[gil->segment].got == GIL_BYTES;

		gil->holder = 0;
		if (whole && unwinder->target->layout.gil_tstate)
			gil->holder = load_u64(gil->bytes);
		else if (whole && load_u32(gil->bytes + GIL_LOCKED) == 1)
			gil->holder = load_u64(gil->bytes + GIL_LAST_HOLDER);
	}
}
