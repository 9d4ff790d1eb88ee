/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The dump: interpreters, their threads in order, with their names.
 */
#include "run/dumper_parts.h"

#include "base/log.h"
#include "base/util.h"
#include "os/proc.h"
#include "py/thread_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NATIVES_MAX 65536

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
 * thread that holds the GIL meanwhile is taken for the one that collects; without a GIL the one that has
 * stopped all others.
 */
static void mark_collector(struct dumper *dumper, struct watched *watched, const struct unwind_interp *interp)
{
	uint16_t collector = dumper->process.target.layout.collector;
	struct dump_thread *made = &watched->made;

	if (!interp->readable || !interp->collecting)
		return;
	if (collector != PBP_COLLECTOR_FRAME) {
		made->collects = collector == PBP_COLLECTOR_ATTACHED ? made->gil == DUMP_GIL_HOLDS
								     : watched->stack.flags & PBP_SAMPLE_GC;
		return;
	}
	for (size_t i = 0; interp->gc_frame && i < made->frames.len; i++) {
		made->frames.items[i].collects =
			watched->stack.addresses.items[watched->raw.items[i]] == interp->gc_frame;
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
		made->name = dumper_add_text(dumper, comm, strlen(comm));
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
		struct dump_native native = {.tid = tid,
					     .inner_id = dumper->process.inner_pid
								 ? pidns__inner_tid(dumper->process.pid, tid)
								 : 0};
		char comm[64];

		if (hmap__get(&known, tid) || proc__task_comm(dumper->process.pid, tid, comm, sizeof(comm)))
			continue;
		look = dumper_look_at(dumper, tid);
		native.run = dumper_run_state(dumper, &look);
		native.wait = look.state == TASK_WAITING ? task__syscall_name(look.syscall) : NULL;
		native.name = dumper_add_text(dumper, comm, strlen(comm));
		err = vec__push(&dumper->out->natives, native);
	}
	hmap__free(&known);
	vec__free(&tasks.tids);
	return err;
}

static void describe_process(struct dumper *dumper)
{
	const struct py_offsets *offsets = &dumper->process.target.offsets;
	char command[4096], version[sizeof(dumper->out->version) - 1];
	struct buf halted = {0};

	py_version_format(offsets->version, version, sizeof(version));
	snprintf(dumper->out->version, sizeof(dumper->out->version), "%s%s", version,
		 offsets->free_threaded ? "t" : "");
	dumper->out->inner_pid = dumper->process.inner_pid;
	halt__describe(&dumper->halt, &halted);
	if (!halted.err && halted.len)
		dumper->out->halted = dumper_add_text(dumper, halted.data, halted.len);
	buf__free(&halted);
	if (!proc__cmdline(dumper->process.pid, command, sizeof(command)))
		dumper->out->command = dumper_add_text(dumper, command, strlen(command));
}

int dumper_hand_over(struct dumper *dumper)
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
