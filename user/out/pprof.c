/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * profile.proto of pprof (github.com/google/pprof/proto/profile.proto), gzipped. Two values a sample: their
 * count, and the CPU time in nanoseconds; of time on and off the CPU ("wall") what is of the one and of the
 * other, too; of other time one value, called after the mode. A location is a line of a function. Processes,
 * threads and containers are labels ("process", "thread", "container"), not frames; "line: approximate" is a
 * label of samples whose innermost line is. The one mapping stands for the command; it says that all has its
 * names, so that no tool looks for symbols in a binary. The metadata is the comment, as JSON.
 */
#include "base/util.h"
#include "out/protobuf.h"
#include "out/words.h"
#include "out/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Numbers of fields, by their names in profile.proto. */
enum profile_field {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING_TABLE = 6,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_SAMPLE_TYPE = 14,
};
enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2 };
enum { SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_STR = 2 };
enum {
	MAPPING_ID = 1,
	MAPPING_FILENAME = 5,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILENAMES = 8,
	MAPPING_HAS_LINE_NUMBERS = 9
};
enum { LOCATION_ID = 1, LOCATION_MAPPING_ID = 2, LOCATION_LINE = 4 };
enum { LINE_FUNCTION_ID = 1, LINE_LINE = 2 };
/* The system name is left out: pprof would take a name that is equal to it for one of C++, and cut out
 * "<module>". */
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_FILENAME = 4, FUNCTION_START_LINE = 5 };

#define THE_MAPPING 1

static const struct view_size size = {.frame = 40, .stack = 24, .stack_frame = 3, .max = 64u << 20};

/* What the values of a sample are. */
enum measure { MEASURE_COUNT, MEASURE_ALL, MEASURE_ON_CPU, MEASURE_OFF_CPU };

struct value {
	const char *type;
	enum measure measure;
};

/* The values of a profile; the default is the second one of samples, the first one of time. */
struct values {
	const char *mode;
	struct value items[3];
};

static const struct values of_samples = {"cpu", {{"samples", MEASURE_COUNT}, {"cpu", MEASURE_ALL}}};
static const struct values of_time[] = {
	{"wall", {{"wall", MEASURE_ALL}, {"cpu", MEASURE_ON_CPU}, {"off-cpu", MEASURE_OFF_CPU}}},
	{"offcpu", {{"off-cpu", MEASURE_ALL}}},
	{"gil", {{"gil", MEASURE_ALL}}},
	{NULL, {{"time", MEASURE_ALL}}},
};

struct encoder {
	const struct profile *profile;
	const struct values *values;
	struct view view;
	bool *used;		      /* frames of the view that are locations: roots are none */
	struct strtab *strings;	      /* of the file */
	struct frame_table functions; /* frames without their lines */
	struct buf *out;
	struct buf message, inner, text; /* being made */
	int err;
};

static uint64_t string_id(struct encoder *encoder, const char *text, size_t len)
{
	uint32_t id = strtab__add(encoder->strings, text, len);

	if (id == UINT32_MAX)
		encoder->err = -ENOMEM;
	return id;
}

static uint64_t literal_id(struct encoder *encoder, const char *text)
{
	return string_id(encoder, text, strlen(text));
}

static uint64_t text_id(struct encoder *encoder, uint32_t id)
{
	encoder->text.len = 0;
	words__text(&encoder->text, encoder->profile->strings, id);
	return string_id(encoder, encoder->text.data, encoder->text.len);
}

static uint64_t name_id(struct encoder *encoder, const struct frame *frame)
{
	encoder->text.len = 0;
	words__name(&encoder->text, encoder->profile->strings, frame);
	return string_id(encoder, encoder->text.data, encoder->text.len);
}

static void add_value_type(struct encoder *encoder, uint32_t field, const char *type, const char *unit)
{
	protobuf__number(&encoder->message, VALUE_TYPE_TYPE, literal_id(encoder, type));
	protobuf__number(&encoder->message, VALUE_TYPE_UNIT, literal_id(encoder, unit));
	protobuf__message(encoder->out, field, &encoder->message);
}

/* --- samples --- */

static bool is_root(const struct frame *frame)
{
	return frame->kind == FRAME_PROCESS || frame->kind == FRAME_THREAD || frame->kind == FRAME_CONTAINER;
}

static void add_label(struct encoder *encoder, const char *key, const char *value)
{
	protobuf__number(&encoder->inner, LABEL_KEY, literal_id(encoder, key));
	protobuf__number(&encoder->inner, LABEL_STR, literal_id(encoder, value));
	protobuf__message(&encoder->message, SAMPLE_LABEL, &encoder->inner);
}

/* "process 12 (python)" is the value "12 (python)" of "process". */
static void add_root(struct encoder *encoder, const struct frame *frame)
{
	const char *key = frame->kind == FRAME_PROCESS	? "process"
			  : frame->kind == FRAME_THREAD ? "thread"
							: "container";
	const char *value;
	size_t len = strlen(key);

	encoder->text.len = 0;
	words__name(&encoder->text, encoder->profile->strings, frame);
	buf__addc(&encoder->text, '\0');
	value = encoder->text.err ? "" : encoder->text.data;
	add_label(encoder, key, !strncmp(value, key, len) && value[len] == ' ' ? value + len + 1 : value);
}

/* A wait, and of what does not fit into the file nobody knows. */
static bool is_known_as(const struct encoder *encoder, const struct view_stacks *stacks, bool wait)
{
	bool waits = false;

	for (uint32_t i = 0; i < stacks->depth; i++) {
		const struct frame *frame = frame_table__get(&encoder->view.frames, stacks->path[i]);

		if (frame->kind == FRAME_SPECIAL &&
		    !strcmp(strtab__get(encoder->profile->strings, frame->function), VIEW_PRUNED))
			return false;
		waits |= frame->wait;
	}
	return waits == wait;
}

static uint64_t measure(const struct encoder *encoder, enum measure measure, const struct view_stacks *stacks)
{
	if (measure == MEASURE_COUNT)
		return profile__value(encoder->profile, stacks->weight);
	if (measure != MEASURE_ALL && !is_known_as(encoder, stacks, measure == MEASURE_OFF_CPU))
		return 0;
	return profile__ns(encoder->profile, stacks->weight);
}

static bool is_value(const struct encoder *encoder, const struct value *value)
{
	return value < encoder->values->items + ARRAY_SIZE(encoder->values->items) && value->type;
}

static void add_sample(struct encoder *encoder, const struct view_stacks *stacks)
{
	const struct frame_table *frames = &encoder->view.frames;
	uint32_t roots = 0;

	while (roots < stacks->depth && is_root(frame_table__get(frames, stacks->path[roots])))
		roots++;
	if (roots == stacks->depth)
		roots--; /* a sample without locations would not be shown */
	for (uint32_t i = stacks->depth; i-- > roots;) {
		protobuf__varint(&encoder->inner, (uint64_t)stacks->path[i] + 1);
		encoder->used[stacks->path[i]] = true;
	}
	protobuf__message(&encoder->message, SAMPLE_LOCATION_ID, &encoder->inner);
	for (const struct value *value = encoder->values->items; is_value(encoder, value); value++)
		protobuf__varint(&encoder->inner, measure(encoder, value->measure, stacks));
	protobuf__message(&encoder->message, SAMPLE_VALUE, &encoder->inner);
	for (uint32_t i = 0; i < roots; i++)
		add_root(encoder, frame_table__get(frames, stacks->path[i]));
	if (frame_table__get(frames, stacks->path[stacks->depth - 1])->approximate)
		add_label(encoder, "line", "approximate");
	protobuf__message(encoder->out, PROFILE_SAMPLE, &encoder->message);
}

static void add_samples(struct encoder *encoder)
{
	struct view_stacks stacks;

	encoder->err = encoder->err ?: view_stacks__open(&stacks, &encoder->view);
	while (!encoder->err && view_stacks__next(&stacks)) {
		add_sample(encoder, &stacks);
		encoder->err = encoder->err ?: encoder->out->err;
	}
	view_stacks__close(&stacks);
}

/* --- tables --- */

static void add_function(struct encoder *encoder, const struct frame *function, uint64_t id)
{
	protobuf__number(&encoder->message, FUNCTION_ID, id);
	protobuf__number(&encoder->message, FUNCTION_NAME, name_id(encoder, function));
	if (function->kind == FRAME_PYTHON)
		protobuf__number(&encoder->message, FUNCTION_FILENAME, text_id(encoder, function->file));
	protobuf__number(&encoder->message, FUNCTION_START_LINE, function->first_line);
	protobuf__message(encoder->out, PROFILE_FUNCTION, &encoder->message);
}

static void add_locations(struct encoder *encoder)
{
	for (size_t id = 0; id < encoder->view.frames.frames.len && !encoder->err; id++) {
		struct frame function = *frame_table__get(&encoder->view.frames, (uint32_t)id);
		uint32_t line = function.line, function_id;
		size_t known = encoder->functions.frames.len;

		if (!encoder->used[id])
			continue;
		function.line = 0;
		function.approximate = false;
		function_id = frame_table__add(&encoder->functions, &function);
		if (function_id == UINT32_MAX)
			encoder->err = -ENOMEM;
		if (encoder->functions.frames.len > known)
			add_function(encoder, &function, (uint64_t)function_id + 1);
		protobuf__number(&encoder->inner, LINE_FUNCTION_ID, (uint64_t)function_id + 1);
		protobuf__number(&encoder->inner, LINE_LINE, line);
		protobuf__number(&encoder->message, LOCATION_ID, id + 1);
		protobuf__number(&encoder->message, LOCATION_MAPPING_ID, THE_MAPPING);
		protobuf__message(&encoder->message, LOCATION_LINE, &encoder->inner);
		protobuf__message(encoder->out, PROFILE_LOCATION, &encoder->message);
	}
}

static void add_mapping(struct encoder *encoder)
{
	protobuf__number(&encoder->message, MAPPING_ID, THE_MAPPING);
	protobuf__number(&encoder->message, MAPPING_FILENAME,
			 literal_id(encoder, encoder->profile->command ?: ""));
	protobuf__number(&encoder->message, MAPPING_HAS_FUNCTIONS, true);
	protobuf__number(&encoder->message, MAPPING_HAS_FILENAMES, true);
	protobuf__number(&encoder->message, MAPPING_HAS_LINE_NUMBERS, true);
	protobuf__message(encoder->out, PROFILE_MAPPING, &encoder->message);
}

static const struct values *values_of(const struct profile *profile)
{
	const struct values *values = of_time;

	if (profile->unit != PROFILE_TIME)
		return &of_samples;
	while (values->mode && (!profile->account.mode || strcmp(values->mode, profile->account.mode)))
		values++;
	return values;
}

static void add_profile(struct encoder *encoder)
{
	const struct profile *profile = encoder->profile;
	const struct value *items = encoder->values->items;

	for (const struct value *value = items; is_value(encoder, value); value++)
		add_value_type(encoder, PROFILE_SAMPLE_TYPE, value->type,
			       value->measure == MEASURE_COUNT ? "count" : "nanoseconds");
	add_value_type(encoder, PROFILE_PERIOD_TYPE, "cpu", "nanoseconds");
	protobuf__number(encoder->out, PROFILE_PERIOD, profile->period_ns);
	protobuf__number(encoder->out, PROFILE_TIME_NANOS, profile->start_realtime_ns);
	protobuf__number(encoder->out, PROFILE_DURATION_NANOS, profile->duration_ns);
	protobuf__number(encoder->out, PROFILE_DEFAULT_SAMPLE_TYPE,
			 literal_id(encoder, items[items->measure == MEASURE_COUNT].type));
	encoder->text.len = 0;
	words__metadata(&encoder->text, profile, &encoder->view);
	protobuf__number(encoder->out, PROFILE_COMMENT,
			 string_id(encoder, encoder->text.data, encoder->text.len));
	add_mapping(encoder);
	add_samples(encoder);
	add_locations(encoder);
	for (uint32_t id = 0; id < strtab__count(encoder->strings); id++)
		protobuf__bytes(encoder->out, PROFILE_STRING_TABLE, strtab__get(encoder->strings, id),
				strtab__len(encoder->strings, id));
	encoder->err = encoder->err ?: encoder->out->err ?: encoder->message.err ?: encoder->text.err;
}

static int encode(const struct profile *profile, enum group_by group, struct buf *out)
{
	struct encoder encoder = {.profile = profile, .values = values_of(profile), .out = out};

	encoder.err = view__init(&encoder.view, profile, group, &size) ?: strtab__new(&encoder.strings);
	encoder.used = calloc(encoder.view.frames.frames.len + 1, sizeof(*encoder.used));
	if (!encoder.used)
		encoder.err = -ENOMEM;
	if (!encoder.err)
		add_profile(&encoder);
	free(encoder.used);
	view__free(&encoder.view);
	strtab__free(encoder.strings);
	frame_table__free(&encoder.functions);
	buf__free(&encoder.message);
	buf__free(&encoder.inner);
	buf__free(&encoder.text);
	return encoder.err;
}

/* The level is the fastest, as with other writers of this format: there may be much. */
static int add_gzipped(const struct buf *in, struct buf *out)
{
	enum { GZIP = 16, MEMORY = 8 };
	z_stream stream = {.next_in = (unsigned char *)in->data, .avail_in = (unsigned int)in->len};
	unsigned char chunk[16384];
	int result;

	if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + GZIP, MEMORY, Z_DEFAULT_STRATEGY) !=
	    Z_OK)
		return -ENOMEM;
	do {
		stream.next_out = chunk;
		stream.avail_out = sizeof(chunk);
		result = deflate(&stream, Z_FINISH);
		buf__add(out, chunk, sizeof(chunk) - stream.avail_out);
	} while (result == Z_OK || result == Z_BUF_ERROR);
	deflateEnd(&stream);
	return result == Z_STREAM_END ? out->err : -EIO;
}

static int write_pprof(const struct profile *profile, enum group_by group, struct buf *buf)
{
	struct buf raw = {0};
	int err = encode(profile, group, &raw);

	if (!err)
		err = raw.len > UINT32_MAX ? -EFBIG : add_gzipped(&raw, buf);
	buf__free(&raw);
	return err;
}

static const char *const suffixes[] = {".pb.gz", ".pprof", NULL};

const struct writer pprof_writer = {
	.name = "pprof",
	.suffixes = suffixes,
	.help = "for go tool pprof and what reads its files",
	.binary = true,
	.write = write_pprof,
};
