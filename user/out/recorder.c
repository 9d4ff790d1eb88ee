/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See recorder_parts.h. Samples, the account, and where a file begins and ends.
 */
#include "base/util.h"
#include "out/protobuf.h"
#include "out/record.h"
#include "out/recorder_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES_MAX  16384 /* of a chunk: 60 bytes each at most */
#define PENDING_MAX  (1u << 16)
#define CONTEXTS_MAX (1u << 17)	    /* of a file, threads as well: then all tables begin anew */
#define UNIT_NS_MAX  10000	    /* of times ... */
#define UNITS	     1000	    /* ... and so many of them a period at least */
#define ACCOUNT_NS   10000000000ull /* between accounts in which nothing but times has changed */

void recorder_fail(struct recorder *recorder, int err)
{
	recorder->err = recorder->err ?: err;
}

/* --- chunks --- */

static void begin(struct recorder *recorder);

void recorder_add_chunk(struct recorder *recorder, uint8_t kind, struct buf *raw)
{
	if (!recorder->begun)
		begin(recorder);
	recorder_fail(recorder, raw->err);
	if (!recorder->err)
		chunk_writer__add(&recorder->chunks, kind, raw->data, raw->len);
	raw->len = 0;
}

/* All that is whole, into the file. */
static void hand_over(struct recorder *recorder)
{
	struct buf *out = &recorder->chunks.out;

	recorder_fail(recorder, out->err);
	if (!recorder->err && out->len)
		recorder_fail(recorder,
			      recorder->config.write(recorder->config.context, out->data, out->len));
	recorder->bytes += out->len;
	out->len = 0;
}

/* --- what is known of the run --- */

static void add_pair(struct buf *buf, const char *name, const char *value)
{
	if (!value)
		return;
	recorder_add_word(buf, name);
	recorder_add_word(buf, value);
}

static void add_number(struct buf *buf, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	add_pair(buf, name, text);
}

/* What may not be known yet when the file begins. */
static void add_late_meta(const struct recorder *recorder, struct buf *meta)
{
	const struct profile *profile = recorder->config.profile;

	add_pair(meta, "engine", profile->account.engine);
	add_pair(meta, "mode", profile->account.mode);
	add_pair(meta, "command", profile->command);
	add_number(meta, "rate_hz", profile->account.rate_hz);
}

static void begin(struct recorder *recorder)
{
	const struct recorder_config *config = &recorder->config;
	struct buf meta = {0};
	char apart[64];

	recorder->begun = true;
	snprintf(apart, sizeof(apart), "%s%s%s", config->apart.processes ? "processes " : "",
		 config->apart.containers ? "containers " : "", config->apart.threads ? "threads " : "");
	add_pair(&meta, "program", "pybpfprof");
	add_pair(&meta, "version", PYBPFPROF_VERSION);
	add_pair(&meta, "host", config->host);
	add_pair(&meta, "unit", profile__unit_name(config->profile));
	add_pair(&meta, "apart", apart);
	add_number(&meta, "period_ns", config->profile->period_ns);
	add_number(&meta, "start_ns", recorder->start_realtime_ns);
	add_number(&meta, "time_unit_ns", recorder->unit_ns);
	add_late_meta(recorder, &meta);
	recorder_add_chunk(recorder, RECORD_CHUNK_META, &meta);
	buf__free(&meta);
}

static void add_count(struct buf *buf, const char *name, uint64_t value, uint64_t told)
{
	if (value == told)
		return;
	recorder_add_word(buf, name);
	protobuf__varint(buf, value);
}

/* Of this file: what has changed since it was told last. */
static void add_account(struct recorder *recorder, bool last)
{
	const struct profile *profile = recorder->config.profile;
	const struct account *now = &profile->account, *before = &recorder->before, *told = &recorder->told;
	bool changed = last || now->processes != told->processes || now->left_out != told->left_out;
	struct buf buf = {0};

#define COMPARE(name, meaning) changed |= now->name != told->name;
	ACCOUNT_COUNTS(COMPARE)
#undef COMPARE
	if (!changed && profile->duration_ns - recorder->account_ns < ACCOUNT_NS)
		return;
	add_count(&buf, "processes", now->processes, told->processes);
	add_count(&buf, "cpu_ns", now->cpu_ns - min_u64(before->cpu_ns, now->cpu_ns), 0);
	add_count(&buf, "left_out", now->left_out - before->left_out, told->left_out - before->left_out);
	add_count(&buf, "duration_ns", profile->duration_ns - recorder->before_ns, 0);
#define ADD(name, meaning) add_count(&buf, #name, now->name - before->name, told->name - before->name);
	ACCOUNT_COUNTS(ADD)
#undef ADD
	recorder->account_ns = profile->duration_ns;
	recorder->told = *now;
	recorder_add_chunk(recorder, RECORD_CHUNK_ACCOUNT, &buf);
	buf__free(&buf);
}

/* --- samples --- */

uint64_t recorder_fold(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

/* A recording that is read may have any times, so these wrap. */
static uint64_t fold_difference(int64_t time, int64_t before, int64_t period)
{
	return recorder_fold((int64_t)((uint64_t)time - (uint64_t)before - (uint64_t)period));
}

/* The two ways to tell times; which is shorter depends on whether threads run by turns or at once. */
static void add_times(struct recorder *recorder, const struct recorder_sample *items, size_t count,
		      int64_t period)
{
	struct buf *by_thread = &recorder->other_times, *in_order = &recorder->times;

	by_thread->len = in_order->len = 0;
	for (size_t i = 0; i < count; i++) {
		int64_t *of_thread = &recorder->thread_times.items[items[i].thread];

		protobuf__varint(in_order, fold_difference(items[i].time, recorder->last_time, period));
		protobuf__varint(by_thread, fold_difference(items[i].time, *of_thread, period));
		recorder->last_time = *of_thread = items[i].time;
	}
	recorder_fail(recorder, by_thread->err ?: in_order->err);
}

static void add_settlements(struct buf *buf, const uint64_t *extra_ns, const uint64_t *exact_ns)
{
	size_t count = 0;

	for (size_t kind = 0; kind < ESTIMATE_KINDS && extra_ns; kind++)
		count += extra_ns[kind] != 0;
	protobuf__varint(buf, count);
	for (size_t kind = 0; kind < ESTIMATE_KINDS && extra_ns; kind++) {
		if (!extra_ns[kind])
			continue;
		protobuf__varint(buf, kind);
		protobuf__varint(buf, extra_ns[kind]);
		protobuf__varint(buf, exact_ns[kind]);
	}
}

static void add_weights(struct buf *buf, const struct recorder_sample *items, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (items[i].share == RECORD_SHARE_PERIOD)
			continue;
		protobuf__varint(buf, items[i].weight_ns);
		if (items[i].share == RECORD_SHARE_WEIGHT)
			continue;
		protobuf__varint(buf, items[i].extra_ns);
		protobuf__varint(buf, items[i].kind);
	}
}

static void add_some(struct recorder *recorder, const struct recorder_sample *items, size_t count,
		     const uint64_t *extra_ns, const uint64_t *exact_ns)
{
	int64_t period = (int64_t)(recorder->config.profile->period_ns / recorder->unit_ns);
	struct buf *buf = &recorder->columns, *times = &recorder->times;
	bool by_thread;

	add_times(recorder, items, count, period);
	by_thread = recorder->other_times.len < times->len;
	times = by_thread ? &recorder->other_times : times;
	protobuf__varint(buf, count);
	protobuf__varint(buf, by_thread);
	add_settlements(buf, extra_ns, exact_ns);
	for (size_t i = 0; i < count; i++)
		protobuf__varint(buf, items[i].context);
	for (size_t i = 0; i < count; i++)
		protobuf__varint(buf, items[i].stack);
	buf__add(buf, times->data, times->len);
	add_weights(buf, items, count);
	recorder_add_chunk(recorder, RECORD_CHUNK_SAMPLES, buf);
}

static void add_pending(struct recorder *recorder, const uint64_t *extra_ns, const uint64_t *exact_ns)
{
	const struct recorder_sample *items = recorder->pending.items;

	recorder_add_tables(recorder);
	for (size_t i = 0; i < recorder->pending.len && !recorder->err; i += SAMPLES_MAX)
		add_some(recorder, items + i, min_u64(recorder->pending.len - i, SAMPLES_MAX), extra_ns,
			 exact_ns);
	recorder->pending.len = 0;
}

static uint64_t choose_unit(uint64_t period_ns)
{
	uint64_t unit = 1;

	while (unit < UNIT_NS_MAX && unit * 10 * UNITS <= period_ns)
		unit *= 10;
	return unit;
}

/* The profile knows all that is needed when the first sample comes. */
static void prepare(struct recorder *recorder)
{
	const struct profile *profile = recorder->config.profile;

	recorder->prepared = true;
	recorder->unit_ns = choose_unit(profile->period_ns);
	recorder->start_ns = profile->start_ns + recorder->before_ns;
	recorder->start_realtime_ns = profile->start_realtime_ns + recorder->before_ns;
}

/* All is told once more, as far as it is needed again. */
static void begin_tables_anew(struct recorder *recorder)
{
	struct buf nothing = {0};

	add_pending(recorder, NULL, NULL);
	recorder_add_chunk(recorder, RECORD_CHUNK_RESET, &nothing);
	recorder_clear_tables(recorder);
}

static struct recorder *recorder_of(struct sink *sink)
{
	return (struct recorder *)sink; /* its first member */
}

static void take(struct sink *sink, const struct sink_sample *sample)
{
	struct recorder *recorder = recorder_of(sink);
	struct recorder_sample item = {
		.kind = (uint8_t)sample->kind, .weight_ns = sample->weight_ns, .extra_ns = sample->extra_ns};

	if (recorder->err || recorder->over)
		return;
	if (!recorder->prepared)
		prepare(recorder);
	if (recorder->contexts.len >= CONTEXTS_MAX || recorder->threads.len >= CONTEXTS_MAX)
		begin_tables_anew(recorder);
	if (sample->time_ns)
		recorder->newest =
			(int64_t)(sample->time_ns - recorder->start_ns) / (int64_t)recorder->unit_ns;
	item.time = recorder->newest;
	item.stack = recorder_tell_stack(recorder, sample->node);
	item.thread = sample->thread ? recorder_tell_thread(recorder, sample->thread) + 1 : 0;
	item.share = sample->extra_ns						? RECORD_SHARE_EXTRA
		     : sample->weight_ns != recorder->config.profile->period_ns ? RECORD_SHARE_WEIGHT
										: RECORD_SHARE_PERIOD;
	item.context = recorder_tell_context(recorder, item.thread, sample->state, item.share);
	recorder_fail(recorder, vec__push(&recorder->pending, item));
	recorder->samples += !(sample->state & SINK_CONTINUED);
	if (recorder->pending.len >= PENDING_MAX) {
		add_pending(recorder, NULL, NULL);
		hand_over(recorder);
	}
}

static void renew(struct sink *sink)
{
	struct recorder *recorder = recorder_of(sink);

	if (!recorder->err && !recorder->over && recorder->prepared)
		begin_tables_anew(recorder);
}

static void settle(struct sink *sink, const uint64_t extra_ns[ESTIMATE_KINDS],
		   const uint64_t exact_ns[ESTIMATE_KINDS])
{
	struct recorder *recorder = recorder_of(sink);

	if (recorder->pending.len && !recorder->err)
		add_pending(recorder, extra_ns, exact_ns);
}

/* --- files --- */

static void end_file(struct recorder *recorder, const char *end)
{
	struct buf buf = {0};

	if (recorder->err)
		return;
	if (!recorder->prepared)
		prepare(recorder);
	add_pending(recorder, NULL, NULL);
	add_account(recorder, true);
	add_late_meta(recorder, &buf);
	add_pair(&buf, "end", end);
	recorder_add_chunk(recorder, RECORD_CHUNK_META, &buf);
	protobuf__varint(&buf, recorder->samples);
	recorder_add_chunk(recorder, RECORD_CHUNK_END, &buf);
	hand_over(recorder);
	buf__free(&buf);
}

int recorder__end(struct recorder *recorder)
{
	if (!recorder->over && (recorder->prepared || !recorder->follows))
		end_file(recorder, recorder->config.profile->account.end);
	recorder->over = true;
	return recorder->err;
}

/* What is taken next begins a file that can be read by itself. */
static void begin_next(struct recorder *recorder)
{
	const struct profile *profile = recorder->config.profile;

	end_file(recorder, "the next file goes on");
	if (!recorder->err)
		recorder_fail(recorder, recorder->config.next(recorder->config.context));
	chunk_writer__restart(&recorder->chunks);
	recorder_clear_tables(recorder);
	recorder->before = profile->account;
	recorder->told = profile->account;
	recorder->told.processes = 0;
	recorder->before_ns = recorder->account_ns = profile->duration_ns;
	recorder->samples = recorder->bytes = 0;
	recorder->newest = recorder->last_time = 0;
	recorder->begun = recorder->prepared = false;
	recorder->follows = true;
}

static bool is_full(const struct recorder *recorder)
{
	const struct recorder_config *config = &recorder->config;
	uint64_t lasts_ns = config->profile->duration_ns - recorder->before_ns;

	return (config->rotate_bytes && recorder->bytes >= config->rotate_bytes) ||
	       (config->rotate_ns && lasts_ns >= config->rotate_ns);
}

static void flush(struct sink *sink)
{
	struct recorder *recorder = recorder_of(sink);

	/* Without a sample there is nothing to be kept. */
	if (recorder->err || recorder->over || !recorder->prepared)
		return;
	add_pending(recorder, NULL, NULL);
	add_account(recorder, false);
	hand_over(recorder);
	if (is_full(recorder))
		begin_next(recorder);
}

int recorder__new(struct recorder **out, const struct recorder_config *config)
{
	struct recorder *recorder = calloc(1, sizeof(*recorder));

	*out = recorder;
	if (!recorder)
		return -ENOMEM;
	recorder->sink = (struct sink){.take = take, .settle = settle, .renew = renew, .flush = flush};
	recorder->config = *config;
	recorder_fail(recorder, chunk_writer__open(&recorder->chunks));
	recorder_clear_tables(recorder);
	return recorder->err;
}

struct sink *recorder__sink(struct recorder *recorder)
{
	return &recorder->sink;
}

int recorder__error(const struct recorder *recorder)
{
	return recorder->err;
}

void recorder__free(struct recorder *recorder)
{
	if (!recorder)
		return;
	chunk_writer__close(&recorder->chunks);
	recorder_free_tables(recorder);
	vec__free(&recorder->pending);
	buf__free(&recorder->columns);
	buf__free(&recorder->times);
	buf__free(&recorder->other_times);
	free(recorder);
}
