/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See words.h.
 */
#include "out/words.h"

#include "base/json.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define UNNAMED "[unnamed]"

void words__text(struct buf *buf, const struct strtab *strings, uint32_t id)
{
	buf__add_escaped(buf, strtab__get(strings, id), NULL);
}

void words__name(struct buf *buf, const struct strtab *strings, const struct frame *frame)
{
	if (strtab__len(strings, frame->function))
		words__text(buf, strings, frame->function);
	else
		buf__adds(buf, UNNAMED);
}

void words__json_text(struct buf *buf, const struct strtab *strings, uint32_t id)
{
	struct buf text = {0};

	words__text(&text, strings, id);
	json__string(buf, text.data, text.len);
	buf->err = buf->err ?: text.err;
	buf__free(&text);
}

void words__json_name(struct buf *buf, const struct strtab *strings, const struct frame *frame)
{
	if (strtab__len(strings, frame->function))
		words__json_text(buf, strings, frame->function);
	else
		buf__adds(buf, "\"" UNNAMED "\"");
}

static void add_string(struct buf *buf, const char *name, const char *text)
{
	buf__addf(buf, ", \"%s\": ", name);
	if (text)
		json__string(buf, text, strlen(text));
	else
		buf__adds(buf, "null");
}

static void add_number(struct buf *buf, const char *name, uint64_t number)
{
	buf__addf(buf, ", \"%s\": %" PRIu64, name, number);
}

static void add_start(struct buf *buf, uint64_t realtime_ns)
{
	char text[40] = "";
	time_t seconds = (time_t)(realtime_ns / 1000000000);
	struct tm time;

	if (realtime_ns && gmtime_r(&seconds, &time) &&
	    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &time))
		add_string(buf, "start", text);
	else
		add_string(buf, "start", NULL);
}

static void add_account(struct buf *buf, const struct account *account)
{
#define ADD(name, meaning) add_number(buf, #name, account->name);
	ACCOUNT_COUNTS(ADD)
#undef ADD
	if (account->left_out)
		add_number(buf, "left_out", account->left_out);
}

void words__metadata(struct buf *buf, const struct profile *profile, const struct view *view)
{
	const struct account *account = &profile->account;

	buf__adds(buf, "{\"program\": \"pybpfprof\", \"version\": \"" PYBPFPROF_VERSION "\"");
	add_string(buf, "command", profile->command && *profile->command ? profile->command : NULL);
	add_number(buf, "processes", account->processes);
	add_string(buf, "engine", account->engine);
	add_string(buf, "mode", account->mode);
	add_string(buf, "end", account->end);
	add_start(buf, profile->start_realtime_ns);
	buf__addf(buf, ", \"duration_s\": %.6f", (double)profile->duration_ns / 1e9);
	if (account->cpu_ns)
		buf__addf(buf, ", \"cpu_s\": %.6f", (double)account->cpu_ns / 1e9);
	else
		add_string(buf, "cpu_s", NULL);
	add_number(buf, "rate_hz", account->rate_hz);
	add_number(buf, "period_ns", profile->period_ns);
	add_number(buf, "samples", profile->samples);
	add_account(buf, account);
	if (view) {
		add_number(buf, "pruned", profile__value(profile, view->pruned));
		if (view->pruned && !view->pruned_stacks)
			add_string(buf, "pruned_stacks", NULL);
		else
			add_number(buf, "pruned_stacks", view->pruned_stacks);
	}
	buf__adds(buf, "}");
}

void words__unit(struct buf *buf, const struct profile *profile)
{
	buf__addf(buf, ",\n\"unit\":{\"name\":\"%s\",\"weight\":%" PRIu64 ",\"ns\":%" PRIu64 "}",
		  profile__unit_name(profile), profile__unit(profile),
		  profile__ns(profile, profile__unit(profile)));
}
