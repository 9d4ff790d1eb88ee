/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See dumper.h; the parts are in dumper_parts.h. A watched thread keeps what was made of its stack as long as
 * the readings agree, so that only threads that move are looked up again.
 */
#include "run/dumper.h"

#include "base/log.h"
#include "run/dumper_parts.h"

#include <errno.h>
#include <string.h>

#define READINGS_MAX 20
#define ENTRIES_MAX  20000000 /* of dicts and sets: some seconds */

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
		    error == PY_ATTACH_DENIED	     ? SESSION_NOT_PERMITTED
		    : error == PY_ATTACH_NOT_PYTHON  ? SESSION_NOT_PYTHON
		    : error == PY_ATTACH_UNSUPPORTED ? SESSION_NOT_PYTHON
						     : SESSION_FAILED,
		    reason);
}

/* --- a whole reading --- */

static int read_all(struct dumper *dumper)
{
	int err = unwinder__find_interpreters(&dumper->unwinder) ?:
		  dumper_list_threads(dumper) ?:
		  dumper_read_stacks(dumper);

	halt__look(&dumper->halt, dumper->process.pid);
	for (size_t i = 0; i < dumper->watched.len && !err; i++) {
		struct watched *watched = dumper->watched.items[i];

		watched->agrees = dumper_agrees(watched);
		dumper_take_state(dumper, watched);
	}
	return err;
}

static int make_changed(struct dumper *dumper)
{
	int err = 0;

	for (size_t i = 0; i < dumper->watched.len && !err; i++)
		if (!dumper->watched.items[i]->agrees)
			err = dumper_make_thread(dumper, dumper->watched.items[i]);
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
		dumper_settle_state(dumper);
		dumper_compare_locals(dumper);
	}
	return err;
}

static void close_dumper(struct dumper *dumper)
{
	for (size_t i = 0; i < dumper->watched.len; i++)
		dumper_free_watched(dumper->watched.items[i]);
	vec__free(&dumper->watched);
	vec__free(&dumper->batch);
	thread_ids__free(&dumper->ids);
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
	dumper->objects.entries_left = ENTRIES_MAX;
	py_locals__init(&dumper->locals, &dumper->objects, dumper->out->strings);
	dumper->out->locals_known = py_locals__are_known(&dumper->objects);
	err = read_until_agreed(dumper) ?: dumper_hand_over(dumper);
	/* An exec meanwhile: what was read of the old program's addresses means nothing. */
	if (!err && !py_target__is_alive(&dumper->process.target))
		return fail(pid, SESSION_FAILED, "it ended or became another program meanwhile");
	return err ? fail_errno(pid, err) : SESSION_OK;
}

enum session_error dumper__run(struct dump *out, const struct dumper_config *config)
{
	struct dumper dumper = {.out = out};
	enum session_error error;
	char reason[512];
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
