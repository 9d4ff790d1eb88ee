/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See gecko_parts.h. The processed format of the Firefox Profiler, version 61. Names are those of
 * github.com/firefox-devtools/profiler: src/types/profile.ts, docs-developer/CHANGELOG-formats.md.
 * `meta.pybpfprof` holds the metadata; the viewer leaves unknown keys alone.
 */
#include "agg/view.h"
#include "base/json.h"
#include "base/util.h"
#include "out/gecko_parts.h"
#include "out/words.h"

#include <string.h>

#define VERSION	    61
#define VISIBLE_MAX 20 /* threads that are shown at first, those with most time */
#define MS	    1000000ull

/* Milliseconds; exact, without zeros at the end. */
static void add_ms(struct buf *buf, uint64_t ns)
{
	uint64_t rest = ns % MS;
	char digits[8];
	int len = 6;

	buf__add_number(buf, ns / MS);
	if (!rest)
		return;
	for (int i = 5; i >= 0; i--, rest /= 10)
		digits[i] = (char)('0' + rest % 10);
	while (digits[len - 1] == '0')
		len--;
	buf__addc(buf, '.');
	buf__add(buf, digits, len);
}

static void add_optional(struct buf *buf, uint64_t number, bool is_there)
{
	if (is_there)
		buf__add_number(buf, number);
	else
		buf__adds(buf, "null");
}

/* One column: ,"name":[1,2]; `add` writes an item. */
static void add_column(struct buf *buf, const char *name, size_t count, const void *context,
		       void (*add)(struct buf *buf, const void *context, size_t i))
{
	buf__addf(buf, ",\n\"%s\":[", name);
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf__addc(buf, ',');
		add(buf, context, i);
	}
	buf__addc(buf, ']');
}

/* ... of which each item is the same. */
static void add_same(struct buf *buf, const char *name, size_t count, const char *text)
{
	buf__addf(buf, ",\n\"%s\":[", name);
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf__addc(buf, ',');
		buf__adds(buf, text);
	}
	buf__addc(buf, ']');
}

static void stack_frame(struct buf *buf, const void *context, size_t i)
{
	buf__add_number(buf, ((const struct gecko *)context)->stacks.items[i].frame);
}

static void stack_prefix(struct buf *buf, const void *context, size_t i)
{
	uint32_t prefix = ((const struct gecko *)context)->stacks.items[i].prefix;

	add_optional(buf, prefix, prefix != GECKO_NONE);
}

static void frame_category(struct buf *buf, const void *context, size_t i)
{
	buf__add_number(buf, ((const struct gecko *)context)->frames.items[i].category);
}

static void frame_function(struct buf *buf, const void *context, size_t i)
{
	buf__add_number(buf, ((const struct gecko *)context)->frames.items[i].function);
}

static void frame_line(struct buf *buf, const void *context, size_t i)
{
	const struct gecko *gecko = context;
	uint32_t id = gecko->frames.items[i].frame;
	uint32_t line = id == GECKO_NONE ? 0 : frame_table__get(&gecko->profile->frames, id)->line;

	add_optional(buf, line, line && gecko->group == GROUP_LINE);
}

static void function_name(struct buf *buf, const void *context, size_t i)
{
	buf__add_number(buf, ((const struct gecko *)context)->functions.frames.items[i].function);
}

static void function_source(struct buf *buf, const void *context, size_t i)
{
	const struct gecko *gecko = context;
	const struct frame *function = &gecko->functions.frames.items[i];

	if (function->kind == FRAME_PYTHON)
		buf__add_number(buf, *hmap__get(&gecko->source_index, function->file));
	else
		buf__adds(buf, "null");
}

static void function_line(struct buf *buf, const void *context, size_t i)
{
	uint32_t line = ((const struct gecko *)context)->functions.frames.items[i].first_line;

	add_optional(buf, line, line);
}

static void source_name(struct buf *buf, const void *context, size_t i)
{
	buf__add_number(buf, ((const struct gecko *)context)->sources.items[i]);
}

static void string_text(struct buf *buf, const void *context, size_t i)
{
	words__json_text(buf, ((const struct gecko *)context)->strings, (uint32_t)i);
}

static void add_tables(struct buf *buf, const struct gecko *gecko)
{
	size_t frames = gecko->frames.len, functions = gecko->functions.frames.len;
	size_t sources = gecko->sources.len;

	buf__addf(buf, "\"shared\":{\n\"stackTable\":{\"length\":%zu", gecko->stacks.len);
	add_column(buf, "frame", gecko->stacks.len, gecko, stack_frame);
	add_column(buf, "prefix", gecko->stacks.len, gecko, stack_prefix);
	buf__addf(buf, "},\n\"frameTable\":{\"length\":%zu", frames);
	add_same(buf, "address", frames, "-1");
	add_same(buf, "inlineDepth", frames, "0");
	add_column(buf, "category", frames, gecko, frame_category);
	add_same(buf, "subcategory", frames, "0");
	add_column(buf, "func", frames, gecko, frame_function);
	add_same(buf, "nativeSymbol", frames, "null");
	add_same(buf, "innerWindowID", frames, "0");
	add_column(buf, "line", frames, gecko, frame_line);
	add_same(buf, "column", frames, "null");
	buf__addf(buf, "},\n\"funcTable\":{\"length\":%zu", functions);
	add_column(buf, "name", functions, gecko, function_name);
	add_same(buf, "isJS", functions, "false");
	add_same(buf, "relevantForJS", functions, "false");
	add_same(buf, "resource", functions, "-1");
	add_column(buf, "source", functions, gecko, function_source);
	add_column(buf, "lineNumber", functions, gecko, function_line);
	add_same(buf, "columnNumber", functions, "null");
	buf__adds(buf,
		  "},\n\"resourceTable\":{\"length\":0,\"lib\":[],\"name\":[],\"host\":[],\"type\":[]},\n"
		  "\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],"
		  "\"functionSize\":[]},\n\"sources\":{\"length\":");
	buf__add_number(buf, sources);
	add_same(buf, "id", sources, "null");
	add_column(buf, "filename", sources, gecko, source_name);
	add_same(buf, "startLine", sources, "1");
	add_same(buf, "startColumn", sources, "1");
	add_same(buf, "sourceMapURL", sources, "null");
	buf__adds(buf, "}");
	add_column(buf, "stringArray", strtab__count(gecko->strings), gecko, string_text);
	buf__adds(buf, "},\n");
}

/* A wait may have begun before the run did: it is told from there on. */
static uint64_t since_start(const struct gecko *gecko, uint64_t time_ns)
{
	return time_ns > gecko->profile->start_ns ? time_ns - gecko->profile->start_ns : 0;
}

struct timed {
	const struct gecko *gecko;
	const struct gecko_thread *thread;
};

static void sample_stack(struct buf *buf, const void *context, size_t i)
{
	uint32_t stack = ((const struct gecko_thread *)context)->samples.items[i].stack;

	add_optional(buf, stack, stack != GECKO_NONE);
}

static void sample_time(struct buf *buf, const void *context, size_t i)
{
	const struct timed *timed = context;

	add_ms(buf, since_start(timed->gecko, timed->thread->samples.items[i].time_ns));
}

static void sample_ms(struct buf *buf, const void *context, size_t i)
{
	add_ms(buf, ((const struct gecko_thread *)context)->samples.items[i].weight_ns);
}

static void sample_cpu(struct buf *buf, const void *context, size_t i)
{
	const struct gecko_sample *sample = &((const struct gecko_thread *)context)->samples.items[i];

	buf__add_number(buf, sample->waits ? 0 : sample->weight_ns);
}

/* In samples: one at a time is what most of them are. */
static void add_counts(struct buf *buf, const struct gecko_thread *thread, const struct profile *profile)
{
	uint64_t told = 0, sum = 0;

	buf__adds(buf, ",\n\"weight\":[");
	for (size_t i = 0; i < thread->samples.len; i++) {
		sum += thread->samples.items[i].weight_ns;
		if (i)
			buf__addc(buf, ',');
		/* So that nothing goes by rounding. */
		buf__add_number(buf, profile__value(profile, sum) - told);
		told = profile__value(profile, sum);
	}
	buf__adds(buf, "],\"weightType\":\"samples\"");
}

static void add_samples(struct buf *buf, const struct gecko *gecko, const struct gecko_thread *thread)
{
	size_t count = thread->samples.len;

	buf__addf(buf, "\"samples\":{\"length\":%zu", count);
	add_column(buf, "stack", count, thread, sample_stack);
	add_column(buf, "time", count, &(struct timed){gecko, thread}, sample_time);
	if (gecko->profile->unit == PROFILE_SAMPLES) {
		add_counts(buf, thread, gecko->profile);
	} else {
		add_column(buf, "weight", count, thread, sample_ms);
		buf__adds(buf, ",\"weightType\":\"tracing-ms\"");
	}
	add_column(buf, "threadCPUDelta", count, thread, sample_cpu);
	buf__adds(buf,
		  "},\n\"markers\":{\"length\":0,\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":[],"
		  "\"phase\":[],\"category\":[]}");
}

static void add_process(struct buf *buf, const struct gecko *gecko, const struct gecko_process *process)
{
	buf__adds(buf, "\"processName\":");
	words__json_text(buf, gecko->strings, process->command);
	buf__addf(buf, ",\"pid\":\"%u", process->pid);
	if (process->lives)
		buf__addf(buf, ".%u", process->lives);
	buf__addc(buf, '"');
}

static void add_thread(struct buf *buf, const struct gecko *gecko, const struct gecko_thread *thread,
		       bool is_first)
{
	const struct gecko_process *process =
		thread->process == GECKO_NONE ? NULL : &gecko->processes.items[thread->process];

	buf__adds(buf, "{\"name\":");
	if (process)
		words__json_text(buf, gecko->strings, thread->name);
	else
		buf__adds(buf, "\"[no thread]\"");
	buf__addc(buf, ',');
	if (process)
		add_process(buf, gecko, process);
	else
		buf__adds(buf, "\"pid\":\"0\"");
	buf__addf(buf, ",\"tid\":%u,\"isMainThread\":%s", thread->tid,
		  process && is_first && thread->tid == process->pid ? "true" : "false");
	buf__adds(buf, ",\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,"
		       "\"registerTime\":");
	add_ms(buf, since_start(gecko, thread->samples.items[0].time_ns));
	buf__adds(buf, ",\"unregisterTime\":null,\"pausedRanges\":[],\n");
	add_samples(buf, gecko, thread);
	buf__addc(buf, '}');
}

static void add_threads(struct buf *buf, const struct gecko *gecko)
{
	uint32_t process = GECKO_NONE;

	buf__adds(buf, "\"threads\":[");
	for (size_t i = 0; i < gecko->order.len && !buf->err; i++) {
		const struct gecko_thread *thread = &gecko->threads.items[gecko->order.items[i]];

		buf__adds(buf, i ? ",\n" : "\n");
		add_thread(buf, gecko, thread, thread->process != process);
		process = thread->process;
	}
	buf__adds(buf, "]");
}

/* Places in `order` of those with most time. */
static void add_hottest(struct buf *buf, const struct gecko *gecko, const char *name, size_t max)
{
	uint64_t below = UINT64_MAX;
	size_t below_at = 0;

	buf__addf(buf, ",\"%s\":[", name);
	for (size_t n = 0; n < max && n < gecko->order.len; n++) {
		size_t best = SIZE_MAX;
		uint64_t most = 0;

		for (size_t i = 0; i < gecko->order.len; i++) {
			uint64_t weight = gecko->threads.items[gecko->order.items[i]].weight_ns;
			bool is_left = !n || weight < below || (weight == below && i > below_at);

			if (is_left && (best == SIZE_MAX || weight > most)) {
				best = i;
				most = weight;
			}
		}
		buf__addf(buf, n ? ",%zu" : "%zu", best);
		below = most;
		below_at = best;
	}
	buf__addc(buf, ']');
}

/* What the viewer shows: what is at the end is beyond it, and some samples are taken while a run ends. */
static uint64_t end_of_view(const struct gecko *gecko)
{
	uint64_t end_ns = gecko->profile->duration_ns;

	for (size_t i = 0; i < gecko->order.len; i++) {
		const struct gecko_thread *thread = &gecko->threads.items[gecko->order.items[i]];
		const struct gecko_sample *last = &thread->samples.items[thread->samples.len - 1];

		end_ns = max_u64(end_ns, since_start(gecko, last->time_ns) + 1);
	}
	return end_ns;
}

static void add_meta(struct buf *buf, const struct gecko *gecko)
{
	const struct profile *profile = gecko->profile;
	const struct view pruned = {.pruned = gecko->pruned_ns};
	const char *command = profile->command ?: "";

	buf__adds(buf, "{\"meta\":{\"interval\":");
	add_ms(buf, profile->period_ns);
	buf__adds(buf, ",\"startTime\":");
	add_ms(buf, profile->start_realtime_ns);
	buf__adds(buf, ",\"profilingStartTime\":0,\"profilingEndTime\":");
	add_ms(buf, end_of_view(gecko));
	buf__addf(buf,
		  ",\"version\":27,\"preprocessedProfileVersion\":%d,\"processType\":0,\"stackwalk\":1,"
		  "\"debug\":false,\"platform\":\"Linux\",\"oscpu\":\"Linux\",\"abi\":\"x86_64-gcc3\","
		  "\n\"product\":",
		  VERSION);
	json__string(buf, command, strlen(command));
	buf__adds(buf, ",\"importedFrom\":\"pybpfprof " PYBPFPROF_VERSION "\",\"symbolicated\":true,"
		       "\"symbolicationNotSupported\":true,\"usesOnlyOneStackType\":true,"
		       "\"sourceCodeIsNotOnSearchfox\":true,\"keepProfileThreadOrder\":true,\n"
		       "\"markerSchema\":[],\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\","
		       "\"threadCPUDelta\":\"ns\"},\n\"categories\":[");
#define ADD(name, text, color)                                                                               \
	buf__addf(buf, "%s{\"name\":\"%s\",\"color\":\"%s\",\"subcategories\":[\"Other\"]}",                 \
		  GECKO_##name ? "," : "", text, color);
	GECKO_CATEGORIES(ADD)
#undef ADD
	buf__addc(buf, ']');
	add_hottest(buf, gecko, "initialVisibleThreads", VISIBLE_MAX);
	add_hottest(buf, gecko, "initialSelectedThreads", 1);
	buf__adds(buf, ",\n\"pybpfprof\":");
	words__metadata(buf, profile, &pruned);
	buf__adds(buf, "},\n\"libs\":[],\n");
}

void gecko_add_file(struct buf *buf, const struct gecko *gecko)
{
	add_meta(buf, gecko);
	add_tables(buf, gecko);
	add_threads(buf, gecko);
	buf__adds(buf, "}\n");
}
