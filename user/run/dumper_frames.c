/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A stack in words: functions, lines, source, variables.
 */
#include "run/dumper_parts.h"

#include "base/util.h"

#include <errno.h>
#include <string.h>

#define FRAMES_MAX	(1u << 20) /* of all stacks: beyond, bases are cut off */
#define VALUES_MAX	(1u << 18) /* ... and of variables: beyond, frames come without them */
#define UNREADABLE_CODE "[code freed before it was read]"

uint32_t dumper_add_text(struct dumper *dumper, const char *text, size_t len)
{
	uint32_t id = strtab__add(dumper->out->strings, text, len);

	return id == UINT32_MAX ? 0 : id;
}

static uint32_t source_line(struct dumper *dumper, uint32_t file, uint32_t line)
{
	uint64_t key = (uint64_t)file << 32 | line;
	const uint64_t *known = hmap__get(&dumper->source_lines, key);
	const char *text;
	uint32_t id;
	size_t len;

	if (known)
		return *known;
	text = sources__line(&dumper->sources, file, strtab__get(dumper->out->strings, file), line, &len);
	id = text ? dumper_add_text(dumper, text, len) : 0;
	hmap__set(&dumper->source_lines, key, id);
	return id;
}

/* False: helper code of CPython's own, which is no function of the program. */
static bool describe_frame(struct dumper *dumper, const struct pbp_frame *raw, struct dump_frame *frame)
{
	struct code_cache *codes = &dumper->process.codes;
	struct py_target *target = &dumper->process.target;
	uint32_t index = code_cache__find(codes, raw->code, raw->ident);
	const struct py_code *code = index == PY_CODE_NONE ? NULL : &codes->codes.items[index];

	*frame = (struct dump_frame){.from_c = raw->flags & PBP_FRAME_C_BELOW};
	if (code && code->state == PY_CODE_SHIM)
		return false;
	if (!code || code->state != PY_CODE_OK) {
		frame->function = dumper_add_text(dumper, UNREADABLE_CODE, strlen(UNREADABLE_CODE));
		return true;
	}
	frame->function = code->function;
	frame->file = code->file;
	frame->first_line = code->first_line > 0 ? code->first_line : 0;
	if (!(raw->flags & PBP_FRAME_MOVED))
		frame->line = py_code__line(code, &target->offsets,
					    code_cache__lasti(codes, target, index, raw->instr, true));
	frame->source = source_line(dumper, frame->file, frame->line);
	return true;
}

static void add_local(struct dump_thread *made, const struct py_local *local)
{
	struct dump_local copy = {.name = local->name, .value = local->value, .argument = local->argument};

	if (!vec__push(&made->locals, copy))
		made->frames.items[made->frames.len - 1].local_count++;
}

/* Of the frame that was made last. */
static void make_locals(struct dumper *dumper, struct watched *watched, size_t raw)
{
	struct dump_thread *made = &watched->made;
	struct dump_frame *frame = &made->frames.items[made->frames.len - 1];
	struct py_local locals[LOCALS_MAX];
	int count = dumper->values < VALUES_MAX
			    ? py_locals__read(&dumper->locals, watched->stack.addresses.items[raw],
					      &watched->stack.frames.items[raw], locals)
			    : -E2BIG;

	frame->first_local = made->locals.len;
	frame->has_locals = count >= 0;
	for (int i = 0; i < count; i++)
		add_local(made, &locals[i]);
	dumper->values += frame->local_count;
}

/* Read the variables of a frame once more: which had another value? */
static void compare_locals(struct dumper *dumper, struct watched *watched, size_t index)
{
	struct dump_frame *frame = &watched->made.frames.items[index];
	struct dump_local *known = watched->made.locals.items + frame->first_local;
	struct py_local locals[LOCALS_MAX];
	size_t raw = watched->raw.items[index];
	int count = py_locals__read(&dumper->locals, watched->stack.addresses.items[raw],
				    &watched->stack.frames.items[raw], locals);

	for (size_t i = 0; i < frame->local_count; i++)
		known[i].changed = count != (int)frame->local_count || known[i].name != locals[i].name ||
				   known[i].value != locals[i].value;
}

void dumper_compare_locals(struct dumper *dumper)
{
	for (size_t i = 0; i < dumper->watched.len && dumper->out->with_locals; i++) {
		struct watched *watched = dumper->watched.items[i];

		py_objects__forget(&dumper->objects);
		for (size_t j = 0; j < watched->made.frames.len && watched->agrees; j++)
			if (watched->made.frames.items[j].has_locals)
				compare_locals(dumper, watched, j);
	}
}

static int make_frames(struct dumper *dumper, struct watched *watched)
{
	const struct thread_stack *stack = &watched->stack;
	struct dump_thread *made = &watched->made;
	struct code_cache *codes = &dumper->process.codes;
	int err = code_cache__load(codes, &dumper->process.target, stack->frames.items, stack->frames.len,
				   true);

	code_cache__begin_batch(codes, &dumper->process.target, true);
	for (size_t i = 0; i < stack->frames.len && !err; i++) {
		struct dump_frame frame;

		if (dumper->frames >= FRAMES_MAX) {
			made->truncated = true;
			break;
		}
		if (!describe_frame(dumper, &stack->frames.items[i], &frame)) {
			/* What called the helper is what called the function. */
			if (frame.from_c && made->frames.len)
				made->frames.items[made->frames.len - 1].from_c = true;
			continue;
		}
		frame.approximate = i == 0 && frame.line && stack->flags & PBP_SAMPLE_JIT;
		err = vec__push(&made->frames, frame) ?: vec__push(&watched->raw, i);
		dumper->frames++;
		if (!err && dumper->out->with_locals)
			make_locals(dumper, watched, i);
	}
	return err;
}

static enum dump_stack stack_state(enum unwind_result result)
{
	return result == UNWIND_OK	    ? DUMP_STACK_READ
	       : result == UNWIND_NO_FRAMES ? DUMP_STACK_EMPTY
	       : result == UNWIND_TORN	    ? DUMP_STACK_CHANGING
					    : DUMP_STACK_UNREADABLE;
}

/* The thread's part of the dump, anew from the stack that was read last. */
int dumper_make_thread(struct dumper *dumper, struct watched *watched)
{
	struct dump_thread *made = &watched->made;

	dumper->frames -= made->frames.len;
	dumper->values -= made->locals.len;
	made->frames.len = made->locals.len = watched->raw.len = 0;
	py_objects__forget(&dumper->objects);
	made->stack = stack_state(watched->stack.result);
	made->truncated = watched->stack.truncated;
	made->tid = watched->tid;
	made->inner_id = watched->native_id;
	made->ident = watched->stack.thread.thread_id;
	made->main = watched->tid == dumper->process.pid;
	return make_frames(dumper, watched);
}
