/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See dumper.h. A watched thread keeps what was made of its stack as long as the readings agree, so that only
 * threads that move are looked up again.
 */
#include "run/dumper.h"

#include "base/buf.h"
#include "base/hmap.h"
#include "base/log.h"
#include "base/util.h"
#include "os/proc.h"
#include "os/source.h"
#include "os/task.h"
#include "py/locals.h"
#include "py/object.h"
#include "py/thread_names.h"
#include "py/unwind.h"
#include "run/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#define READINGS_MAX 20
#define THREADS_MAX  65536
#define NATIVES_MAX  65536
#define FRAMES_MAX   (1u << 20) /* of all stacks: beyond, bases are cut off */
#define VALUES_MAX   (1u << 18) /* ... and of variables: beyond, frames come without them */
/* Stacks that are read in one call: so many, and with so much memory to copy. */
#define BATCH_THREADS	   256
#define BATCH_NEW_THREADS  16
#define BATCH_BYTES	   (64u << 20)
#define STATE_LOOKS	   5
#define STATE_PAUSE_NS	   100000
#define GIL_STRUCT_BYTES   208	     /* struct _gil_runtime_state with its mutexes and condition variables */
#define STATUS_HOLDS_GIL   (1u << 5) /* of PyThreadState._status in 3.13 */
#define EXCEPTION_ITEMS	   64
#define EXCEPTION_PREVIOUS 8 /* struct _err_stackitem {exc_value, previous_item} */
#define UNREADABLE_CODE	   "[code freed before it was read]"

/* One thread state, for as long as it is there. */
struct watched {
	struct thread_stack stack;
	pid_t tid;
	bool found;  /* in the last lists */
	bool agrees; /* its last two readings do */
	enum unwind_result before;
	struct dump_thread made;
	VEC(size_t) raw; /* for each frame that was made, its number in the stack */
};

struct dumper {
	struct dump *out;
	struct process process;
	struct unwinder unwinder;
	struct sources sources;
	struct hmap source_lines; /* file << 32 | line -> text */
	struct hmap inner_ids;
	bool same_ids;
	VEC(struct watched *) watched;
	struct hmap by_tstate; /* -> index in watched */
	VEC(struct thread_stack *) batch;
	struct py_objects objects;
	struct py_locals locals;
	struct hmap main_names, names; /* of threads by ident: of the main interpreter, of the others */
	size_t frames, values;	       /* in all that was made */
};

/* --- what is told when it fails --- */

static enum session_error fail(pid_t pid, enum session_error error, const char *reason)
{
	log_err("cannot read process %d: %s", pid, reason);
	return error;
}

static enum session_error fail_errno(pid_t pid, int err)
{
	if (err == -EPERM || err == -EACCES)
		return fail(pid, SESSION_NOT_PERMITTED, "permission denied");
	return fail(pid, SESSION_FAILED, err == -ESRCH ? "it has ended" : strerror(-err));
}

static enum session_error fail_attach(pid_t pid, enum py_attach_error error, const char *reason)
{
	return fail(pid,
		    error == PY_ATTACH_DENIED	    ? SESSION_NOT_PERMITTED
		    : error == PY_ATTACH_NOT_PYTHON ? SESSION_NOT_PYTHON
						    : SESSION_FAILED,
		    reason);
}

/* --- threads --- */

static void free_watched(struct watched *watched)
{
	thread_stack__free(&watched->stack);
	dump_thread__free(&watched->made);
	vec__free(&watched->raw);
	free(watched);
}

static struct watched *find_watched(const struct dumper *dumper, const struct py_thread *thread)
{
	const uint64_t *index = hmap__get(&dumper->by_tstate, thread->tstate);
	struct watched *watched = index ? dumper->watched.items[*index] : NULL;

	return watched && watched->stack.thread.thread_id == thread->thread_id &&
			       watched->stack.thread.interp == thread->interp
		       ? watched
		       : NULL;
}

static int index_watched(struct dumper *dumper)
{
	int err = 0;

	hmap__clear(&dumper->by_tstate);
	for (size_t i = 0; i < dumper->watched.len && !err; i++)
		err = hmap__set(&dumper->by_tstate, dumper->watched.items[i]->stack.thread.tstate, i);
	return err;
}

static pid_t outer_tid(const struct dumper *dumper, uint64_t native_id)
{
	const uint64_t *outer = dumper->same_ids ? NULL : hmap__get(&dumper->inner_ids, native_id);

	return dumper->same_ids ? (pid_t)native_id : outer ? (pid_t)*outer : 0;
}

static int note_thread(struct dumper *dumper, const struct py_thread *thread)
{
	struct watched *watched = find_watched(dumper, thread);
	int err;

	/* No thread runs it yet. */
	if (!thread->thread_id)
		return 0;
	if (!watched) {
		watched = calloc(1, sizeof(*watched));
		if (!watched)
			return -ENOMEM;
		thread_stack__init(&watched->stack, thread);
		watched->before = UNWIND_GONE;
		err = vec__push(&dumper->watched, watched);
		if (err) {
			free_watched(watched);
			return err;
		}
	}
	watched->tid = outer_tid(dumper, thread->native_thread_id);
	watched->found = true;
	return 0;
}

static void drop_lost(struct dumper *dumper)
{
	size_t kept = 0;

	for (size_t i = 0; i < dumper->watched.len; i++) {
		if (dumper->watched.items[i]->found)
			dumper->watched.items[kept++] = dumper->watched.items[i];
		else
			free_watched(dumper->watched.items[i]);
	}
	dumper->watched.len = kept;
}

static int list_threads(struct dumper *dumper)
{
	struct py_thread *threads = NULL, *larger;
	int count = 0, err = 0;

	for (size_t max = 256; max <= THREADS_MAX; max *= 4) {
		larger = realloc(threads, max * sizeof(*threads));
		count = larger ? py_target__threads(&dumper->process.target, larger, max) : -ENOMEM;
		threads = larger ?: threads;
		if (count < (int)max)
			break;
	}
	for (size_t i = 0; i < dumper->watched.len; i++)
		dumper->watched.items[i]->found = false;
	for (int i = 0; i < count && !err; i++)
		err = note_thread(dumper, &threads[i]);
	free(threads);
	drop_lost(dumper);
	return count < 0 ? count : err ?: index_watched(dumper);
}

/* --- one reading of all stacks --- */

static int read_batch(struct dumper *dumper)
{
	int err = dumper->batch.len
			  ? unwinder__read(&dumper->unwinder, dumper->batch.items, dumper->batch.len)
			  : 0;

	dumper->batch.len = 0;
	return err;
}

/* In as few calls as the memory for the copies allows; what a new thread needs is not known before. */
static int read_stacks(struct dumper *dumper)
{
	size_t bytes = 0, fresh = 0;
	int err = 0;

	dumper->unwinder.want_gils = true;
	for (size_t i = 0; i < dumper->watched.len && !err; i++) {
		struct watched *watched = dumper->watched.items[i];

		watched->before = watched->stack.readings ? watched->stack.result : UNWIND_GONE;
		bytes += 2 * watched->stack.copy_bytes;
		fresh += !watched->stack.readings;
		err = vec__push(&dumper->batch, &watched->stack);
		if (!err && (dumper->batch.len >= BATCH_THREADS || fresh >= BATCH_NEW_THREADS ||
			     bytes > BATCH_BYTES)) {
			err = read_batch(dumper);
			bytes = fresh = 0;
		}
	}
	return err ?: read_batch(dumper);
}

/* Is the stack that was read the one that was read before, but for the line of the innermost frame? */
static bool is_same_stack(const struct thread_stack *stack)
{
	if (stack->same)
		return true;
	if (stack->frames.len != stack->last_frames.len || stack->moved)
		return false;
	for (size_t i = 0; i < stack->frames.len; i++) {
		const struct pbp_frame *now = &stack->frames.items[i], *then = &stack->last_frames.items[i];

		if (stack->addresses.items[i] != stack->last_addresses.items[i] || now->code != then->code ||
		    now->ident != then->ident || (i && now->instr != then->instr))
			return false;
	}
	return true;
}

static bool agrees(const struct watched *watched)
{
	const struct thread_stack *stack = &watched->stack;

	if (stack->result != watched->before)
		return false;
	return stack->result == UNWIND_NO_FRAMES || (stack->result == UNWIND_OK && is_same_stack(stack));
}

/* --- the state of a thread --- */

static const struct unwind_gil *gil_of(const struct dumper *dumper, const struct watched *watched)
{
	const struct unwind_interp *interp =
		unwinder__interp(&dumper->unwinder, watched->stack.thread.interp);

	for (size_t i = 0; interp && i < dumper->unwinder.gils.len; i++)
		if (dumper->unwinder.gils.items[i].address == interp->gil)
			return &dumper->unwinder.gils.items[i];
	return NULL;
}

static const uint8_t *state_field(const struct dumper *dumper, const struct watched *watched, uint32_t offset,
				  size_t width)
{
	return offset != PY_ABSENT && offset + width <= dumper->unwinder.thread_bytes
		       ? watched->stack.state + offset
		       : NULL;
}

static bool holds_gil(const struct dumper *dumper, const struct watched *watched,
		      const struct unwind_gil *gil)
{
	const struct py_offsets *offsets = &dumper->process.target.offsets;
	const uint8_t *flag = state_field(dumper, watched, offsets->thread_holds_gil, 4);

	if (flag)
		return load_u32(flag);
	flag = state_field(dumper, watched, offsets->thread_status, 4);
	if (flag && py_version_minor(offsets->version) == 13)
		return load_u32(flag) & STATUS_HOLDS_GIL;
	return gil && gil->holder == watched->stack.thread.tstate;
}

/* By what the thread says, or by what it waits for: a futex inside the GIL. */
static bool waits_for_gil(const struct dumper *dumper, const struct watched *watched,
			  const struct unwind_gil *gil, const struct task_look *look)
{
	const uint8_t *flag =
		state_field(dumper, watched, dumper->process.target.offsets.thread_gil_requested, 4);

	if (flag && load_u32(flag))
		return true;
	return gil && look->state == TASK_WAITING && look->syscall == SYS_futex &&
	       look->arg - gil->address < GIL_STRUCT_BYTES;
}

static enum dump_gil gil_state(const struct dumper *dumper, const struct watched *watched,
			       const struct task_look *look)
{
	const struct py_offsets *offsets = &dumper->process.target.offsets;
	const struct unwind_gil *gil = gil_of(dumper, watched);

	if (!gil && offsets->thread_holds_gil == PY_ABSENT)
		return DUMP_GIL_UNKNOWN;
	if (holds_gil(dumper, watched, gil))
		return DUMP_GIL_HOLDS;
	return waits_for_gil(dumper, watched, gil, look) ? DUMP_GIL_WAITS : DUMP_GIL_NONE;
}

/*
 * An exception that is being raised is in the thread state; those being handled are a list, which begins in
 * the generator or coroutine that runs, if one does (_PyErr_GetTopmostException).
 */
static enum dump_exception exception_state(struct dumper *dumper, const struct watched *watched)
{
	const struct py_offsets *offsets = &dumper->process.target.offsets;
	const uint8_t *current = state_field(dumper, watched, offsets->thread_current_exception, 8);
	const uint8_t *info = py_offsets__has(offsets->thread_exc_info)
				      ? state_field(dumper, watched, offsets->thread_exc_info, 8)
				      : NULL;
	const struct py_type *type = NULL;
	uint64_t item[2];
	py_addr at;

	if (!current)
		return DUMP_EXCEPTION_UNKNOWN;
	if (load_u64(current))
		return DUMP_EXCEPTION_RAISED;
	if (!info)
		return DUMP_EXCEPTION_UNKNOWN;
	at = load_u64(info);
	for (int i = 0; at && i < EXCEPTION_ITEMS; i++) {
		if (remote__read(&dumper->process.target.remote, at, item, sizeof(item)))
			return DUMP_EXCEPTION_UNKNOWN;
		if (item[0])
			type = py_object__type(&dumper->objects, item[0]);
		/* None stands for nothing here. */
		if (item[0] && !(type && type->kind == PY_KIND_NONE))
			return DUMP_EXCEPTION_HANDLED;
		at = item[1];
	}
	return DUMP_EXCEPTION_NONE;
}

static enum dump_run run_state(const struct task_look *look)
{
	return look->state == TASK_RUNNING   ? DUMP_RUNNING
	       : look->state == TASK_WAITING ? DUMP_WAITING
					     : DUMP_RUN_UNKNOWN;
}

static struct task_look look_at(const struct dumper *dumper, pid_t tid)
{
	struct task_look look = {.state = TASK_UNKNOWN, .syscall = -1};

	return tid ? task__look(dumper->process.pid, tid) : look;
}

static void take_state(struct dumper *dumper, struct watched *watched)
{
	struct task_look look = look_at(dumper, watched->tid);
	struct dump_thread *made = &watched->made;

	made->run = run_state(&look);
	made->wait = look.state == TASK_WAITING ? task__syscall_name(look.syscall) : NULL;
	made->gil = gil_state(dumper, watched, &look);
	made->exception = exception_state(dumper, watched);
}

/*
 * A thread that waits for the GIL runs for some microseconds every 5 ms, to ask for it. So one that was found
 * running, and does not hold it, is looked at again.
 */
static void settle_state(struct dumper *dumper)
{
	bool again = true;

	for (int i = 0; i < STATE_LOOKS && again; i++) {
		again = false;
		for (size_t j = 0; j < dumper->watched.len; j++) {
			struct watched *watched = dumper->watched.items[j];
			struct dump_thread *made = &watched->made;
			struct task_look look;

			if (made->run != DUMP_RUNNING || made->gil == DUMP_GIL_HOLDS ||
			    made->gil == DUMP_GIL_UNKNOWN)
				continue;
			look = look_at(dumper, watched->tid);
			again = true;
			if (waits_for_gil(dumper, watched, gil_of(dumper, watched), &look) &&
			    look.state == TASK_WAITING) {
				made->gil = DUMP_GIL_WAITS;
				made->run = DUMP_WAITING;
				made->wait = task__syscall_name(look.syscall);
			}
		}
		if (again)
			nanosleep(&(struct timespec){.tv_nsec = STATE_PAUSE_NS}, NULL);
	}
}

/* --- frames --- */

static uint32_t add_text(struct dumper *dumper, const char *text, size_t len)
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
	id = text ? add_text(dumper, text, len) : 0;
	hmap__set(&dumper->source_lines, key, id);
	return id;
}

/* False: helper code of CPython's own, which is no function of the program. */
static bool describe_frame(struct dumper *dumper, const struct pbp_frame *raw, struct dump_frame *frame)
{
	const struct code_cache *codes = &dumper->process.codes;
	const struct py_offsets *offsets = &dumper->process.target.offsets;
	uint32_t index = code_cache__find(codes, raw->code, raw->ident);
	const struct py_code *code = index == PY_CODE_NONE ? NULL : &codes->codes.items[index];

	*frame = (struct dump_frame){.from_c = raw->flags & PBP_FRAME_C_BELOW};
	if (code && code->state == PY_CODE_SHIM)
		return false;
	if (!code || code->state != PY_CODE_OK) {
		frame->function = add_text(dumper, UNREADABLE_CODE, strlen(UNREADABLE_CODE));
		return true;
	}
	frame->function = code->function;
	frame->file = code->file;
	frame->first_line = code->first_line > 0 ? code->first_line : 0;
	if (!(raw->flags & PBP_FRAME_MOVED))
		frame->line = py_code__line(code, offsets, py_code__lasti(code, offsets, raw->instr));
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

static void compare_all_locals(struct dumper *dumper)
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
	int err = code_cache__load(&dumper->process.codes, &dumper->process.target, stack->frames.items,
				   stack->frames.len, true);

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
static int make_thread(struct dumper *dumper, struct watched *watched)
{
	struct dump_thread *made = &watched->made;

	dumper->frames -= made->frames.len;
	dumper->values -= made->locals.len;
	made->frames.len = made->locals.len = watched->raw.len = 0;
	py_objects__forget(&dumper->objects);
	made->stack = stack_state(watched->stack.result);
	made->truncated = watched->stack.truncated;
	made->tid = watched->tid;
	made->inner_id = watched->stack.thread.native_thread_id;
	made->ident = watched->stack.thread.thread_id;
	made->main = watched->tid == dumper->process.pid;
	return make_frames(dumper, watched);
}

/* --- a whole reading --- */

static int read_all(struct dumper *dumper)
{
	int err = unwinder__find_interpreters(&dumper->unwinder) ?:
		  task__map_ids(dumper->process.pid, &dumper->inner_ids, &dumper->same_ids) ?:
		  list_threads(dumper) ?:
		  read_stacks(dumper);

	for (size_t i = 0; i < dumper->watched.len && !err; i++) {
		struct watched *watched = dumper->watched.items[i];

		watched->agrees = agrees(watched);
		take_state(dumper, watched);
	}
	return err;
}

static int make_changed(struct dumper *dumper)
{
	int err = 0;

	for (size_t i = 0; i < dumper->watched.len && !err; i++)
		if (!dumper->watched.items[i]->agrees)
			err = make_thread(dumper, dumper->watched.items[i]);
	return err;
}

static bool all_agree(const struct dumper *dumper)
{
	for (size_t i = 0; i < dumper->watched.len; i++)
		if (!dumper->watched.items[i]->agrees)
			return false;
	return true;
}

/* What was made of a stack stands if the next reading finds the same stack. */
static int read_until_agreed(struct dumper *dumper)
{
	struct dump *out = dumper->out;
	int err = 0;

	while (!err && out->readings < READINGS_MAX) {
		err = read_all(dumper);
		out->readings++;
		if (!err && out->readings > 1 && all_agree(dumper))
			break;
		err = err ?: make_changed(dumper);
	}
	out->consistent = all_agree(dumper);
	if (!err) {
		settle_state(dumper);
		compare_all_locals(dumper);
	}
	return err;
}

/* --- the dump --- */

static struct dump_interpreter *interpreter_of(struct dump *out, int64_t id)
{
	for (size_t i = 0; i < out->interpreters.len; i++)
		if (out->interpreters.items[i].id == id)
			return &out->interpreters.items[i];
	return NULL;
}

static int compare_interpreters(const void *a, const void *b)
{
	const struct dump_interpreter *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static int compare_threads(const void *a, const void *b)
{
	const struct dump_thread *x = a, *y = b;

	if (x->main != y->main)
		return x->main ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->ident > y->ident) - (x->ident < y->ident);
}

/*
 * The frame that started a collection, which is its thread's from then on. Where a version does not tell, the
 * thread that holds the GIL meanwhile is taken for the one that collects.
 */
static void mark_collector(struct dumper *dumper, struct watched *watched, const struct unwind_interp *interp)
{
	uint32_t offset = dumper->process.target.offsets.interp_gc_frame,
		 first = dumper->unwinder.interp_first;
	struct dump_thread *made = &watched->made;
	py_addr frame;

	if (!interp->readable || !interp->collecting)
		return;
	if (!py_offsets__has(offset) || offset < first || offset + 8 > first + dumper->unwinder.interp_len) {
		made->collects = made->gil == DUMP_GIL_HOLDS;
		return;
	}
	frame = load_u64(interp->bytes + offset - first);
	for (size_t i = 0; frame && i < made->frames.len; i++) {
		made->frames.items[i].collects =
			watched->stack.addresses.items[watched->raw.items[i]] == frame;
		made->collects |= made->frames.items[i].collects;
	}
}

/* The main interpreter's name for a thread goes before that of another one which the thread has entered. */
static void read_names(struct dumper *dumper)
{
	py_objects__forget(&dumper->objects);
	for (size_t i = 0; i < dumper->unwinder.interps.len; i++) {
		const struct unwind_interp *interp = &dumper->unwinder.interps.items[i];
		int err = py_thread_names__read(&dumper->objects, interp->address, dumper->out->strings,
						interp->id ? &dumper->names : &dumper->main_names);

		log_dbg("dumper", "names of threads in interpreter %lld: %s", (long long)interp->id,
			err ? strerror(-err) : "read");
	}
}

static void name_thread(struct dumper *dumper, struct dump_thread *made)
{
	const uint64_t *known =
		hmap__get(&dumper->main_names, made->ident) ?: hmap__get(&dumper->names, made->ident);
	char comm[64];

	if (known && *known) {
		made->name = *known;
		made->name_is_python = true;
	} else if (made->tid && !proc__task_comm(dumper->process.pid, made->tid, comm, sizeof(comm))) {
		made->name = add_text(dumper, comm, strlen(comm));
	}
}

static int hand_over_thread(struct dumper *dumper, struct watched *watched)
{
	const struct unwind_interp *interp =
		unwinder__interp(&dumper->unwinder, watched->stack.thread.interp);
	struct dump_interpreter *interpreter = interp ? interpreter_of(dumper->out, interp->id) : NULL;
	int err;

	/* It ended meanwhile. */
	if (!interpreter || watched->stack.result == UNWIND_GONE)
		return 0;
	watched->made.consistent = watched->agrees;
	name_thread(dumper, &watched->made);
	mark_collector(dumper, watched, interp);
	err = vec__push(&interpreter->threads, watched->made);
	if (!err)
		watched->made = (struct dump_thread){0};
	return err;
}

static int hand_over_natives(struct dumper *dumper)
{
	struct proc_tasks tasks;
	struct hmap known = {0};
	int err = proc__tasks(dumper->process.pid, &tasks);

	for (size_t i = 0; i < dumper->watched.len && !err; i++)
		err = hmap__set(&known, dumper->watched.items[i]->tid, 1);
	/* Without the ids of those with a thread state the others are not known either. */
	for (size_t i = 0; i < tasks.tids.len && i < NATIVES_MAX && !err && !hmap__get(&known, 0); i++) {
		pid_t tid = tasks.tids.items[i];
		struct task_look look;
		struct dump_native native = {.tid = tid};
		char comm[64];

		if (hmap__get(&known, tid) || proc__task_comm(dumper->process.pid, tid, comm, sizeof(comm)))
			continue;
		look = look_at(dumper, tid);
		native.run = run_state(&look);
		native.wait = look.state == TASK_WAITING ? task__syscall_name(look.syscall) : NULL;
		native.name = add_text(dumper, comm, strlen(comm));
		err = vec__push(&dumper->out->natives, native);
	}
	hmap__free(&known);
	vec__free(&tasks.tids);
	return err;
}

static void describe_process(struct dumper *dumper)
{
	char command[4096];

	py_version_format(dumper->process.target.offsets.version, dumper->out->version,
			  sizeof(dumper->out->version));
	if (!proc__cmdline(dumper->process.pid, command, sizeof(command)))
		dumper->out->command = add_text(dumper, command, strlen(command));
}

static int hand_over(struct dumper *dumper)
{
	struct dump *out = dumper->out;
	int err = 0;

	for (size_t i = 0; i < dumper->unwinder.interps.len && !err; i++) {
		const struct unwind_interp *interp = &dumper->unwinder.interps.items[i];
		struct dump_interpreter interpreter = {.id = interp->id, .collecting = interp->collecting};

		if (!interpreter_of(out, interp->id))
			err = vec__push(&out->interpreters, interpreter);
	}
	read_names(dumper);
	for (size_t i = 0; i < dumper->watched.len && !err; i++)
		err = hand_over_thread(dumper, dumper->watched.items[i]);
	if (out->interpreters.len)
		qsort(out->interpreters.items, out->interpreters.len, sizeof(*out->interpreters.items),
		      compare_interpreters);
	for (size_t i = 0; i < out->interpreters.len; i++)
		if (out->interpreters.items[i].threads.len)
			qsort(out->interpreters.items[i].threads.items,
			      out->interpreters.items[i].threads.len, sizeof(struct dump_thread),
			      compare_threads);
	describe_process(dumper);
	return err ?: hand_over_natives(dumper);
}

static void close_dumper(struct dumper *dumper)
{
	for (size_t i = 0; i < dumper->watched.len; i++)
		free_watched(dumper->watched.items[i]);
	vec__free(&dumper->watched);
	vec__free(&dumper->batch);
	hmap__free(&dumper->inner_ids);
	hmap__free(&dumper->by_tstate);
	hmap__free(&dumper->source_lines);
	hmap__free(&dumper->main_names);
	hmap__free(&dumper->names);
	py_locals__free(&dumper->locals);
	py_objects__free(&dumper->objects);
	sources__free(&dumper->sources);
	unwinder__free(&dumper->unwinder);
	process__close(&dumper->process);
}

static enum session_error read_process(struct dumper *dumper)
{
	pid_t pid = dumper->process.pid;
	enum py_attach_error error;
	char reason[512];
	int err;

	error = process__attach_patiently(&dumper->process, reason, sizeof(reason));
	if (error)
		return fail_attach(pid, error, reason);
	if (unwinder__init(&dumper->unwinder, &dumper->process.target))
		return fail(pid, SESSION_FAILED, "its thread states are larger than supported");
	py_objects__init(&dumper->objects, &dumper->process.target);
	py_locals__init(&dumper->locals, &dumper->objects, dumper->out->strings);
	err = read_until_agreed(dumper) ?: hand_over(dumper);
	/* An exec meanwhile: what was read of the old program's addresses means nothing. */
	if (!err && !py_target__is_alive(&dumper->process.target))
		return fail(pid, SESSION_FAILED, "it ended or became another program meanwhile");
	return err ? fail_errno(pid, err) : SESSION_OK;
}

enum session_error dumper__run(struct dump *out, const struct dumper_config *config)
{
	struct dumper dumper = {.out = out};
	enum session_error error;
	char reason[128];
	int err;

	out->with_locals = config->locals;
	sources__init(&dumper.sources, config->pid);
	err = process__open(&dumper.process, config->pid, out->strings);
	if (err) {
		process__explain_missing(config->pid, err, reason, sizeof(reason));
		error = fail(config->pid, SESSION_FAILED, reason);
	} else {
		error = read_process(&dumper);
	}
	close_dumper(&dumper);
	return error;
}
