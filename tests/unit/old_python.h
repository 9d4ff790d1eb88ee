/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A Python of any version of versions.h made of nothing but the structs that are read at attach, in the test's own
 * memory: one interpreter, one thread, four frames. The test is target and reader at once.
 */
#pragma once

#include "base/util.h"
#include "py/target.h"
#include "versions.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

enum { OLD_FRAMES = 4, OLD_CODE_SIZE = 64 };

struct old_object {
	uint8_t bytes[256];
};

struct old_python {
	struct py_offsets offsets;
	uint8_t runtime[4096], interp[32768], tstate[512], cframes[2][64];
	struct old_object code, bytecode, name, table, code_type, str_type, bytes_type;
	uint8_t frames[OLD_FRAMES][512]; /* leaf first */
	uint64_t copies[3];		 /* of the bytecode: how many there are, and where */
	uint8_t copy[OLD_CODE_SIZE];
};

static inline uint64_t old_address(const void *p)
{
	return (uintptr_t)p;
}

/* Does nothing for a field that the version has not. */
static inline void old_put(void *base, uint32_t offset, uint64_t value, size_t len)
{
	if (offset != PY_ABSENT)
		memcpy((uint8_t *)base + offset, &value, len);
}

static inline void old_python__make_objects(struct old_python *python)
{
	const struct py_offsets *offsets = &python->offsets;
	struct old_object *code = &python->code;

	old_put(&python->code_type, offsets->type_name, old_address("code"), 8);
	old_put(&python->str_type, offsets->type_name, old_address("str"), 8);
	old_put(&python->bytes_type, offsets->type_name, old_address("bytes"), 8);
	old_put(&python->name, offsets->object_type, old_address(&python->str_type), 8);
	old_put(&python->table, offsets->object_type, old_address(&python->bytes_type), 8);
	old_put(&python->bytecode, offsets->object_type, old_address(&python->bytes_type), 8);
	old_put(&python->bytecode, offsets->bytes_size, OLD_CODE_SIZE, 8);
	old_put(code, offsets->object_type, old_address(&python->code_type), 8);
	if (offsets->lasti_unit)
		old_put(code, offsets->code_bytecode, old_address(&python->bytecode), 8);
	else
		old_put(code, offsets->var_object_size, OLD_CODE_SIZE / 2, 8);
	old_put(code, offsets->code_filename, old_address(&python->name), 8);
	old_put(code, offsets->code_name, old_address(&python->name), 8);
	old_put(code, offsets->code_qualname, old_address(&python->name), 8);
	old_put(code, offsets->code_linetable, old_address(&python->table), 8);
}

/* Where the interpreter runs it: in 3.14t and later in the copy of another thread than the first. */
static inline uint64_t old_python__bytecode(struct old_python *python)
{
	const struct py_offsets *offsets = &python->offsets;
	uint64_t own = old_address(&python->code) + offsets->code_adaptive;

	python->copies[0] = 2;
	python->copies[1] = own;
	python->copies[2] = old_address(python->copy);
	old_put(&python->code, offsets->code_co_tlbc, old_address(python->copies), 8);
	return offsets->code_co_tlbc == PY_ABSENT ? own : python->copies[2];
}

static inline void old_python__make_frame(struct old_python *python, int i)
{
	const struct py_offsets *offsets = &python->offsets;
	uint8_t *frame = python->frames[i];
	bool is_last = i == OLD_FRAMES - 1;

	old_put(frame, offsets->frame_previous, is_last ? 0 : old_address(python->frames[i + 1]), 8);
	old_put(frame, offsets->frame_executable, old_address(&python->code), 8);
	if (offsets->lasti_unit)
		old_put(frame, offsets->frame_instr, i, 4);
	else
		old_put(frame, offsets->frame_instr, old_python__bytecode(python) + 2 * i, 8);
	/* In 3.12 the outermost is an entry frame, of which hardly anything is set. */
	old_put(frame, offsets->frame_owner, is_last && offsets->first_other_owner ? 3 : 0, 1);
	old_put(frame, offsets->frame_entry, is_last, 1);
	old_put(frame, offsets->frame_state, offsets->running_states & 1 ? 0 : 1, 1);
}

static inline void old_python__make(struct old_python *python, int version)
{
	const struct py_offsets *offsets = &python->offsets;

	memset(python, 0, sizeof(*python));
	image_offsets(&python->offsets, version);
	old_python__make_objects(python);
	for (int i = 0; i < OLD_FRAMES; i++)
		old_python__make_frame(python, i);
	old_put(python->cframes[0], offsets->cframe_current_frame, old_address(python->frames[0]), 8);
	old_put(python->tstate, offsets->thread_current_frame,
		old_address(offsets->cframe_current_frame == PY_ABSENT ? python->frames[0]
								       : python->cframes[0]),
		8);
	old_put(python->tstate, offsets->thread_interp, old_address(python->interp), 8);
	old_put(python->tstate, offsets->thread_thread_id, pthread_self(), 8);
	old_put(python->interp, offsets->interp_threads_head, old_address(python->tstate), 8);
	old_put(python->runtime, offsets->runtime_interpreters_head, old_address(python->interp), 8);
}
