/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See tail.h. The chain, and whether it belongs to a sample; what it is followed in is in tail_snapshot.c.
 */
#include "py/tail_parts.h"

#include "base/util.h"
#include "py/ident.h"
#include "py/threads.h"

#include <stdbool.h>

#define LINKS_MAX (4 * PY_TAIL_MAX) /* steps of a chain, entry markers included */

/* Is `view` the frame that the kernel saw, in the middle of the same call? */
static bool is_link(const struct frame_view *view, const struct pbp_frame *expected)
{
	return view->code == expected->code && view->instr == expected->instr;
}

static int note_code(struct tail_reader *reader, py_addr code)
{
	int err;

	if (hmap__get(&reader->idents, code))
		return 0;
	err = vec__push(&reader->codes, code) ?: vec__push(&reader->code_idents, 0);
	return err ?: hmap__set(&reader->idents, code, reader->codes.len - 1);
}

static int note_frame(struct tail_reader *reader, py_addr address, const struct frame_view *view)
{
	struct pbp_frame frame = {.code = view->code, .instr = view->instr};

	return vec__push(&reader->frames, frame) ?:
	       vec__push(&reader->addresses, address) ?:
	       vec__push(&reader->hashes, pbp_frame_hash(view->code, view->instr, view->previous));
}

/* Follow the chain; each distinct code object is noted. */
static enum tail_result collect(struct tail_reader *reader, struct py_target *target, py_addr address)
{
	struct frame_view view;
	size_t hint = 0;
	py_addr at;

	for (size_t links = 0; address; links++) {
		if (links >= LINKS_MAX || reader->frames.len >= PY_TAIL_MAX)
			return TAIL_TRUNCATED;
		if (tail_load_frame(reader, target, address, &hint, &view))
			return TAIL_UNVERIFIED;
		at = address;
		address = view.previous;
		if (view.other)
			continue;
		if (note_code(reader, view.code) || note_frame(reader, at, &view))
			return TAIL_UNVERIFIED;
	}
	return TAIL_COMPLETE;
}

/* The identity of every code object of the tail, and the link once more, after them. */
static bool confirm(struct tail_reader *reader, struct py_target *target, py_addr link,
		    const struct pbp_frame *expected, py_addr previous)
{
	uint8_t frame[PBP_FRAME_BYTES] = {0};
	struct remote_segment last = {link, frame, min_u64(target->layout.fr_bytes, sizeof(frame)), 0};
	struct frame_view view;

	if (py_idents__read(&target->remote, &target->layout, reader->codes.items, reader->codes.len,
			    reader->code_idents.items, &last) ||
	    last.got < last.len)
		return false;
	view = view_frame(&target->layout, frame);
	return is_link(&view, expected) && view.previous == previous;
}

static void finish_frames(struct tail_reader *reader)
{
	reader->hash = 0;
	for (size_t i = 0; i < reader->frames.len; i++) {
		struct pbp_frame *frame = &reader->frames.items[i];
		const uint64_t *index = hmap__get(&reader->idents, frame->code);

		frame->ident = reader->code_idents.items[*index];
		reader->hash = hmap_mix(reader->hash ^ frame->code) +
			       hmap_mix(frame->instr ^ (uint64_t)frame->ident << 32);
	}
}

#define TURNS_MAX      40 /* witnesses at turns, at most; the rest are at fixed distances */
#define MARKERS_MAX    64
#define PERIOD_MAX     4 /* functions that call each other in a circle, which is no turn */
#define DISTANCE_FIRST 32

static bool same_frame(const struct pbp_frame *a, const struct pbp_frame *b)
{
	return a->code == b->code && a->instr == b->instr;
}

/*
 * Does the tail, seen from the base, do something new at `i`: neither go on as before nor in a circle?
 * *period is kept between calls.
 */
static bool is_turn(const struct tail_reader *reader, size_t i, size_t *period)
{
	const struct pbp_frame *frames = reader->frames.items;
	size_t below = reader->frames.len - 1 - i; /* frames between it and the base */

	if (*period && *period <= below && same_frame(&frames[i], &frames[i + *period]))
		return false;
	for (*period = 1; *period <= PERIOD_MAX && *period <= below; ++*period)
		if (same_frame(&frames[i], &frames[i + *period]))
			return true; /* it looks like a circle now, but the first of them is one to look at */
	*period = 0;
	return true;
}

static bool has_witness(const struct pbp_witnesses *list, uint64_t frame)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (list->frames[i] == frame)
			return true;
	return false;
}

static void add_witness(const struct tail_reader *reader, struct pbp_witnesses *out, uint32_t *hashes,
			size_t i)
{
	if (out->count == PBP_WITNESSES || has_witness(out, reader->addresses.items[i]))
		return;
	hashes[out->count] = reader->hashes.items[i];
	out->frames[out->count++] = reader->addresses.items[i];
}

/*
 * Choose which frames are to be looked at. Distances are counted from the base and grow with it (32, 48, 64,
 * 96, ...), so that they are the same for every part of a stack that has them. False if the tail has too many
 * turns.
 */
static bool choose_witnesses(const struct tail_reader *reader, struct pbp_witnesses *out, uint32_t *hashes)
{
	size_t len = reader->frames.len, period = 0;

	out->count = 0;
	for (size_t i = len; i-- > 0;) {
		if (!is_turn(reader, i, &period))
			continue;
		if (out->count == TURNS_MAX)
			return false;
		add_witness(reader, out, hashes, i);
	}
	for (size_t distance = DISTANCE_FIRST; distance <= len; distance *= 2) {
		add_witness(reader, out, hashes, len - distance);
		if (distance + distance / 2 <= len)
			add_witness(reader, out, hashes, len - distance - distance / 2);
	}
	return true;
}

/* Did every one of the tail's witnesses look at the sample instant as it does now? */
static bool witnesses_agree(const struct tail_reader *reader, const struct pbp_sample *sample,
			    const struct pbp_witnesses *now, const uint32_t *hashes)
{
	const struct pbp_witnesses *then =
		sample->witness_version == reader->witnesses.version	   ? &reader->witnesses
		: sample->witness_version == reader->old_witnesses.version ? &reader->old_witnesses
									   : NULL;

	if (!sample->witness_version || !then || !now->count)
		return false;
	for (uint32_t i = 0; i < now->count; i++) {
		uint32_t k = 0;

		while (k < then->count && then->frames[k] != now->frames[i])
			k++;
		if (k == then->count || sample->witnesses[k] != hashes[i])
			return false;
	}
	return true;
}

/*
 * A list that has all that are needed stays, so that stacks cut at different depths do not take turns in
 * changing it.
 */
static void update_witnesses(struct tail_reader *reader, const struct pbp_witnesses *now)
{
	bool fits = true;

	for (uint32_t i = 0; i < now->count; i++)
		fits &= has_witness(&reader->witnesses, now->frames[i]);
	if (fits)
		return;
	reader->old_witnesses = reader->witnesses;
	reader->witnesses.count = now->count;
	memcpy(reader->witnesses.frames, now->frames, now->count * sizeof(*now->frames));
	if (!++reader->witnesses.version)
		reader->witnesses.version = 1;
}

static void begin_tail(struct tail_reader *reader)
{
	reader->outside = 0;
	reader->frames.len = 0;
	reader->addresses.len = 0;
	reader->hashes.len = 0;
	reader->codes.len = 0;
	reader->code_idents.len = 0;
	hmap__clear(&reader->idents);
}

/*
 * Between the link and its Python caller there may be markers of entries from C, which the kernel side may
 * have passed.
 */
static bool leads_to(struct tail_reader *reader, struct py_target *target, py_addr address, py_addr tail)
{
	struct frame_view marker;
	size_t hint = 0;

	for (int i = 0; address != tail; i++, address = marker.previous)
		if (i == MARKERS_MAX || tail_load_frame(reader, target, address, &hint, &marker) ||
		    !marker.other)
			return false;
	return true;
}

/*
 * Remember where the frames of a chain without a data stack are, for the next snapshot. 0: there is no link.
 */
static void remember_chain(struct tail_reader *reader, py_addr link)
{
	size_t count = reader->addresses.len, first = link != 0;

	if (!reader->longest_is_old && first + count <= reader->longest.len)
		return;
	reader->longest.len = 0;
	if (!count || vec__reserve(&reader->longest, first + count))
		return;
	reader->longest.items[0] = link;
	memcpy(reader->longest.items + first, reader->addresses.items, count * sizeof(py_addr));
	reader->longest.len = first + count;
	reader->longest_is_old = false;
}

/*
 * The frame that the tail hangs from. Without a data stack: if it is not in the copies, they are made anew
 * after it has been read, since none of its callers' may be older than its own.
 */
static int load_link(struct tail_reader *reader, struct py_target *target, py_addr link,
		     struct frame_view *view)
{
	size_t hint = 0;
	bool is_copied = !tail_has_frame_objects(target) || frame_copies__find(&reader->copies, link, &hint);
	int err = tail_load_frame(reader, target, link, &hint, view);

	return err || is_copied ? err : tail_copy_frames(reader, target);
}

enum tail_result tail_reader__follow(struct tail_reader *reader, struct py_target *target,
				     const struct pbp_sample *sample, const struct pbp_frame *expected)
{
	struct frame_view view;
	struct pbp_witnesses now = {0};
	uint32_t hashes[PBP_WITNESSES];
	enum tail_result result;
	bool agree;

	begin_tail(reader);
	if (load_link(reader, target, sample->link_frame, &view) || !is_link(&view, expected))
		return TAIL_UNVERIFIED;
	if (!leads_to(reader, target, view.previous, sample->tail_frame))
		return TAIL_UNVERIFIED;
	result = collect(reader, target, sample->tail_frame);
	if (tail_has_frame_objects(target))
		remember_chain(reader, sample->link_frame);
	if (result == TAIL_UNVERIFIED ||
	    !confirm(reader, target, sample->link_frame, expected, view.previous))
		return TAIL_UNVERIFIED;
	finish_frames(reader);
	if (!choose_witnesses(reader, &now, hashes))
		return TAIL_UNVERIFIED;
	agree = witnesses_agree(reader, sample, &now, hashes);
	update_witnesses(reader, &now);
	return agree ? result : TAIL_UNVERIFIED;
}

bool tail_reader__prime(struct tail_reader *reader, struct py_target *target, py_addr tstate,
			size_t most_frames)
{
	struct pbp_witnesses now = {0};
	uint32_t hashes[PBP_WITNESSES];
	py_addr frame = 0;

	begin_tail(reader);
	if (tail_reader__snapshot(reader, target, tstate) ||
	    py_threads__first_frame(&target->remote, &target->offsets, tstate, &frame) ||
	    collect(reader, target, frame) == TAIL_UNVERIFIED || reader->frames.len <= most_frames)
		return false;
	if (tail_has_frame_objects(target))
		remember_chain(reader, 0);
	if (!choose_witnesses(reader, &now, hashes))
		return false;
	update_witnesses(reader, &now);
	return true;
}

void tail_reader__free(struct tail_reader *reader)
{
	frame_copies__free(&reader->copies);
	vec__free(&reader->longest);
	vec__free(&reader->chunks);
	vec__free(&reader->bytes);
	vec__free(&reader->frames);
	vec__free(&reader->addresses);
	vec__free(&reader->hashes);
	vec__free(&reader->codes);
	vec__free(&reader->code_idents);
	hmap__free(&reader->idents);
}
