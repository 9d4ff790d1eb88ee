/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is known of code objects and calls: which one lies at an address, and which instruction calls which
 * function.
 */
#include "py/unwind_parts.h"

#include "base/util.h"
#include "py/copies.h"
#include "py/frame_view.h"

#define CALLS_MAX	 (1u << 18)
#define CALLS_LEARNED	 64 /* of one stack, from the leaf on */
#define IDENTS_MAX	 8192
#define KNOWN_IDENTS_MAX 65536
#define KNOWN_CODES_MAX	 65536
#define IN_COPIES_MAX	 65536

/* The first code object met tells where the type of all is; py/verify.c may have met one at the attach. */
static bool is_code_type(struct py_target *target, py_addr type)
{
	char name[sizeof("code")] = "";
	py_addr name_addr = 0;

	if (target->code_type)
		return type == target->code_type;
	if (remote__read(&target->remote, type + target->offsets.type_name, &name_addr, sizeof(name_addr)) ||
	    remote__read(&target->remote, name_addr, name, sizeof(name)) ||
	    memcmp(name, "code", sizeof(name)))
		return false;
	target->code_type = type;
	return true;
}

/* Has a code object been met at this address, or does one lie there now? */
bool unwind_is_code(struct unwinder *unwinder, py_addr code)
{
	struct py_target *target = unwinder->target;
	uint64_t type = 0, units = 0;
	struct remote_segment segments[] = {
		{.addr = code + target->offsets.object_type, .dest = &type, .len = sizeof(type)},
		{.addr = code + target->offsets.var_object_size, .dest = &units, .len = sizeof(units)},
	};

	if (hmap__get(&unwinder->codes, code))
		return true;
	if (remote__read_batch(&target->remote, segments, ARRAY_SIZE(segments)) ||
	    segments[0].got < sizeof(type) || !is_code_type(target, type) || segments[1].got < sizeof(units))
		return false;
	if (unwinder->codes.len >= KNOWN_CODES_MAX)
		hmap__clear(&unwinder->codes);
	hmap__set(&unwinder->codes, code, units);
	return true;
}

/* Does it lie in a copy of the bytecode that belongs to a thread? Those that did once are remembered. */
static bool fits_copy(struct unwinder *unwinder, const struct pbp_frame *frame, uint64_t units)
{
	struct py_target *target = unwinder->target;
	uint64_t key = hmap_mix(frame->code) ^ frame->instr;
	struct py_copies copies = {0};
	bool fits;

	if (hmap__get(&unwinder->in_copies, key))
		return true;
	py_copies__read(&copies, &target->remote, &target->offsets, frame->code);
	fits = units < UINT32_MAX / 2 && py_copies__lasti(&copies, 2 * units, frame->instr) >= 0;
	py_copies__free(&copies);
	if (unwinder->in_copies.len >= IN_COPIES_MAX)
		hmap__clear(&unwinder->in_copies);
	if (fits)
		hmap__set(&unwinder->in_copies, key, 1);
	return fits;
}

/*
 * Does the instruction pointer of a frame that changed lie in its code? The two are written one after the
 * other.
 */
static bool instr_fits(struct unwinder *unwinder, const struct pbp_frame *frame)
{
	const struct py_offsets *offsets = &unwinder->target->offsets;
	const uint64_t *units = hmap__get(&unwinder->codes, frame->code);

	if (offsets->code_adaptive == PY_ABSENT || unwinder->target->layout.fr_instr_is_index)
		return true;
	if (!units)
		return false;
	/* Before 3.13 a frame that has not started points one unit before its code. */
	return frame->instr + 2 - (frame->code + offsets->code_adaptive) <= 2 * *units + 2 ||
	       (py_copies__exist(offsets) && fits_copy(unwinder, frame, *units));
}

static uint32_t stamp_of(const struct unwind_interp *interp)
{
	return hmap_mix(interp->address ^ hmap_mix(interp->generation)) | 1;
}

/* They lie in the order in which the frames were met. */
static struct unwind_ident *find_ident(struct thread_stack *stack, py_addr code)
{
	for (size_t tried = 0; tried < stack->idents.len; tried++) {
		size_t i = (stack->work.ident_hint + tried) % stack->idents.len;

		if (stack->idents.items[i].code != code)
			continue;
		stack->work.ident_hint = i + 1;
		return &stack->idents.items[i];
	}
	return NULL;
}

static void remember_ident(struct unwinder *unwinder, const struct unwind_interp *interp, py_addr code,
			   uint32_t ident)
{
	if (!interp || !unwind_has_generation(unwinder) || interp->generation != interp->generation_before)
		return;
	if (unwinder->idents.len >= KNOWN_IDENTS_MAX)
		hmap__clear(&unwinder->idents);
	hmap__set(&unwinder->idents, code, (uint64_t)ident << 32 | stamp_of(interp));
}

/*
 * What the code object and its names are now, to be compared with what they are at the next reading: a code
 * object in a running stack lives, and what it is made of does not change.
 */
static void expect_names(struct unwinder *unwinder, struct unwind_ident *ident)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	struct remote *remote = &unwinder->target->remote;
	struct remote_segment segment;

	memset(&ident->expected, 0, sizeof(ident->expected));
	memcpy(ident->expected.words, ident->words, sizeof(ident->words));
	for (size_t i = 0; i < PY_IDENT_NAMES; i++) {
		struct pbp_string *name = &ident->expected.names[i];

		segment = py_ident__head(layout, ident->words, i, name);
		if (remote__read(remote, segment.addr, segment.dest, segment.len))
			return;
		segment = py_ident__tail(layout, ident->words, i, name, name);
		if (segment.len && remote__read(remote, segment.addr, segment.dest, segment.len))
			return;
	}
	ident->expected.ident = py_ident__fold(layout, ident->words, ident->expected.names);
	ident->expected.known = true;
}

static bool ident_with_names(struct unwinder *unwinder, struct unwind_ident *ident, uint32_t *out)
{
	bool same = ident->expected.known &&
		    !memcmp(ident->words, ident->expected.words, sizeof(ident->words)) &&
		    !memcmp(ident->names, ident->expected.names, sizeof(ident->names));

	*out = ident->expected.ident;
	if (!same)
		expect_names(unwinder, ident);
	return same;
}

/* The identity of a code object at the instant of the reading. False: not known yet, or there is none. */
static bool ident_of(struct unwinder *unwinder, struct thread_stack *stack,
		     const struct unwind_interp *interp, py_addr code, uint32_t *out)
{
	const struct pbp_target *layout = &unwinder->target->layout;
	struct unwind_ident *ident = NULL;
	const uint64_t *known = interp && interp->readable && unwind_has_generation(unwinder)
					? hmap__get(&unwinder->idents, code)
					: NULL;

	*out = 0;
	if (known && (uint32_t)*known == stamp_of(interp)) {
		unwinder->stats.ident_hits++;
		*out = *known >> 32;
		return true;
	}
	ident = find_ident(stack, code);
	if (!ident) {
		if (stack->idents.len >= IDENTS_MAX ||
		    vec__push(&stack->idents, ((struct unwind_ident){.code = code, .used = true})))
			return true;
		return false;
	}
	ident->used = true;
	unwinder->stats.ident_reads++;
	if (!unwind_is_code(unwinder, code))
		return false;
	if (ident->got != py_ident__bytes(layout))
		return true;
	if (py_ident__has_names(layout))
		return ident_with_names(unwinder, ident, out);
	*out = (uint32_t)ident->words[0];
	remember_ident(unwinder, interp, code, *out);
	return true;
}

bool unwind_identify(struct unwinder *unwinder, struct thread_stack *stack)
{
	const struct unwind_interp *interp = unwind_find_interp(unwinder, stack->thread.interp);
	bool whole = true;

	if (unwinder->target->layout.co_ident == PBP_NONE)
		return true;
	stack->work.ident_hint = 0;
	for (size_t i = 0; i < stack->frames.len; i++) {
		struct pbp_frame *frame = &stack->frames.items[i];

		if (i && frame->code == frame[-1].code)
			frame->ident = frame[-1].ident;
		else
			whole &= ident_of(unwinder, stack, interp, frame->code, &frame->ident);
	}
	return whole;
}

static uint64_t call_key(const struct pbp_frame *caller, const struct pbp_frame *callee)
{
	return hmap_mix(hmap_mix(caller->code ^ (uint64_t)caller->ident << 32) ^ caller->instr) ^
	       hmap_mix(callee->code ^ (uint64_t)callee->ident << 32);
}

/* Calls in a stack that was the same in both copies have happened: an instruction that calls a function. */
void unwind_learn_calls(struct unwinder *unwinder, const struct thread_stack *stack)
{
	size_t count = min_u64(stack->frames.len, CALLS_LEARNED);
	const struct pbp_frame *frames = stack->frames.items;

	if (unwinder->calls.len >= CALLS_MAX)
		hmap__clear(&unwinder->calls);
	for (size_t i = 1; i < count; i++)
		if (!(frames[i].flags & PBP_FRAME_MOVED))
			hmap__set(&unwinder->calls, call_key(&frames[i], &frames[i - 1]), 1);
}

/*
 * An instruction that has called a function some times keeps the function's version, which is its code
 * object's: the inline cache of the CALL family, {u16 counter, u32 version} behind the instruction (3.12 and
 * later, Include/internal/pycore_code.h, _PyCallCache). Other instructions have other things there, so that
 * only equality says something.
 */
#define CALL_CACHE_VERSION 4 /* bytes from the instruction */

static bool caches_call(struct unwinder *unwinder, const struct pbp_frame *caller,
			const struct pbp_frame *callee)
{
	uint32_t version = 0;

	return unwinder->target->layout.co_ident_bytes == 4 && callee->ident &&
	       !remote__read(&unwinder->target->remote, caller->instr + CALL_CACHE_VERSION, &version, 4) &&
	       version == callee->ident;
}

static bool is_known_call(struct unwinder *unwinder, const struct pbp_frame *caller,
			  const struct pbp_frame *callee)
{
	uint64_t key = call_key(caller, callee);

	if (hmap__get(&unwinder->calls, key))
		return true;
	if (!caches_call(unwinder, caller, callee))
		return false;
	hmap__set(&unwinder->calls, key, 1);
	return true;
}

/*
 * Frames that differ in the two copies belong together if the one is known to call the other at that
 * instruction. False: they may not.
 */
bool unwind_prove_calls(struct unwinder *unwinder, struct thread_stack *stack)
{
	struct pbp_frame *frames = stack->frames.items;
	bool callee_changed, changed = false;

	stack->moved = 0;
	for (size_t i = 0; i < stack->frames.len; i++) {
		callee_changed = changed;
		changed = frames[i].flags & FRAME_CHANGED;
		if (frames[i].flags & (FRAME_CHANGED | PBP_FRAME_MOVED) && !instr_fits(unwinder, &frames[i]))
			return false;
		frames[i].flags &= ~FRAME_CHANGED;
		if (!i) {
			frames[i].flags &= ~PBP_FRAME_MOVED; /* the leaf runs */
			continue;
		}
		if (!changed && !callee_changed && !(frames[i].flags & PBP_FRAME_MOVED))
			continue;
		if (is_known_call(unwinder, &frames[i], &frames[i - 1])) {
			frames[i].flags &= ~PBP_FRAME_MOVED;
			continue;
		}
		if (changed || callee_changed)
			return false;
		stack->moved++;
	}
	return true;
}
