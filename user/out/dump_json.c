/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The object that dump_writer.h describes: a line for each thread and each frame.
 */
#include "out/dump_writer.h"

#include "base/json.h"
#include "base/utf8.h"

#include <inttypes.h>

static const char *const RUN[] = {[DUMP_RUN_UNKNOWN] = "unknown",
				  [DUMP_RUNNING] = "running",
				  [DUMP_WAITING] = "waiting",
				  [DUMP_STOPPED] = "stopped",
				  [DUMP_FROZEN] = "frozen"};
static const char *const GIL[] = {[DUMP_GIL_UNKNOWN] = "unknown",
				  [DUMP_GIL_NONE] = "none",
				  [DUMP_GIL_WAITS] = "waits",
				  [DUMP_GIL_HOLDS] = "holds"};
static const char *const EXCEPTION[] = {[DUMP_EXCEPTION_UNKNOWN] = "unknown",
					[DUMP_EXCEPTION_NONE] = "none",
					[DUMP_EXCEPTION_RAISED] = "raising",
					[DUMP_EXCEPTION_HANDLED] = "handling"};
static const char *const STACK[] = {[DUMP_STACK_READ] = "read",
				    [DUMP_STACK_EMPTY] = "empty",
				    [DUMP_STACK_CHANGING] = "changing",
				    [DUMP_STACK_UNREADABLE] = "unreadable"};

static void add_key(struct buf *buf, const char *key)
{
	buf__addf(buf, "\"%s\": ", key);
}

static bool is_utf8(const char *text, size_t len)
{
	size_t step = 1;
	uint32_t code;

	for (size_t at = 0; at < len && step; at += step)
		step = utf8_decode(text + at, len - at, &code);
	return step != 0;
}

/* What JSON cannot hold is escaped as in the other form. */
static void add_text(struct buf *buf, const struct dump *dump, const char *key, uint32_t text)
{
	const char *bytes = strtab__get(dump->strings, text);
	size_t len = strtab__len(dump->strings, text);
	struct buf escaped = {0};

	add_key(buf, key);
	if (!is_utf8(bytes, len)) {
		buf__add_escaped(&escaped, bytes, NULL);
		bytes = escaped.data ?: "";
		len = escaped.len;
	}
	json__string(buf, bytes, len);
	buf->err = buf->err ?: escaped.err;
	buf__free(&escaped);
	buf__adds(buf, ", ");
}

/* null for the empty string. */
static void add_known_text(struct buf *buf, const struct dump *dump, const char *key, uint32_t text)
{
	if (text)
		add_text(buf, dump, key, text);
	else
		buf__addf(buf, "\"%s\": null, ", key);
}

static void add_word(struct buf *buf, const char *key, const char *word)
{
	buf__addf(buf, word ? "\"%s\": \"%s\", " : "\"%s\": null, ", key, word);
}

static void add_bool(struct buf *buf, const char *key, bool value)
{
	buf__addf(buf, "\"%s\": %s, ", key, value ? "true" : "false");
}

/* null for 0. */
static void add_known_number(struct buf *buf, const char *key, uint64_t value)
{
	buf__addf(buf, value ? "\"%s\": %" PRIu64 ", " : "\"%s\": null, ", key, value);
}

/* After the last member of an object or item of a list. */
static void drop_comma(struct buf *buf)
{
	if (!buf->err && buf->len >= 2 && buf->data[buf->len - 2] == ',')
		buf->len -= 2;
}

static void add_locals(struct buf *buf, const struct dump *dump, const struct dump_thread *thread,
		       const struct dump_frame *frame)
{
	if (!frame->has_locals) {
		buf__adds(buf, "\"locals\": null, ");
		return;
	}
	buf__adds(buf, "\"locals\": [");
	for (size_t i = 0; i < frame->local_count; i++) {
		const struct dump_local *local = &thread->locals.items[frame->first_local + i];

		buf__addc(buf, '{');
		add_text(buf, dump, "name", local->name);
		add_text(buf, dump, "value", local->value);
		add_bool(buf, "argument", local->argument);
		add_bool(buf, "changed", local->changed);
		drop_comma(buf);
		buf__adds(buf, "}, ");
	}
	drop_comma(buf);
	buf__adds(buf, "], ");
}

static void add_frame(struct buf *buf, const struct dump *dump, const struct dump_thread *thread,
		      const struct dump_frame *frame)
{
	buf__adds(buf, "\n{");
	add_text(buf, dump, "function", frame->function);
	add_known_text(buf, dump, "file", frame->file);
	add_known_number(buf, "line", frame->line);
	add_known_number(buf, "first_line", frame->first_line);
	add_known_text(buf, dump, "source", frame->source);
	add_bool(buf, "line_approximate", frame->approximate);
	add_bool(buf, "from_c", frame->from_c);
	add_bool(buf, "started_gc", frame->collects);
	if (dump->with_locals)
		add_locals(buf, dump, thread, frame);
	drop_comma(buf);
	buf__adds(buf, "}, ");
}

static void add_thread(struct buf *buf, const struct dump *dump, const struct dump_thread *thread)
{
	buf__adds(buf, "\n{");
	add_known_number(buf, "tid", thread->tid);
	add_known_number(buf, "native_id", thread->inner_id);
	add_known_number(buf, "ident", thread->ident);
	add_text(buf, dump, "name", thread->name);
	add_word(buf, "name_source", thread->name_is_python ? "python" : "kernel");
	add_bool(buf, "main", thread->main);
	add_word(buf, "state", RUN[thread->run]);
	add_word(buf, "waits_in", thread->wait);
	add_word(buf, "gil", GIL[thread->gil]);
	add_word(buf, "exception", EXCEPTION[thread->exception]);
	add_bool(buf, "collecting_garbage", thread->collects);
	add_bool(buf, "consistent", thread->consistent);
	add_word(buf, "stack", STACK[thread->stack]);
	add_bool(buf, "truncated", thread->truncated);
	buf__adds(buf, "\"frames\": [");
	for (size_t i = 0; i < thread->frames.len; i++)
		add_frame(buf, dump, thread, &thread->frames.items[i]);
	drop_comma(buf);
	buf__adds(buf, "]}, ");
}

static void add_interpreter(struct buf *buf, const struct dump *dump,
			    const struct dump_interpreter *interpreter)
{
	buf__addf(buf, "\n{\"id\": %" PRId64 ", ", interpreter->id);
	add_bool(buf, "collecting_garbage", interpreter->collecting);
	buf__adds(buf, "\"threads\": [");
	for (size_t i = 0; i < interpreter->threads.len; i++)
		add_thread(buf, dump, &interpreter->threads.items[i]);
	drop_comma(buf);
	buf__adds(buf, "]}, ");
}

static void add_native(struct buf *buf, const struct dump *dump, const struct dump_native *native)
{
	buf__adds(buf, "\n{");
	add_known_number(buf, "tid", native->tid);
	add_known_number(buf, "native_id", native->inner_id ?: native->tid);
	add_text(buf, dump, "name", native->name);
	add_word(buf, "state", RUN[native->run]);
	add_word(buf, "waits_in", native->wait);
	drop_comma(buf);
	buf__adds(buf, "}, ");
}

int dump__write_json(const struct dump *dump, struct buf *buf)
{
	buf__addf(buf, "{\"pid\": %d, ", dump->pid);
	add_known_number(buf, "inner_pid", dump->inner_pid);
	add_text(buf, dump, "command", dump->command);
	add_word(buf, "python", dump->version);
	add_known_text(buf, dump, "halted", dump->halted);
	add_bool(buf, "consistent", dump->consistent);
	buf__addf(buf, "\"readings\": %u, \"interpreters\": [", dump->readings);
	for (size_t i = 0; i < dump->interpreters.len; i++)
		add_interpreter(buf, dump, &dump->interpreters.items[i]);
	drop_comma(buf);
	buf__adds(buf, "],\n\"native_threads\": [");
	for (size_t i = 0; i < dump->natives.len; i++)
		add_native(buf, dump, &dump->natives.items[i]);
	drop_comma(buf);
	buf__adds(buf, "]}\n");
	return buf->err;
}
