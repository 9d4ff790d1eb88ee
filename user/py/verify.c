/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The threads run while they are looked at, so single frames may be torn: a chain passes if most of it is
 * sound, and contradictions count only if no thread passes in several looks. What is checked of a frame: its
 * executable is an object of a type named "code", whose name, qualified name and file are of type "str" and
 * whose line table is of type "bytes", and the instruction pointer lies in that code's bytecode. A frame that
 * is an object of its own (to 3.10) says of itself that it is being executed.
 */
#include "py/verify.h"

#include "base/util.h"
#include "py/copies.h"
#include "py/runtime.h"
#include "py/threads.h"

#include <errno.h>
#include <stdio.h>

#define LOOKS	     4	/* at the frames of one list of threads; the caller tries several lists */
#define MAX_THREADS  16 /* looked at */
#define MAX_FRAMES   64 /* of one chain */
#define MAX_FRAME    512
#define MAX_CODE     1024
#define EMPTY_CHUNK  32 /* bytes of a data stack chunk without frames */
#define MAX_CHUNK    (1 << 24)
#define MAX_UNITS    (1ll << 30) /* code units of one code object */
#define CODE_UNIT    2		 /* bytes */
#define KNOWN_OWNERS 5		 /* largest enum _frameowner so far, plus one (3.14) */

struct verifier {
	struct py_target *target;
	const struct py_offsets *offsets;
	const char *field; /* the contradiction met last */
	int err;	   /* the process cannot be read: -ESRCH, -EPERM */
};

/* Whole or nothing; remembers the errors that end everything. */
static bool read_bytes(struct verifier *verifier, py_addr addr, void *dest, size_t len)
{
	int err = remote__read(&verifier->target->remote, addr, dest, len);

	if (err && err != -EFAULT)
		verifier->err = err;
	return !err;
}

static bool contradict(struct verifier *verifier, const char *field)
{
	verifier->field = field;
	return false;
}

/* Is there an object at `object` whose type has this name? Gives the type's address. */
static bool is_of_type(struct verifier *verifier, py_addr object, const char *name, py_addr *type)
{
	char text[8] = "";
	py_addr name_addr;
	size_t len = strlen(name) + 1;

	return object && len <= sizeof(text) &&
	       read_bytes(verifier, object + verifier->offsets->object_type, type, 8) &&
	       read_bytes(verifier, *type + verifier->offsets->type_name, &name_addr, 8) &&
	       read_bytes(verifier, name_addr, text, len) && !memcmp(text, name, len);
}

static bool check_object(struct verifier *verifier, py_addr object, const char *type_name, const char *field)
{
	py_addr type;

	return is_of_type(verifier, object, type_name, &type) || contradict(verifier, field);
}

/* In 3.11 and 3.12 the pointer of a frame that has not started is one unit ahead of the bytecode. */
static bool is_in_bytecode(const struct py_offsets *offsets, py_addr code, const uint8_t *bytes,
			   py_addr instr)
{
	py_addr start = code + offsets->code_adaptive;
	uint64_t units = load_u64(bytes + offsets->var_object_size);
	uint64_t ahead = py_offsets__are_in_process(offsets) ? 0 : CODE_UNIT;

	return units <= MAX_UNITS && instr + ahead >= start && instr <= start + CODE_UNIT * units;
}

/* ... or in a copy that belongs to a thread? */
static bool is_in_copy(struct verifier *verifier, py_addr code, const uint8_t *bytes, py_addr instr)
{
	const struct py_offsets *offsets = verifier->offsets;
	uint64_t units = load_u64(bytes + offsets->var_object_size);
	struct py_copies copies = {0};
	bool found;

	if (!py_copies__exist(offsets) || units > MAX_UNITS)
		return false;
	py_copies__read(&copies, &verifier->target->remote, offsets, code);
	found = py_copies__lasti(&copies, CODE_UNIT * units, instr) >= 0;
	py_copies__free(&copies);
	return found;
}

/* The same where the frame has an index into a bytes object, -1 before it starts. */
static bool is_in_bytes(struct verifier *verifier, py_addr bytecode, int32_t index)
{
	const struct py_offsets *offsets = verifier->offsets;
	int64_t size;
	py_addr type;

	return is_of_type(verifier, bytecode, "bytes", &type) &&
	       read_bytes(verifier, bytecode + offsets->bytes_size, &size, 8) && size <= MAX_UNITS &&
	       index >= -1 && (int64_t)index * offsets->lasti_unit < size;
}

static bool check_instr(struct verifier *verifier, py_addr code, const uint8_t *bytes, py_addr instr)
{
	const struct py_offsets *offsets = verifier->offsets;

	if (!offsets->lasti_unit)
		return is_in_bytecode(offsets, code, bytes, instr) ||
		       is_in_copy(verifier, code, bytes, instr) ||
		       contradict(verifier, "interpreter_frame.instr_ptr lies outside its code_object");
	return is_in_bytes(verifier, load_u64(bytes + offsets->code_bytecode), (int32_t)instr) ||
	       contradict(verifier, "frame.f_lasti lies outside its code_object");
}

static bool check_code(struct verifier *verifier, py_addr code, py_addr instr)
{
	const struct py_offsets *offsets = verifier->offsets;
	uint8_t bytes[MAX_CODE];
	py_addr type;

	if (!is_of_type(verifier, code, "code", &type))
		return contradict(verifier, "interpreter_frame.executable is no code object");
	if (!read_bytes(verifier, code, bytes, min_u64(offsets->code_size, sizeof(bytes))))
		return contradict(verifier, "code_object is not readable");
	if (!check_instr(verifier, code, bytes, instr) ||
	    !check_object(verifier, load_u64(bytes + offsets->code_filename), "str",
			  "code_object.filename is no str") ||
	    !check_object(verifier, load_u64(bytes + offsets->code_name), "str",
			  "code_object.name is no str") ||
	    !check_object(verifier, load_u64(bytes + offsets->code_linetable), "bytes",
			  "code_object.linetable is no bytes"))
		return false;
	if (offsets->code_qualname != PY_ABSENT &&
	    !check_object(verifier, load_u64(bytes + offsets->code_qualname), "str",
			  "code_object.qualname is no str"))
		return false;
	verifier->target->code_type = type;
	return true;
}

struct chain {
	size_t sound, unsound;
	size_t returned; /* frames that were popped while the chain was being followed */
	bool ended;	 /* properly, or the cap was reached */
};

static bool is_running(const struct py_offsets *offsets, const uint8_t *bytes)
{
	return offsets->frame_state == PY_ABSENT || py_frame_is_running(offsets, bytes[offsets->frame_state]);
}

/* Frames of C code (owners from first_other_owner on) hold garbage but for the owner and the link. */
static void check_frame(struct verifier *verifier, const uint8_t *bytes, struct chain *chain)
{
	const struct py_offsets *offsets = verifier->offsets;
	py_addr code = load_u64(bytes + offsets->frame_executable);
	py_addr instr = offsets->lasti_unit ? load_u32(bytes + offsets->frame_instr)
					    : load_u64(bytes + offsets->frame_instr);
	uint32_t owner = offsets->frame_owner == PY_ABSENT ? 0 : bytes[offsets->frame_owner];

	if (owner >= KNOWN_OWNERS) {
		contradict(verifier, "interpreter_frame.owner reads back absurd");
		chain->unsound++;
	} else if (offsets->first_other_owner && owner >= offsets->first_other_owner) {
		return;
	} else if (offsets->tagged_frames && code == 1) {
		/* It has returned since its caller was read: 3.14 and later leave a null reference. */
		return;
	} else if (!is_running(offsets, bytes)) {
		contradict(verifier, "frame.f_state says that no frame of a running chain is executed");
		chain->returned++;
	} else if (check_code(verifier, offsets->tagged_frames ? code & ~3ull : code, instr)) {
		chain->sound++;
	} else {
		chain->unsound++;
	}
}

static struct chain walk_chain(struct verifier *verifier, py_addr frame)
{
	const struct py_offsets *offsets = verifier->offsets;
	struct chain chain = {};
	uint8_t bytes[MAX_FRAME];

	for (int i = 0; frame && i < MAX_FRAMES; i++) {
		if (!read_bytes(verifier, frame, bytes, min_u64(offsets->frame_localsplus, sizeof(bytes)))) {
			contradict(verifier, i ? "interpreter_frame.previous leads nowhere"
					       : "thread_state.current_frame leads nowhere");
			chain.unsound++;
			return chain;
		}
		check_frame(verifier, bytes, &chain);
		frame = load_u64(bytes + offsets->frame_previous);
	}
	chain.ended = true;
	return chain;
}

/*
 * Is there nothing on the thread's data stack? A chunk starts with its link, size, top and one unused word
 * (struct _PyStackChunk, push_chunk in Python/pystate.c); the frames that C code is about to run lie behind
 * that.
 */
static bool has_empty_data_stack(struct verifier *verifier, py_addr tstate)
{
	const struct py_offsets *offsets = verifier->offsets;
	py_addr chunk = 0, top = 0;

	if (offsets->thread_datastack_chunk == PY_ABSENT)
		return true; /* nothing to say against it */
	return !read_bytes(verifier, tstate + offsets->thread_datastack_chunk, &chunk, 8) ||
	       !read_bytes(verifier, tstate + offsets->thread_datastack_top, &top, 8) || !chunk ||
	       top <= chunk + EMPTY_CHUNK || top > chunk + MAX_CHUNK;
}

/* How one thread came out. */
enum outcome { PASSED, NO_FRAMES, FAILED };

static bool read_first_frame(struct verifier *verifier, py_addr tstate, py_addr *frame)
{
	int err = py_threads__first_frame(&verifier->target->remote, verifier->offsets, tstate, frame);

	if (err && err != -EFAULT)
		verifier->err = err;
	return !err || contradict(verifier, "thread_state.current_frame is not readable");
}

static enum outcome check_thread(struct verifier *verifier, py_addr tstate)
{
	py_addr frame;
	struct chain chain;

	if (!read_first_frame(verifier, tstate, &frame))
		return FAILED;
	chain = walk_chain(verifier, frame);
	if (chain.ended && !chain.sound && !chain.unsound && !chain.returned) {
		if (has_empty_data_stack(verifier, tstate))
			return NO_FRAMES;
		contradict(verifier,
			   "thread_state.current_frame leads to no frame, but the data stack has some");
		return FAILED;
	}
	return chain.ended && chain.sound && chain.unsound * 4 <= chain.sound ? PASSED : FAILED;
}

static enum outcome check_threads(struct verifier *verifier, const struct py_thread *threads, size_t count)
{
	enum outcome worst = NO_FRAMES;

	for (size_t i = 0; i < count && i < MAX_THREADS && !verifier->err; i++) {
		enum outcome outcome = check_thread(verifier, threads[i].tstate);

		if (outcome == PASSED)
			return PASSED;
		if (outcome == FAILED)
			worst = FAILED;
	}
	return worst;
}

/*
 * On x86-64 the word at fsbase holds fsbase itself (the psABI's thread pointer), and thread_id is fsbase. A
 * thread that has ended leaves nothing there, so one that agrees is enough.
 */
static bool check_thread_ids(struct verifier *verifier, const struct py_thread *threads, size_t count)
{
	bool any = false;
	uint64_t self;

	for (size_t i = 0; i < count && !verifier->err; i++) {
		if (!threads[i].thread_id) /* not run by a thread yet */
			continue;
		any = true;
		if (read_bytes(verifier, threads[i].thread_id, &self, 8) && self == threads[i].thread_id)
			return true;
	}
	return !any;
}

/* The lists of thread states are doubly linked: does the second one of a list point back to the first? */
static bool check_links(struct verifier *verifier, const struct py_thread *threads, size_t count)
{
	py_addr prev;

	for (size_t i = 1; i < count; i++) {
		if (threads[i].interp != threads[i - 1].interp)
			continue;
		if (read_bytes(verifier, threads[i].tstate + verifier->offsets->thread_prev, &prev, 8) &&
		    prev == threads[i - 1].tstate)
			return true;
		contradict(verifier, "thread_state.prev does not point back along thread_state.next");
	}
	return !verifier->field;
}

static void explain(const struct verifier *verifier, char *reason, size_t reason_size)
{
	char version[24];

	if (py_offsets__are_in_process(verifier->offsets))
		snprintf(reason, reason_size, "_Py_DebugOffsets contradicts the process: %s",
			 verifier->field);
	else
		snprintf(reason, reason_size,
			 "the process is not laid out as those of Python %s that are known: %s",
			 py_version_format(verifier->offsets->version, version, sizeof(version)),
			 verifier->field);
}

enum py_attach_error py_verify__run(struct py_target *target, const struct py_thread *threads, size_t count,
				    char *reason, size_t reason_size)
{
	struct verifier verifier = {.target = target, .offsets = &target->offsets};
	enum outcome outcome = FAILED;

	if (target->offsets.frame_localsplus > MAX_FRAME || target->offsets.code_size > MAX_CODE)
		return PY_ATTACH_SYSTEM;
	if (!check_thread_ids(&verifier, threads, count) && !verifier.err) {
		contradict(&verifier, "thread_state.thread_id is no thread's pointer");
	} else if (check_links(&verifier, threads, count)) {
		for (int look = 0; look < LOOKS && outcome == FAILED && !verifier.err; look++)
			outcome = check_threads(&verifier, threads, count);
	}
	if (verifier.err)
		return py_attach_errno(verifier.err, reason, reason_size);
	if (outcome != FAILED)
		return PY_ATTACH_OK;
	explain(&verifier, reason, reason_size);
	return PY_ATTACH_CORRUPT;
}
