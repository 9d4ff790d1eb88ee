/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See symbolize_parts.h. What a frame is called and at which line, once for each code object and line; stacks
 * of raw frames become paths.
 */
#include "run/code_files.h"
#include "run/symbolize_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOKS_MAX 32 /* at a stack with a code object that was gone */

/* A process's caches are emptied beyond these. */
#define TABLE_BYTES_MAX (32u << 20)
#define CODES_MAX	32768

#define APPROXIMATE (1ull << 63) /* in a key of process->lines; an index of a code object has fewer bits */

/* Frame id of a code object at an offset in its bytecode; `approximate`: where it was at some time before. */
static uint32_t frame_of(struct symbolizer *symbolizer, struct process *process, uint32_t code_index,
			 int64_t lasti, bool approximate)
{
	const struct py_code *code = &process->codes.codes.items[code_index];
	uint64_t key = (uint64_t)code_index << 32 | (uint32_t)lasti | (approximate ? APPROXIMATE : 0);
	const uint64_t *known = hmap__get(&process->lines, key);
	struct frame frame;
	uint32_t id;

	if (known)
		return *known;
	if (symbolizer->profile->frames.frames.len >= SYMBOLIZE_FRAMES_MAX)
		return symbolizer->beyond;
	frame = (struct frame){
		.kind = FRAME_PYTHON,
		.function = code->function,
		.file = code->file,
		.line = py_code__line(code, &process->target.offsets, lasti),
		.first_line = code->first_line > 0 ? code->first_line : 0,
	};
	frame.approximate = approximate && frame.line;
	id = frame_table__add(&symbolizer->profile->frames, &frame);
	if (symbolizer->code_files)
		code_files__note(symbolizer->code_files, process, frame.file);
	if (id != UINT32_MAX)
		hmap__set(&process->lines, key, id);
	return id;
}

uint32_t symbolize_frame_at(struct symbolizer *symbolizer, struct process *process, uint32_t code_index,
			 uint64_t instr, bool approximate)
{
	int64_t lasti =
		code_cache__lasti(&process->codes, &process->target, code_index, instr, process->attached);

	return frame_of(symbolizer, process, code_index, lasti, approximate);
}

static uint32_t interp_frame(struct symbolizer *symbolizer, uint64_t id)
{
	char text[40];

	if (symbolizer->profile->frames.frames.len >= SYMBOLIZE_FRAMES_MAX)
		return symbolizer->beyond;
	snprintf(text, sizeof(text), "[interpreter %lld]", (long long)id);
	return symbolize_special(symbolizer, text);
}

/* Nothing more is to be read of the program that was sampled. */
static bool is_over(const struct process *process)
{
	return process->exited || process->gone || !process->attached;
}

uint32_t symbolize_raw_frame(struct symbolizer *symbolizer, struct process *process,
			     const struct pbp_frame *raw, uint32_t *code_index)
{
	enum py_code_state state;
	uint32_t index;

	*code_index = PY_CODE_NONE;
	if (raw->flags & PBP_FRAME_INTERP)
		return interp_frame(symbolizer, raw->instr);
	if (raw->flags & PBP_FRAME_GC)
		return symbolizer->hide_gc ? UINT32_MAX : symbolizer->gc;
	index = code_cache__find(&process->codes, raw->code, raw->ident);
	state = index == PY_CODE_NONE ? PY_CODE_GONE : process->codes.codes.items[index].state;
	if (state == PY_CODE_SHIM)
		return UINT32_MAX;
	if (state != PY_CODE_OK)
		return is_over(process) ? symbolizer->exited : symbolizer->unreadable;
	*code_index = index;
	return raw->flags & PBP_FRAME_MOVED
		       ? frame_of(symbolizer, process, index, PY_LASTI_UNKNOWN, false)
		       : symbolize_frame_at(symbolizer, process, index, raw->instr, false);
}

static int resolve_stack(struct symbolizer *symbolizer, struct stack *stack)
{
	uint32_t *path = stack->path ?: malloc(stack->count * sizeof(*path));
	uint32_t code_index, id;

	if (!path)
		return -ENOMEM;
	stack->path = path;
	stack->path_len = 0;
	stack->root = UINT32_MAX;
	stack->unreadable = stack->exited = stack->idle_known = false;
	for (uint32_t i = stack->count; i-- > 0;) {
		stack->has_gc |= stack->raw[i].flags & PBP_FRAME_GC;
		id = symbolize_raw_frame(symbolizer, stack->process, &stack->raw[i], &code_index);
		if (id == symbolizer->unreadable)
			stack->unreadable = true;
		if (id == symbolizer->exited)
			stack->exited = true;
		if (i == 0 && code_index != PY_CODE_NONE)
			stack->leaf_code = code_index;
		else if (id != UINT32_MAX)
			path[stack->path_len++] = id;
	}
	free(stack->raw);
	stack->raw = NULL;
	if (!stack->unreadable || stack->looks >= LOOKS_MAX)
		return 0;
	stack->looks++;
	return vec__push(&symbolizer->wanted, stack->id);
}

struct stack *symbolize_unresolved(const struct symbolizer *symbolizer, size_t number)
{
	size_t again = symbolizer->reread.len, fresh = symbolizer->stacks.len - symbolizer->resolved;

	if (number < again)
		return &symbolizer->stacks.items[symbolizer->reread.items[number]];
	return number - again < fresh ? &symbolizer->stacks.items[symbolizer->resolved + number - again]
				      : NULL;
}

/* Read all code objects of one process's new stacks in one go. */
static int load_codes(struct symbolizer *symbolizer, struct process *process)
{
	VEC(struct pbp_frame) frames = {0};
	const struct stack *stack;
	int err = 0;

	for (size_t i = 0; (stack = symbolize_unresolved(symbolizer, i)) && !err; i++) {
		if (stack->process != process)
			continue;
		err = vec__reserve(&frames, stack->count);
		if (err)
			break;
		memcpy(frames.items + frames.len, stack->raw, stack->count * sizeof(*stack->raw));
		frames.len += stack->count;
	}
	if (!err)
		err = code_cache__load(&process->codes, &process->target, frames.items, frames.len,
				       process->attached && !process->exited);
	symbolizer->codes_full |=
		process->codes.codes.len > CODES_MAX || process->codes.table_bytes > TABLE_BYTES_MAX;
	process->gone |= err == -ESRCH;
	vec__free(&frames);
	/* A process that is gone leaves its unknown code objects unreadable, which is counted. */
	return err == -ENOMEM ? err : 0;
}

void symbolize_begin(struct symbolizer *symbolizer, struct process *process)
{
	if (process->begun == symbolizer->batch)
		return;
	process->begun = symbolizer->batch;
	code_cache__begin_batch(&process->codes, &process->target, process->attached && !process->exited);
}

int symbolize_stacks(struct symbolizer *symbolizer)
{
	struct stack *stack;
	int err = 0;

	if (!symbolize_unresolved(symbolizer, 0))
		return 0;
	for (size_t i = 0; (stack = symbolize_unresolved(symbolizer, i)) && !err; i++) {
		if (stack->process->batch == symbolizer->batch)
			continue;
		stack->process->batch = symbolizer->batch;
		symbolize_begin(symbolizer, stack->process);
		err = load_codes(symbolizer, stack->process);
	}
	for (size_t i = 0; (stack = symbolize_unresolved(symbolizer, i)) && !err; i++)
		err = resolve_stack(symbolizer, stack);
	symbolizer->resolved = symbolizer->stacks.len;
	symbolizer->reread.len = 0;
	return err;
}
