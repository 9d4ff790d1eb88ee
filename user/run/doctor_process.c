/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See doctor_process.h. Its facts are an attach's (py/target.h), its threads those of a dump (run/dumper.h),
 * which proves at the same time that stacks can be read.
 */
#include "run/doctor_process.h"

#include "base/log.h"
#include "base/utf8.h"
#include "base/util.h"
#include "os/maps.h"
#include "os/proc.h"
#include "py/build.h"
#include "py/features.h"
#include "py/unwind.h"
#include "run/dumper.h"
#include "run/engine.h"
#include "run/process.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COLUMNS	     80
#define FACT_COLUMN  20
#define GIVEN_COLUMN 24
#define NATIVES_MAX  8 /* named */
#define INTERPS_MAX  8
#define BPF_RATE_HZ  99

struct doctor {
	struct buf *out;
	struct process process;
	struct unwinder unwinder; /* for the interpreters */
	struct dump dump;
};

/* --- lines --- */

/* The words of `text` from the column on that the line is at; lines that follow begin there, too. */
static void add_words(struct buf *out, size_t column, const char *text)
{
	size_t at = column;

	for (const char *word = text; *word;) {
		size_t len = strcspn(word, " "), width = utf8_width(word, len);

		if (at > column && at + 1 + width > COLUMNS) {
			buf__addf(out, "\n%*s", (int)column, "");
			at = column;
		} else if (word > text) {
			buf__addc(out, ' ');
			at++;
		}
		buf__add(out, word, len);
		at += width;
		word += len + strspn(word + len, " ");
	}
	buf__addc(out, '\n');
}

/* Takes the text over. */
static void add_fact(struct doctor *doctor, const char *name, struct buf *text)
{
	buf__addc(text, '\0');
	buf__addf(doctor->out, "  %-*s", FACT_COLUMN - 2, name);
	add_words(doctor->out, FACT_COLUMN, text->err ? "" : text->data);
	doctor->out->err = doctor->out->err ?: text->err;
	buf__free(text);
}

static void add_given(struct doctor *doctor, const char *name, bool given, const char *how)
{
	buf__addf(doctor->out, "  %-16s  %-4s", name, given ? "yes" : "NO");
	add_words(doctor->out, GIVEN_COLUMN, how);
}

/* --- facts --- */

static enum session_error fail(pid_t pid, enum session_error error, const char *reason)
{
	log_err("cannot read process %d: %s", pid, reason);
	return error;
}

static enum session_error fail_attach(pid_t pid, enum py_attach_error error, const char *reason)
{
	switch (error) {
	case PY_ATTACH_DENIED:
		return fail(pid, SESSION_NOT_PERMITTED, reason);
	case PY_ATTACH_NOT_PYTHON:
	case PY_ATTACH_UNSUPPORTED:
		return fail(pid, SESSION_NOT_PYTHON, reason);
	default:
		return fail(pid, SESSION_FAILED, reason);
	}
}

static void add_title(struct doctor *doctor)
{
	char command[4096], number[PIDNS_TEXT];

	buf__addf(doctor->out, "Process %s: ", process__number(&doctor->process, number));
	if (!proc__cmdline(doctor->process.pid, command, sizeof(command)))
		buf__add_escaped(doctor->out, command, NULL);
	buf__addc(doctor->out, '\n');
}

/* Code that the JIT made, or libffi, or another one that makes code. */
static bool has_made_code(pid_t pid)
{
	struct maps maps = {0};
	bool found = false;

	if (!maps__read(&maps, pid))
		for (size_t i = 0; i < maps.entries.len; i++) {
			const struct map_entry *entry = &maps.entries.items[i];

			found |= entry->exec && !entry->inode &&
				 (!entry->path[0] || !strncmp(entry->path, "[anon", 5));
		}
	maps__free(&maps);
	return found;
}

static py_addr main_gil(const struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->unwinder.interps.len; i++)
		if (doctor->unwinder.interps.items[i].id == 0)
			return doctor->unwinder.interps.items[i].gil;
	return 0;
}

static void add_build(struct doctor *doctor)
{
	struct py_target *target = &doctor->process.target;
	struct py_build build = py_build__read(target);
	enum py_answer gil = py_build__gil(target, main_gil(doctor));
	struct buf text = {0};
	char version[24];

	buf__adds(&text, py_version_format(target->offsets.version, version, sizeof(version)));
	buf__adds(&text, target->offsets.free_threaded ? "t, free-threaded, " : ", ");
	buf__adds(&text, build.debug == PY_YES	? "debug build"
			 : build.debug == PY_NO ? "release build"
						: "whether it is a debug build is not told");
	buf__adds(&text, gil == PY_YES ? ", GIL on" : gil == PY_NO ? ", GIL off" : ", GIL not known");
	if (build.jit == PY_YES)
		buf__addf(&text, ", JIT built in (%s)",
			  has_made_code(target->pid) ? "there is code that was made at run time"
						     : "it has made no code so far");
	else
		buf__adds(&text, build.jit == PY_NO ? ", no JIT" : ", a JIT is not told");
	add_fact(doctor, "Python", &text);
}

static void add_files(struct doctor *doctor)
{
	const struct py_target *target = &doctor->process.target;
	bool scanned = !strcmp(target->how, "scan");
	struct buf text = {0};
	char exe[4096];
	int err = proc__exe(target->pid, exe, sizeof(exe));

	if (err)
		buf__addf(&text, "not told: %s", strerror(-err));
	else
		buf__add_escaped(&text, exe, NULL);
	add_fact(doctor, "executable", &text);

	text = (struct buf){0};
	buf__addf(&text, "0x%" PRIx64 ", %s%s in ", target->runtime, scanned ? "by its cookie" : target->how,
		  scanned			    ? ""
		  : !strcmp(target->how, "section") ? " .PyRuntime"
						    : " _PyRuntime");
	buf__add_escaped(&text, target->image, NULL);
	add_fact(doctor, "_PyRuntime", &text);
}

/* Only if something keeps it from running. */
static void add_halt(struct doctor *doctor)
{
	struct buf text = {0};

	if (!doctor->dump.halted)
		return;
	buf__addf(&text, "%s: there is nothing to sample until it goes on",
		  strtab__get(doctor->dump.strings, doctor->dump.halted));
	add_fact(doctor, "state", &text);
}

static void add_text_fact(struct doctor *doctor, const char *name, const char *words)
{
	struct buf text = {0};

	buf__adds(&text, words);
	add_fact(doctor, name, &text);
}

/* --- interpreters and threads --- */

static const struct unwind_interp *interp_of(const struct doctor *doctor, int64_t id)
{
	for (size_t i = 0; i < doctor->unwinder.interps.len; i++)
		if (doctor->unwinder.interps.items[i].id == id)
			return &doctor->unwinder.interps.items[i];
	return NULL;
}

static void add_interpreters(struct doctor *doctor)
{
	bool knows_gils = doctor->process.target.offsets.interp_ceval_gil != PY_ABSENT;
	size_t count = doctor->dump.interpreters.len;
	struct buf text = {0};

	for (size_t i = 0; i < count && i < INTERPS_MAX; i++) {
		int64_t id = doctor->dump.interpreters.items[i].id;
		const struct unwind_interp *interp = interp_of(doctor, id);

		buf__addf(&text, "%s%" PRId64, i ? ", " : "", id);
		if (!id)
			buf__adds(&text, " (main)");
		else if (knows_gils && interp)
			buf__adds(&text,
				  interp->gil == main_gil(doctor) ? " (the main one's GIL)" : " (own GIL)");
	}
	if (count > INTERPS_MAX)
		buf__addf(&text, " and %zu more", count - INTERPS_MAX);
	if (count > 1 && !knows_gils)
		buf__adds(&text, "; one GIL for all");
	add_fact(doctor, "interpreters", &text);
}

static void add_natives(struct doctor *doctor, struct buf *text)
{
	size_t count = doctor->dump.natives.len;

	buf__addf(text, ", %zu native without one", count);
	for (size_t i = 0; i < count && i < NATIVES_MAX; i++) {
		buf__addf(text, "%s%d (", i ? ", " : ": ", doctor->dump.natives.items[i].tid);
		buf__add_escaped(text, strtab__get(doctor->dump.strings, doctor->dump.natives.items[i].name),
				 NULL);
		buf__addc(text, ')');
	}
	if (count > NATIVES_MAX)
		buf__addf(text, " and %zu more", count - NATIVES_MAX);
}

struct thread_counts {
	size_t states, read, moving, without_id;
};

static struct thread_counts count_threads(const struct dump *dump)
{
	struct thread_counts counts = {0};

	for (size_t i = 0; i < dump->interpreters.len; i++)
		for (size_t j = 0; j < dump->interpreters.items[i].threads.len; j++) {
			const struct dump_thread *thread = &dump->interpreters.items[i].threads.items[j];

			counts.states++;
			counts.without_id += !thread->tid;
			counts.read += thread->stack == DUMP_STACK_READ || thread->stack == DUMP_STACK_EMPTY;
			counts.moving += !thread->consistent;
		}
	return counts;
}

static void add_threads(struct doctor *doctor)
{
	struct thread_counts counts = count_threads(&doctor->dump);
	struct buf text = {0};

	buf__addf(&text, "%zu with a thread state", counts.states);
	if (counts.without_id)
		buf__addf(&text, "; which the kernel's ids of %zu are is not told, nor what others there are",
			  counts.without_id);
	else
		add_natives(doctor, &text);
	add_fact(doctor, "threads", &text);

	text = (struct buf){0};
	buf__addf(&text, "of %zu of %zu thread state%s read", counts.read, counts.states,
		  plural(counts.states));
	if (counts.moving)
		buf__addf(&text, "; %zu changed during each of %u readings", counts.moving,
			  doctor->dump.readings);
	else
		buf__adds(&text, ", twice the same");
	add_fact(doctor, "stacks", &text);
}

/* --- what it gives --- */

/* By loading the program; it is put on no timer. Returns whether it loads. */
static bool add_engines(struct doctor *doctor)
{
	struct engine_config config = {.kind = ENGINE_BPF, .rate_hz = BPF_RATE_HZ};
	struct engine engine = {0};
	char reason[512];
	int err = engine__open(&engine, &config, reason, sizeof(reason));

	add_given(doctor, "bpf engine", !err, err ? reason : "permitted, and its program loads");
	engine__close(&engine);
	add_given(doctor, "readv engine", true, "its memory may be read");
	return !err;
}

static void add_features(struct doctor *doctor)
{
	struct py_target *target = &doctor->process.target;
	struct py_feature features[PY_FEATURES_MAX];
	size_t count = py_features__list(target, features);

	for (size_t i = 0; i < count; i++)
		add_given(doctor, features[i].name, features[i].given, features[i].how);
	if (py_features__is_marked(target))
		add_words(doctor->out, 0,
			  "Another profiler has set the frame marker: --frame-marker refuses.");
}

static int describe(struct doctor *doctor)
{
	const struct py_target *target = &doctor->process.target;
	bool with_bpf;

	add_title(doctor);
	add_halt(doctor);
	add_build(doctor);
	add_files(doctor);
	add_text_fact(doctor, "offsets", py_features__origin(target));
	add_text_fact(doctor, "thread state by", target->slot_how);
	add_interpreters(doctor);
	add_threads(doctor);
	buf__addc(doctor->out, '\n');
	with_bpf = add_engines(doctor);
	add_features(doctor);
	buf__addf(doctor->out, "=> profiling works%s: pybpfprof -p %d\n",
		  with_bpf ? "" : ", by the readv engine", target->pid);
	return doctor->out->err;
}

/* --- the whole --- */

static enum session_error read_process(struct doctor *doctor)
{
	struct dumper_config config = {.pid = doctor->process.pid};
	enum session_error session_error;
	enum py_attach_error error;
	char reason[512];
	int err;

	error = process__attach_patiently(&doctor->process, reason, sizeof(reason));
	if (error)
		return fail_attach(config.pid, error, reason);
	if (unwinder__init(&doctor->unwinder, &doctor->process.target))
		return fail(config.pid, SESSION_FAILED, "its thread states are larger than supported");
	err = unwinder__find_interpreters(&doctor->unwinder);
	if (err)
		return fail(config.pid, SESSION_FAILED, strerror(-err));
	session_error = dumper__run(&doctor->dump, &config);
	if (session_error)
		return session_error;
	err = describe(doctor);
	if (!err && !py_target__is_alive(&doctor->process.target))
		return fail(config.pid, SESSION_FAILED, "it ended or became another program meanwhile");
	return err ? fail(config.pid, SESSION_FAILED, strerror(-err)) : SESSION_OK;
}

enum session_error doctor_process__run(pid_t pid, struct buf *out)
{
	struct doctor doctor = {.out = out, .process.pidfd = -1};
	enum session_error error;
	char reason[512];
	int err = dump__init(&doctor.dump, pid);

	err = err ?: process__open(&doctor.process, pid, doctor.dump.strings);
	if (err) {
		process__explain_missing(pid, err, reason, sizeof(reason));
		error = fail(pid, SESSION_FAILED, reason);
	} else {
		error = read_process(&doctor);
	}
	unwinder__free(&doctor.unwinder);
	process__close(&doctor.process);
	dump__free(&doctor.dump);
	return error;
}
