/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A paragraph for each thread, the innermost frame first:
 *
 *	Thread 4711 (MainThread) waits for the GIL
 *	    leaf (/srv/app/work.py:12)
 *	        total += step(total)
 *	          total = 41
 */
#include "out/dump_writer.h"

#include "base/util.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BOLD	      "\x1b[1m"
#define DIM	      "\x1b[2m"
#define RESET	      "\x1b[0m"
#define ELLIPSIS      "\xe2\x80\xa6"
#define FRAME_INDENT  4
#define SOURCE_INDENT 8
#define LOCAL_INDENT  10
#define MIN_COLUMNS   12 /* of a path, however narrow the terminal */

struct text {
	const struct dump *dump;
	const struct dump_style *style;
	struct buf *out;
};

static void paint(const struct text *text, const char *sequence)
{
	if (text->style->color)
		buf__adds(text->out, sequence);
}

/* One line that is cut at its end if it does not fit; takes the bytes over. */
static void add_line(const struct text *text, size_t indent, struct buf *line)
{
	size_t len = line->len, width = text->style->width;

	if (width && indent + utf8_width(line->data, len) > width) {
		len = utf8_fit(line->data, len, width > indent + 1 ? width - indent - 1 : 0);
		line->len = len;
		buf__adds(line, ELLIPSIS);
	}
	buf__addf(text->out, "%*s", (int)indent, "");
	buf__add(text->out, line->data, line->len);
	text->out->err = text->out->err ?: line->err;
	buf__free(line);
}

static void add_plain(const struct text *text, size_t indent, const char *words)
{
	buf__addf(text->out, "%*s%s\n", (int)indent, "", words);
}

static void add_escaped(struct buf *buf, const struct text *text, uint32_t id)
{
	buf__add_escaped(buf, strtab__get(text->dump->strings, id), NULL);
}

/* --- the state of a thread --- */

static void add_words(struct buf *buf, const char *words)
{
	buf__adds(buf, buf->len ? ", " : "");
	buf__adds(buf, words);
}

/* "holds the GIL, on CPU, handling an exception" */
static void describe_state(const struct dump_thread *thread, struct buf *buf)
{
	if (thread->gil == DUMP_GIL_HOLDS)
		add_words(buf, "holds the GIL");
	else if (thread->gil == DUMP_GIL_WAITS)
		add_words(buf, "waits for the GIL");
	if (thread->run == DUMP_RUNNING)
		add_words(buf, "on CPU");
	else if (thread->run == DUMP_STOPPED)
		add_words(buf, "stopped");
	else if (thread->run == DUMP_FROZEN)
		add_words(buf, "frozen");
	else if (thread->run == DUMP_WAITING && thread->gil != DUMP_GIL_WAITS)
		add_words(buf, "idle");
	if (thread->run != DUMP_RUNNING && thread->gil != DUMP_GIL_WAITS && thread->wait)
		buf__addf(buf, " (%s)", thread->wait);
	if (thread->exception == DUMP_EXCEPTION_RAISED)
		add_words(buf, "raising an exception");
	else if (thread->exception == DUMP_EXCEPTION_HANDLED)
		add_words(buf, "handling an exception");
	if (thread->collects)
		add_words(buf, "collecting garbage");
	if (!buf->len)
		add_words(buf, "in an unknown state");
}

static void add_header(const struct text *text, const struct dump_interpreter *interpreter,
		       const struct dump_thread *thread)
{
	struct buf line = {0}, state = {0};

	if (thread->tid)
		buf__addf(&line, "Thread %d", thread->tid);
	else
		buf__addf(&line, "Thread 0x%" PRIx64, thread->ident);
	if (thread->inner_id && thread->inner_id != (uint64_t)thread->tid)
		buf__addf(&line, " [%" PRIu64 " inside]", thread->inner_id);
	buf__adds(&line, " (");
	add_escaped(&line, text, thread->name);
	buf__adds(&line, ")");
	if (text->dump->interpreters.len > 1)
		buf__addf(&line, " in interpreter %" PRId64, interpreter->id);
	describe_state(thread, &state);
	buf__addc(&line, ' ');
	buf__add(&line, state.data, state.len);
	buf__free(&state);
	paint(text, BOLD);
	add_line(text, 0, &line);
	paint(text, RESET);
	buf__addc(text->out, '\n');
}

/* --- frames --- */

static void add_path(const struct text *text, struct buf *line, const struct dump_frame *frame)
{
	struct buf path = {0};
	char number[16] = "";
	size_t used, room, from = 0;

	add_escaped(&path, text, frame->file);
	if (frame->line)
		snprintf(number, sizeof(number), frame->approximate ? ":~%u" : ":%u", frame->line);
	used = FRAME_INDENT + utf8_width(line->data, line->len) + strlen(number) + 1;
	room = max_u64(text->style->width > used ? text->style->width - used : 0, MIN_COLUMNS);
	if (text->style->width && utf8_width(path.data, path.len) > room)
		from = utf8_fit_end(path.data, path.len, room - 1);
	if (from)
		buf__adds(line, ELLIPSIS);
	if (!path.err && path.len)
		buf__add(line, path.data + from, path.len - from);
	buf__adds(line, number);
	line->err = line->err ?: path.err;
	buf__free(&path);
}

static void add_locals(const struct text *text, const struct dump_thread *thread,
		       const struct dump_frame *frame)
{
	if (text->dump->with_locals && text->dump->locals_known && !frame->has_locals)
		add_plain(text, LOCAL_INDENT, "[variables not read]");
	for (size_t i = 0; i < frame->local_count; i++) {
		const struct dump_local *local = &thread->locals.items[frame->first_local + i];
		struct buf line = {0};

		add_escaped(&line, text, local->name);
		buf__adds(&line, local->changed ? " = (changing) " : " = ");
		buf__adds(&line, strtab__get(text->dump->strings, local->value));
		add_line(text, LOCAL_INDENT, &line);
		buf__addc(text->out, '\n');
	}
}

static void add_frame(const struct text *text, const struct dump_thread *thread,
		      const struct dump_frame *frame)
{
	struct buf line = {0}, source = {0};

	if (frame->collects)
		add_plain(text, FRAME_INDENT, "[garbage collection]");
	add_escaped(&line, text, frame->function);
	if (frame->file) {
		buf__adds(&line, " (");
		add_path(text, &line, frame);
		buf__adds(&line, ")");
	}
	buf__addf(text->out, "%*s", FRAME_INDENT, "");
	buf__add(text->out, line.data, line.len);
	buf__addc(text->out, '\n');
	text->out->err = text->out->err ?: line.err;
	buf__free(&line);
	if (frame->source) {
		add_escaped(&source, text, frame->source);
		paint(text, DIM);
		add_line(text, SOURCE_INDENT, &source);
		paint(text, RESET);
		buf__addc(text->out, '\n');
	}
	add_locals(text, thread, frame);
}

static void add_stack_note(const struct text *text, const struct dump_thread *thread)
{
	switch (thread->stack) {
	case DUMP_STACK_EMPTY:
		add_plain(text, FRAME_INDENT, "[no Python frames]");
		break;
	case DUMP_STACK_CHANGING:
		add_plain(text, FRAME_INDENT, "[it changed during every reading]");
		break;
	case DUMP_STACK_UNREADABLE:
		add_plain(text, FRAME_INDENT, "[it leads to memory that cannot be read]");
		break;
	case DUMP_STACK_READ:
		if (!thread->consistent)
			add_plain(text, FRAME_INDENT,
				  "[changed while it was read; as it was at one instant:]");
		break;
	}
}

static void add_thread(const struct text *text, const struct dump_interpreter *interpreter,
		       const struct dump_thread *thread)
{
	buf__addc(text->out, '\n');
	add_header(text, interpreter, thread);
	add_stack_note(text, thread);
	for (size_t i = 0; i < thread->frames.len; i++)
		add_frame(text, thread, &thread->frames.items[i]);
	if (thread->truncated)
		add_plain(text, FRAME_INDENT, "[truncated]");
}

/* --- the process --- */

static void add_title(const struct text *text)
{
	const struct dump *dump = text->dump;
	size_t threads = dump__thread_count(dump), moving = 0;
	struct buf line = {0};

	for (size_t i = 0; i < dump->interpreters.len; i++)
		for (size_t j = 0; j < dump->interpreters.items[i].threads.len; j++)
			moving += !dump->interpreters.items[i].threads.items[j].consistent;
	buf__addf(&line, "Process %d", dump->pid);
	if (dump->inner_pid)
		buf__addf(&line, " [%d inside]", dump->inner_pid);
	buf__adds(&line, ": ");
	add_escaped(&line, text, dump->command);
	add_line(text, 0, &line);
	buf__addf(text->out, "\nPython %s, %zu thread%s", dump->version, threads, plural(threads));
	if (dump->interpreters.len > 1)
		buf__addf(text->out, " in %zu interpreters", dump->interpreters.len);
	if (moving)
		buf__addf(text->out, "; %zu changed during each of %u readings\n", moving, dump->readings);
	else
		buf__addf(text->out, "; two readings agree\n");
	if (dump->halted)
		buf__addf(text->out, "It is %s\n", strtab__get(dump->strings, dump->halted));
	if (dump->with_locals && !dump->locals_known)
		buf__adds(text->out, "Variables of this version are not read\n");
}

static void add_natives(const struct text *text)
{
	for (size_t i = 0; i < text->dump->natives.len; i++) {
		const struct dump_native *native = &text->dump->natives.items[i];
		struct buf line = {0};

		buf__addf(&line, "Thread %d", native->tid);
		if (native->inner_id)
			buf__addf(&line, " [%d inside]", native->inner_id);
		buf__adds(&line, " (");
		add_escaped(&line, text, native->name);
		buf__addf(&line, ") runs no Python code%s", native->run == DUMP_RUNNING ? ", on CPU" : "");
		buf__adds(text->out, i ? "" : "\n");
		add_line(text, 0, &line);
		buf__addc(text->out, '\n');
	}
}

int dump__write_text(const struct dump *dump, const struct dump_style *style, struct buf *buf)
{
	struct text text = {dump, style, buf};

	add_title(&text);
	for (size_t i = 0; i < dump->interpreters.len; i++)
		for (size_t j = 0; j < dump->interpreters.items[i].threads.len; j++)
			add_thread(&text, &dump->interpreters.items[i],
				   &dump->interpreters.items[i].threads.items[j]);
	add_natives(&text);
	return buf->err;
}
