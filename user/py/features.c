/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See features.h. A feature is there if what it is read from is: nothing here asks for a version.
 */
#include "py/features.h"

#include "base/util.h"
#include "py/copies.h"
#include "py/locals.h"
#include "py/thread_names.h"

#include <assert.h>

#define THREADS_MAX 1024 /* looked at for markers */

struct list {
	struct py_feature *items;
	size_t count;
};

static void add(struct list *list, const char *name, bool given, const char *how)
{
	assert(list->count < PY_FEATURES_MAX);
	list->items[list->count++] = (struct py_feature){name, given, how};
}

/* --- of code --- */

static void add_code(struct list *list, const struct py_offsets *offsets)
{
	add(list, "qualified names", offsets->code_qualname != PY_ABSENT,
	    offsets->code_qualname != PY_ABSENT ? "Class.method" : "code objects of this version have none");
	add(list, "line numbers", true,
	    py_copies__exist(offsets)
		    ? "executing lines, found in the threads' copies of the code; no columns"
		    : "executing lines; no columns");
	add(list, "JIT", offsets->thread_executor != PY_ABSENT,
	    offsets->thread_executor != PY_ABSENT ? "lines in code that it made are marked with ~"
						  : "threads of this version tell of none");
	add(list, "code identity", true,
	    offsets->code_version != PY_ABSENT ? "reused addresses are told by the code's version number"
					       : "reused addresses are told by what the code is made of");
}

/* --- of stacks --- */

static const char *calls_from_c(const struct py_offsets *offsets)
{
	if (offsets->frame_owner == PY_ABSENT)
		return "every function is called through C in this version";
	return offsets->frame_entry != PY_ABSENT ? "frames say whether C called them"
						 : "entry frames lie between those that C called";
}

static void add_stacks(struct list *list, const struct py_offsets *offsets)
{
	add(list, "calls from C", true, calls_from_c(offsets));
	add(list, "generators", true, "below one that runs is what resumed it");
	add(list, "sub-interpreters", true,
	    offsets->runtime_current_tstate != PY_ABSENT
		    ? "below is what entered them; with the GIL released only that"
		    : "below is what entered them");
	add(list, "frame marker", offsets->thread_last_profiled != PY_ABSENT,
	    offsets->thread_last_profiled != PY_ABSENT ? "--frame-marker, with the readv engine"
						       : "thread states of this version have none");
}

/* --- of threads --- */

static bool tells_attached(const struct pbp_target *layout)
{
	return layout->ts_attached != PBP_NONE || layout->gil_tstate;
}

static void add_gil(struct list *list, const struct py_offsets *offsets, const struct pbp_target *layout)
{
	if (offsets->free_threaded) {
		add(list, "GIL holder", false, "free-threaded: it is told which threads are attached");
		add(list, "GIL wait", false, "free-threaded; of a GIL that is on, --mode gil tells it");
		return;
	}
	add(list, "GIL holder", tells_attached(layout),
	    tells_attached(layout) ? "with every sample and in dumps" : "its runtime does not tell");
	if (offsets->thread_gil_requested != PY_ABSENT)
		add(list, "GIL wait", true, "with --mode gil; in dumps, by the thread state");
	else if (offsets->interp_ceval_gil != PY_ABSENT)
		add(list, "GIL wait", true,
		    "with --mode gil, and in dumps, by the lock that a thread waits for");
	else
		add(list, "GIL wait", true, "with --mode gil; in dumps only the holder is known");
}

static void add_collector(struct list *list, const struct py_offsets *offsets,
			  const struct pbp_target *layout)
{
	bool told = layout->in_gc_collecting || layout->gc_collecting;

	if (!told)
		add(list, "collector", false, "where it tells is not known");
	else if (layout->collector == PBP_COLLECTOR_UNKNOWN)
		add(list, "collector", false, "garbage is being collected; not by which thread");
	else
		add(list, "collector", true,
		    py_offsets__has(offsets->interp_gc_frame)
			    ? "garbage is being collected, and which frame started it"
			    : "garbage is being collected; not which frame started it");
}

static void add_exceptions(struct list *list, const struct py_offsets *offsets)
{
	bool raised = offsets->thread_current_exception != PY_ABSENT;

	add(list, "exceptions", raised,
	    !raised					? "where a thread keeps its exception is not known"
	    : py_offsets__has(offsets->thread_exc_info) ? "one is being raised, or handled: --mode exception"
							: "one is being raised; not: one is being handled");
}

static void add_objects(struct list *list, struct py_target *target)
{
	static const char unknown[] = "objects of this version are not read";
	struct py_objects objects;
	bool names, locals;

	py_objects__init(&objects, target);
	names = py_thread_names__are_known(&objects);
	locals = py_locals__are_known(&objects);
	py_objects__free(&objects);
	add(list, "thread names", names,
	    names ? "as threading has them, in dumps and with --threads"
		  : "the kernel's only; objects of this version are not read");
	add(list, "variables", locals, locals ? "dump --locals" : unknown);
}

size_t py_features__list(struct py_target *target, struct py_feature out[PY_FEATURES_MAX])
{
	const struct py_offsets *offsets = &target->offsets;
	struct list list = {.items = out};

	add_code(&list, offsets);
	add_stacks(&list, offsets);
	add_gil(&list, offsets, &target->layout);
	add_collector(&list, offsets, &target->layout);
	add_exceptions(&list, offsets);
	add_objects(&list, target);
	return list.count;
}

const char *py_features__origin(const struct py_target *target)
{
	const struct py_offsets *offsets = &target->offsets;

	if (!py_offsets__are_in_process(offsets))
		return "this program's table of its version";
	/* Of those with copies of the bytecode there was no build to test. */
	if (py_copies__exist(offsets))
		return "its own table (_Py_DebugOffsets); what that lacks, from the headers of its version "
		       "only, not tested on such a build";
	return "its own table (_Py_DebugOffsets); what that lacks, by version";
}

bool py_features__is_marked(struct py_target *target)
{
	struct py_thread threads[THREADS_MAX];
	int count = target->offsets.thread_last_profiled == PY_ABSENT
			    ? 0
			    : py_target__threads(target, threads, THREADS_MAX);
	py_addr marker;

	for (int i = 0; i < count; i++)
		if (!remote__read(&target->remote, threads[i].tstate + target->offsets.thread_last_profiled,
				  &marker, sizeof(marker)) &&
		    marker)
			return true;
	return false;
}
