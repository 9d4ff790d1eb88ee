/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See record_reader.h. A chunk of samples is taken apart as a whole, and its samples are handed out one by
 * one. The numbers of the file are those of its order; what they are in the profile is in record_tables.c.
 */
#include "out/record_reader.h"

#include "base/utf8.h"
#include "base/util.h"
#include "out/record.h"
#include "out/record_chunks.h"
#include "out/record_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DAMAGED "it is damaged"

/* --- bytes --- */

uint64_t record_take_number(struct record_bytes *bytes)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64 && bytes->at < bytes->end; shift += 7) {
		uint8_t byte = *bytes->at++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	bytes->bad = true;
	bytes->at = bytes->end;
	return 0;
}

uint8_t record_take_byte(struct record_bytes *bytes)
{
	if (bytes->at < bytes->end)
		return *bytes->at++;
	bytes->bad = true;
	return 0;
}

const char *record_take_text(struct record_bytes *bytes, size_t *len)
{
	uint64_t size = record_take_number(bytes);
	const char *text = (const char *)bytes->at;

	if (size > (size_t)(bytes->end - bytes->at) || memchr(text, '\0', size)) {
		bytes->bad = true;
		bytes->at = bytes->end;
		size = 0;
	}
	bytes->at += size;
	*len = size;
	return text;
}

int64_t record_take_signed(struct record_bytes *bytes)
{
	uint64_t value = record_take_number(bytes);

	return (int64_t)(value >> 1 ^ -(value & 1));
}

/* --- what is known of the run --- */

static bool is(const char *text, size_t len, const char *word)
{
	return len == strlen(word) && !memcmp(text, word, len);
}

static uint64_t number_in(const char *text, size_t len)
{
	uint64_t value = 0;

	for (size_t i = 0; i < len && text[i] >= '0' && text[i] <= '9' && value < UINT64_MAX / 10 - 9; i++)
		value = value * 10 + (uint64_t)(text[i] - '0');
	return value;
}

static bool has_word(const char *text, size_t len, const char *word)
{
	return memmem(text, len, word, strlen(word));
}

/* What others write as it is: whoever records has escaped it, and if not, it is made harmless here. */
static const char *keep_text(struct record_reader *reader, const char *text, size_t len)
{
	struct strtab *strings = reader->profile->strings;
	char clean[1024];
	size_t step;
	uint32_t code;

	len = utf8_fit_bytes(text, len, sizeof(clean));
	memcpy(clean, text, len);
	for (size_t at = 0; at < len; at += step) {
		step = utf8_decode(clean + at, len - at, &code);
		if (!step || utf8_is_unsafe(code))
			memset(clean + at, '?', step ?: 1);
		step = step ?: 1;
	}
	return strtab__get(strings, strtab__add(strings, clean, len));
}

static void take_meta_pair(struct record_reader *reader, const char *name, size_t name_len, const char *value,
			   size_t len)
{
	struct profile *profile = reader->profile;

	if (is(name, name_len, "engine")) {
		profile->account.engine = keep_text(reader, value, len);
	} else if (is(name, name_len, "mode")) {
		profile->account.mode = keep_text(reader, value, len);
	} else if (is(name, name_len, "version")) {
		profile->account.version = keep_text(reader, value, len);
	} else if (is(name, name_len, "command")) {
		profile->command = keep_text(reader, value, len);
	} else if (is(name, name_len, "end")) {
		profile->account.end = keep_text(reader, value, len);
	} else if (is(name, name_len, "host")) {
		reader->host = strtab__add(profile->strings, value, len);
	} else if (is(name, name_len, "unit")) {
		profile->unit = is(value, len, "microseconds") ? PROFILE_TIME : PROFILE_SAMPLES;
	} else if (is(name, name_len, "apart")) {
		reader->apart = (struct record_apart){.processes = has_word(value, len, "processes"),
						      .containers = has_word(value, len, "containers"),
						      .threads = has_word(value, len, "threads")};
	} else if (is(name, name_len, "rate_hz")) {
		profile->account.rate_hz = (uint32_t)number_in(value, len);
	} else if (is(name, name_len, "period_ns")) {
		profile->period_ns = number_in(value, len);
	} else if (is(name, name_len, "start_ns")) {
		profile->start_realtime_ns = min_u64(number_in(value, len), INT64_MAX / 2);
	} else if (is(name, name_len, "time_unit_ns")) {
		reader->stream->unit_ns = number_in(value, len) ?: 1;
	}
}

static int take_meta(struct record_reader *reader, struct record_bytes *bytes)
{
	reader->stream->meta_bytes += (size_t)(bytes->end - bytes->at);
	if (reader->stream->meta_bytes > RECORD_META_MAX)
		return -E2BIG; /* its texts are kept */
	while (bytes->at < bytes->end) {
		size_t name_len, len;
		const char *name = record_take_text(bytes, &name_len), *value = record_take_text(bytes, &len);

		if (bytes->bad)
			break;
		take_meta_pair(reader, name, name_len, value, len);
	}
	return 0;
}

static void take_account(struct record_reader *reader, struct record_bytes *bytes)
{
	struct account *account = &reader->profile->account;

	while (bytes->at < bytes->end) {
		size_t len;
		const char *name = record_take_text(bytes, &len);
		uint64_t value = record_take_number(bytes);

		if (bytes->bad)
			return;
		if (is(name, len, "processes"))
			account->processes = value;
		else if (is(name, len, "cpu_ns"))
			account->cpu_ns = value;
		else if (is(name, len, "left_out"))
			account->left_out = value;
		else if (is(name, len, "duration_ns"))
			reader->profile->duration_ns = value;
#define TAKE(field, meaning) else if (is(name, len, #field)) account->field = value;
		ACCOUNT_COUNTS(TAKE)
#undef TAKE
	}
}

/* --- samples --- */

/* What extras of a kind stand for, and how much of that has been handed out. */
struct settlement {
	uint64_t extra_ns, exact_ns;
	uint64_t extra_used_ns, exact_used_ns;
};

static void take_settlements(struct record_bytes *bytes, struct settlement settlements[RECORD_KINDS])
{
	uint64_t count = record_take_number(bytes);

	memset(settlements, 0, RECORD_KINDS * sizeof(*settlements));
	for (uint64_t i = 0; i < count && !bytes->bad; i++) {
		uint64_t kind = record_take_number(bytes);

		bytes->bad |= kind >= RECORD_KINDS;
		kind %= RECORD_KINDS;
		settlements[kind].extra_ns = record_take_number(bytes);
		settlements[kind].exact_ns = record_take_number(bytes);
	}
}

/* Rounded so that they add up to the whole. */
static uint64_t share_of(struct settlement *settlement, uint64_t extra_ns)
{
	uint64_t until_ns;

	if (!settlement->extra_ns)
		return extra_ns;
	settlement->extra_used_ns += min_u64(extra_ns, settlement->extra_ns - settlement->extra_used_ns);
	until_ns = part_of(settlement->exact_ns, settlement->extra_used_ns, settlement->extra_ns);
	extra_ns = until_ns - settlement->exact_used_ns;
	settlement->exact_used_ns = until_ns;
	return extra_ns;
}

static void take_weights(struct record_reader *reader, struct record_bytes *bytes,
			 struct settlement settlements[RECORD_KINDS])
{
	struct record_stream *stream = reader->stream;

	for (size_t i = 0; i < stream->batch.len && !bytes->bad; i++) {
		struct record_sample *sample = &stream->batch.items[i];
		uint8_t share = stream->shares.items[i];
		uint64_t extra_ns, kind;

		sample->weight_ns = reader->profile->period_ns;
		if (share == RECORD_SHARE_PERIOD)
			continue;
		sample->weight_ns = record_take_number(bytes);
		sample->length_ns = sample->state & SINK_WAIT ? sample->weight_ns : 0;
		if (share == RECORD_SHARE_WEIGHT)
			continue;
		extra_ns = record_take_number(bytes);
		kind = record_take_number(bytes);
		extra_ns = share_of(&settlements[kind % RECORD_KINDS], extra_ns);
		bytes->bad |= kind >= RECORD_KINDS ||
			      __builtin_add_overflow(sample->weight_ns, extra_ns, &sample->weight_ns);
	}
}

/* Wrong numbers may be any, so these are added as unsigned ones. */
static void take_times(struct record_reader *reader, struct record_bytes *bytes, bool by_thread)
{
	struct record_stream *stream = reader->stream;
	uint64_t period = reader->profile->period_ns / stream->unit_ns;

	for (size_t i = 0; i < stream->batch.len && !bytes->bad; i++) {
		uint64_t *of_thread = &stream->thread_times.items[stream->numbers.items[i]];
		uint64_t before = by_thread ? *of_thread : stream->last_time;
		uint64_t time = before + (uint64_t)record_take_signed(bytes) + period;

		stream->last_time = *of_thread = time;
		stream->batch.items[i].time_ns = (int64_t)(time * stream->unit_ns);
	}
}

static int take_contexts(struct record_stream *stream, struct record_bytes *bytes, uint64_t count)
{
	stream->batch.len = stream->shares.len = stream->numbers.len = 0;
	if (vec__reserve(&stream->batch, count) || vec__reserve(&stream->shares, count) ||
	    vec__reserve(&stream->numbers, count))
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t number = record_take_number(bytes);
		struct record_context context = {0};

		if (number < stream->contexts.len)
			context = stream->contexts.items[number];
		else
			bytes->bad = true;
		stream->batch.items[i] =
			(struct record_sample){.thread = context.thread, .state = context.state};
		stream->shares.items[i] = context.share;
		stream->numbers.items[i] = context.number;
	}
	stream->batch.len = stream->shares.len = stream->numbers.len = count;
	return 0;
}

static void take_stacks(struct record_stream *stream, struct record_bytes *bytes)
{
	for (size_t i = 0; i < stream->batch.len; i++) {
		uint64_t number = record_take_number(bytes);

		if (number < stream->stacks.len)
			stream->batch.items[i].node = stream->stacks.items[number];
		else
			bytes->bad = true;
	}
}

static int take_samples(struct record_reader *reader, struct record_bytes *bytes)
{
	struct settlement settlements[RECORD_KINDS];
	struct record_stream *stream = reader->stream;
	uint64_t count = record_take_number(bytes), by_thread = record_take_number(bytes), samples = 0;
	int err;

	take_settlements(bytes, settlements);
	bytes->bad |= by_thread > 1 || count > (size_t)(bytes->end - bytes->at);
	if (bytes->bad)
		return 0;
	err = take_contexts(stream, bytes, count);
	if (err)
		return err;
	take_stacks(stream, bytes);
	take_times(reader, bytes, by_thread);
	take_weights(reader, bytes, settlements);
	bytes->bad |= bytes->at != bytes->end;
	for (size_t i = 0; i < stream->batch.len; i++) {
		samples += !(stream->batch.items[i].state & SINK_CONTINUED);
		/* Whoever adds them up is to get no more than that. */
		bytes->bad |= __builtin_add_overflow(reader->total_ns, stream->batch.items[i].weight_ns,
						     &reader->total_ns) ||
			      reader->total_ns > RECORD_TOTAL_MAX;
	}
	/* Of a chunk that is not right, nothing is. */
	stream->batch.len = bytes->bad ? 0 : stream->batch.len;
	reader->samples += bytes->bad ? 0 : samples;
	return 0;
}

static void take_end(struct record_reader *reader, struct record_bytes *bytes)
{
	bytes->bad |= record_take_number(bytes) != reader->samples || bytes->at != bytes->end;
	reader->ended = !bytes->bad;
	if (reader->ended && chunk_reader__has_more(&reader->stream->chunks))
		reader->fault = "something follows its end";
}

/* --- chunks --- */

/*
 * All tables are empty again. However long a run goes on, what it has in between is bounded: paths and
 * threads that have become many make room for those to come.
 */
static int reset(struct record_reader *reader)
{
	record_clear_tables(reader->stream);
	if (reader->stacks.nodes.len <= RECORD_NODES_MAX / 2 &&
	    reader->threads.len <= RECORD_OTHERS_MAX / 2 && reader->processes.len <= RECORD_OTHERS_MAX / 2)
		return 0;
	reader->renewals++;
	reader->threads.len = reader->processes.len = 0;
	hmap__clear(&reader->stream->known);
	trie__free(&reader->stacks);
	return trie__init(&reader->stacks, RECORD_NODES_MAX);
}

/* The next one, if there is one. */
static void take_chunk(struct record_reader *reader)
{
	struct record_stream *stream = reader->stream;
	const char *fault = chunk_reader__next(&stream->chunks);
	struct record_bytes bytes = {.at = stream->chunks.raw,
				     .end = stream->chunks.raw + stream->chunks.raw_len};
	int err = 0;

	stream->batch.len = stream->at = 0;
	if (fault) {
		reader->fault = fault;
		return;
	}
	switch (stream->chunks.kind) {
	case RECORD_CHUNK_META:
		err = take_meta(reader, &bytes);
		break;
	case RECORD_CHUNK_ACCOUNT:
		take_account(reader, &bytes);
		break;
	case RECORD_CHUNK_TABLES:
		err = record_take_tables(reader, &bytes);
		break;
	case RECORD_CHUNK_RESET:
		err = reset(reader);
		break;
	case RECORD_CHUNK_SAMPLES:
		err = take_samples(reader, &bytes);
		break;
	case RECORD_CHUNK_END:
		take_end(reader, &bytes);
		break;
	}
	if (err)
		reader->fault = err == -E2BIG ? "it has more in it than can be" : strerrordesc_np(-err);
	else if (bytes.bad)
		reader->fault = DAMAGED;
}

bool record_reader__next(struct record_reader *reader, struct record_sample *sample)
{
	struct record_stream *stream = reader->stream;

	while (stream->at >= stream->batch.len && !reader->ended && !reader->fault)
		take_chunk(reader);
	if (stream->at >= stream->batch.len)
		return false;
	*sample = stream->batch.items[stream->at++];
	return true;
}

int record_reader__open(struct record_reader **out, int fd, struct profile *profile)
{
	struct record_reader *reader = calloc(1, sizeof(*reader));
	int err = reader ? 0 : -ENOMEM;

	*out = NULL;
	if (!err)
		reader->stream = calloc(1, sizeof(*reader->stream));
	if (err || !reader->stream) {
		close(fd);
		free(reader);
		return -ENOMEM;
	}
	reader->profile = profile;
	profile->account = (struct account){0};
	profile->command = NULL;
	profile->unit = PROFILE_SAMPLES;
	profile->period_ns = profile->start_realtime_ns = profile->duration_ns = 0;
	reader->stream->unit_ns = 1;
	err = trie__init(&reader->stacks, RECORD_NODES_MAX);
	err = chunk_reader__open(&reader->stream->chunks, fd) ?: err;
	err = err ?: record_open_tables(reader->stream);
	/* As far as the first samples: then what is said of the run is known. */
	while (!err && !reader->stream->batch.len && !reader->ended && !reader->fault)
		take_chunk(reader);
	if (err)
		record_reader__close(reader);
	else
		*out = reader;
	return err;
}

void record_reader__close(struct record_reader *reader)
{
	if (!reader)
		return;
	chunk_reader__close(&reader->stream->chunks);
	record_close_tables(reader->stream);
	vec__free(&reader->stream->batch);
	vec__free(&reader->stream->shares);
	vec__free(&reader->stream->numbers);
	free(reader->stream);
	trie__free(&reader->stacks);
	vec__free(&reader->processes);
	vec__free(&reader->threads);
	free(reader);
}
