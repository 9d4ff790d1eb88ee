/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Recordings: what was taken is read again, sample by sample and added up; a file that was cut off anywhere,
 * or has a wrong byte in it, is good up to there, and said not to be whole.
 */
#include "made.h"
#include "out/record.h"
#include "out/record_chunks.h"
#include "out/record_sum.h"
#include "out/recorder.h"
#include "out/writer.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PERIOD 10000000ull
#define START  5000000000ull /* CLOCK_MONOTONIC */

static struct profile profile;
static struct buf file;
static struct recorder *recorder;
static struct record_sum sum;
static const char *fault;

static const struct sink_process processes[2] = {
	{.key = 1, .pid = 10, .command = "one", .root = "process 10 (one)", .container = ""},
	{.key = 2, .pid = 20, .command = "two\xff", .root = "process 20 (two)", .container = "container web"},
};
static const struct sink_thread threads[3] = {
	{.key = 11, .process = &processes[0], .tid = 10, .name = "main", .root = "thread 10 (main)"},
	{.key = 12, .process = &processes[0], .tid = 11, .name = "pool-1", .root = "thread 11 (pool-1)"},
	{.key = 13, .process = &processes[1], .tid = 20, .name = "main", .root = "thread 20 (main)"},
};

static int append(void *context, const void *bytes, size_t len)
{
	buf__add(context, bytes, len);
	return 0;
}

static void open_all(void)
{
	cr_assert_eq(profile__init(&profile, 100000), 0);
	profile.period_ns = PERIOD;
	profile.start_ns = START;
	profile.start_realtime_ns = 1700000000000000000ull;
	profile.command = "python3 app.py";
	profile.account = (struct account){.engine = "bpf", .rate_hz = 100, .processes = 2, .lost = 3};
	cr_assert_eq(record_sum__init(&sum), 0);
}

static void close_all(void)
{
	recorder__free(recorder);
	recorder = NULL;
	record_sum__free(&sum);
	profile__free(&profile);
	buf__free(&file);
}

TestSuite(record, .init = open_all, .fini = close_all);

static void start(struct record_apart apart)
{
	struct recorder_config config = {
		.profile = &profile, .host = "here", .apart = apart, .write = append, .context = &file};

	cr_assert_eq(recorder__new(&recorder, &config), 0);
}

/* A sample of one or two frames, `at` periods after the start. */
static void give(double at, const struct sink_thread *thread, const char *outer, const char *inner,
		 uint32_t state)
{
	uint32_t node = made_add_frame(&profile, TRIE_ROOT, MADE_FRAME(outer, "a.py", 7, 1));
	struct sink_sample sample = {.time_ns = (uint64_t)(START + at * PERIOD),
				     .thread = thread,
				     .state = state,
				     .weight_ns = PERIOD};

	sample.node = inner ? made_add_frame(&profile, node, MADE_FRAME(inner, "b.py", 70, 60)) : node;
	recorder__sink(recorder)->take(recorder__sink(recorder), &sample);
}

static void flush(double at)
{
	profile.duration_ns = (uint64_t)(at * PERIOD);
	recorder__sink(recorder)->flush(recorder__sink(recorder));
}

static void end(void)
{
	profile.account.end = "duration over";
	cr_assert_eq(recorder__end(recorder), 0);
}

/* Some seconds of two processes; files.h's. */
static void record_some(void)
{
	start((struct record_apart){0});
	give(0.5, &threads[0], "main", NULL, SINK_ATTACHED);
	give(1.5, &threads[0], "main", "work", SINK_ATTACHED | SINK_KERNEL);
	give(1.7, &threads[1], "pool", "work", 0);
	flush(2);
	give(2.5, &threads[2], "main", "Box.rest", SINK_ATTACHED | SINK_TRUNCATED);
	flush(3);
	give(2.9, &threads[1], "pool", "work", SINK_WITHOUT_PYTHON);
	give(4.0, NULL, "main", NULL, SINK_CONTINUED);
	profile.duration_ns = 5 * PERIOD;
	profile.account.lost = 4;
	profile.account.truncated = profile.account.without_python = 1;
	end();
}

static int fd_with(const void *bytes, size_t len)
{
	int fd = memfd_create("record", MFD_CLOEXEC);

	cr_assert(fd >= 0 && write(fd, bytes, len) == (ssize_t)len && !lseek(fd, 0, SEEK_SET));
	return fd;
}

static int add(size_t len)
{
	return record_sum__add(&sum, fd_with(file.data, len), &fault);
}

static void reopen_sum(void)
{
	record_sum__free(&sum);
	cr_assert_eq(record_sum__init(&sum), 0);
}

/* The stacks that were added up, in the order of their lines. */
static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *sorted(const struct profile *of)
{
	static char text[1 << 20];
	struct buf lines = {0};
	char *line[4096], *save = NULL;
	size_t count = 0, len = 0;

	cr_assert_eq(collapsed_writer.write(of, GROUP_LINE, &lines), 0);
	buf__addc(&lines, '\0');
	for (char *at = strtok_r(lines.data, "\n", &save); at; at = strtok_r(NULL, "\n", &save))
		line[count++] = at;
	qsort(line, count, sizeof(*line), compare_lines);
	text[0] = '\0';
	for (size_t i = 0; i < count; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s\n", line[i]);
	buf__free(&lines);
	return text;
}

static const char *summed(void)
{
	record_sum__finish(&sum);
	return sorted(&sum.profile);
}

Test(record, samples_one_by_one)
{
	static const struct {
		double at;
		const char *function, *thread;
		uint32_t state;
	} want[] = {
		{0.5, "main", "main", SINK_ATTACHED},
		{1.5, "work", "main", SINK_ATTACHED | SINK_KERNEL},
		{1.7, "work", "pool-1", 0},
		{2.5, "Box.rest", "main", SINK_ATTACHED | SINK_TRUNCATED},
		{2.9, "work", "pool-1", SINK_WITHOUT_PYTHON},
		{4.0, "main", NULL, SINK_CONTINUED},
	};
	struct record_reader *reader;
	struct record_sample sample;
	struct profile read;
	size_t count = 0;

	record_some();
	cr_assert_eq(profile__init(&read, 1000), 0);
	cr_assert_eq(record_reader__open(&reader, fd_with(file.data, file.len), &read), 0);
	cr_expect_eq(read.period_ns, PERIOD);
	cr_expect_eq(read.start_realtime_ns, profile.start_realtime_ns);
	for (; record_reader__next(reader, &sample); count++) {
		const struct trie_node *node = &reader->stacks.nodes.items[sample.node];
		const struct frame *frame = frame_table__get(&read.frames, node->frame);

		cr_expect_eq(sample.time_ns, (int64_t)(want[count].at * PERIOD), "%zu: %ld", count,
			     (long)sample.time_ns);
		cr_expect_eq(sample.weight_ns, PERIOD);
		cr_expect_eq(sample.state, want[count].state);
		cr_expect_str_eq(strtab__get(read.strings, frame->function), want[count].function);
		cr_expect_eq(sample.thread == RECORD_NONE, !want[count].thread);
		if (sample.thread == RECORD_NONE)
			continue;
		cr_expect_str_eq(strtab__get(read.strings, reader->threads.items[sample.thread].name),
				 want[count].thread);
	}
	cr_expect_eq(count, 6);
	cr_expect_eq(reader->samples, 5);
	cr_expect(reader->ended && !reader->fault);
	cr_expect_eq(read.account.lost, 4);
	cr_expect_eq(read.account.processes, 2);
	cr_expect_eq(read.duration_ns, 5 * PERIOD);
	cr_expect_str_eq(read.command, "python3 app.py");
	cr_expect_str_eq(read.account.end, "duration over");
	cr_expect_str_eq(strtab__get(read.strings, reader->host), "here");
	record_reader__close(reader);
	profile__free(&read);
}

Test(record, added_up)
{
	record_some();
	cr_assert_eq(add(file.len), 0);
	cr_expect_null(fault);
	cr_expect_str_eq(summed(), "main (a.py:7) 2\n"
				   "main (a.py:7);Box.rest (b.py:70) 1\n"
				   "main (a.py:7);work (b.py:70) 1\n"
				   "pool (a.py:7);work (b.py:70) 2\n");
	cr_expect_eq(sum.profile.samples, 5);
	cr_expect_eq(sum.profile.account.truncated, 1);
	cr_expect_eq(sum.profile.account.without_python, 1);
	cr_expect_eq(sum.profile.account.lost, 4);
	cr_expect_eq(sum.attached, 3);
	cr_expect_eq(sum.in_kernel, 1);
	cr_expect(!sum.cut_off);
}

/* A run that is whole lasted as long as it says, and others as long as they have samples. */
Test(record, duration)
{
	start((struct record_apart){0});
	give(1, &threads[0], "main", NULL, 0);
	give(7, &threads[0], "main", NULL, 0);
	flush(5);
	end();
	for (int cut = 0; cut < 2; cut++) {
		reopen_sum();
		cr_assert_eq(add(file.len - cut), 0);
		record_sum__finish(&sum);
		cr_expect_eq(sum.profile.duration_ns, (cut ? 7 : 5) * PERIOD, "%llu",
			     (unsigned long long)sum.profile.duration_ns);
	}
}

Test(record, told_apart)
{
	record_some();
	sum.apart_is_set = true;
	sum.apart = (struct record_apart){.processes = true, .threads = true};
	cr_assert_eq(add(file.len), 0);
	cr_expect_str_eq(summed(),
			 "main (a.py:7) 1\n"
			 "process 10 (one);thread 10 (main);main (a.py:7) 1\n"
			 "process 10 (one);thread 10 (main);main (a.py:7);work (b.py:70) 1\n"
			 "process 10 (one);thread 11 (pool-1);pool (a.py:7);work (b.py:70) 2\n"
			 "process 20 (two);thread 20 (main);main (a.py:7);Box.rest (b.py:70) 1\n");
}

#define LIST(type, ...) (const type[]){__VA_ARGS__}
#define LENGTH(type, ...) (sizeof((const type[]){__VA_ARGS__}) / sizeof(type))
#define OF_PIDS(...)	  .pids = LIST(pid_t, __VA_ARGS__), .pid_count = LENGTH(pid_t, __VA_ARGS__)
#define OF_THREADS(...)	  .threads = LIST(char *const, __VA_ARGS__), .thread_count = LENGTH(char *const, __VA_ARGS__)
#define WITH(...)	  .functions = LIST(char *const, __VA_ARGS__), .function_count = LENGTH(char *const, __VA_ARGS__)

Test(record, in_part)
{
	const struct {
		struct record_filter filter;
		const char *want;
	} cases[] = {
		{{.has_from = true, .from_ns = 15 * PERIOD / 10, .has_to = true, .to_ns = 25 * PERIOD / 10},
		 "main (a.py:7);work (b.py:70) 1\npool (a.py:7);work (b.py:70) 1\n"},
		{{OF_PIDS(20)}, "main (a.py:7);Box.rest (b.py:70) 1\n"},
		{{OF_THREADS("pool-*")}, "pool (a.py:7);work (b.py:70) 2\n"},
		{{OF_THREADS("nobody", "11")}, "pool (a.py:7);work (b.py:70) 2\n"},
		{{OF_THREADS("1")}, ""},
		{{WITH("main"), OF_PIDS(10)}, "main (a.py:7) 1\nmain (a.py:7);work (b.py:70) 1\n"},
		{{WITH("rest")}, "main (a.py:7);Box.rest (b.py:70) 1\n"},
		{{WITH("Box.*", "pool"), OF_PIDS(30, 10, 20)},
		 "main (a.py:7);Box.rest (b.py:70) 1\npool (a.py:7);work (b.py:70) 2\n"},
		{{WITH("es")}, ""},
	};

	record_some();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		reopen_sum();
		sum.filter = cases[i].filter;
		cr_assert_eq(add(file.len), 0);
		cr_expect_str_eq(summed(), cases[i].want, "%zu: %s", i, sorted(&sum.profile));
	}
}

/* A part tells of the processes that are in it. */
Test(record, processes_of_a_part)
{
	const struct {
		struct record_filter filter;
		uint64_t processes;
		const char *command;
	} cases[] = {
		{{.has_from = true}, 2, "python3 app.py"},
		{{OF_PIDS(20)}, 1, "two\\xff"},
		{{OF_THREADS("pool-*")}, 1, "one"},
		{{WITH("nothing")}, 0, "python3 app.py"},
	};

	record_some();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		reopen_sum();
		sum.filter = cases[i].filter;
		cr_assert_eq(add(file.len), 0);
		record_sum__finish(&sum);
		cr_expect_eq(sum.profile.account.processes, cases[i].processes, "%zu", i);
		cr_expect_str_eq(sum.profile.command, cases[i].command, "%zu", i);
	}
}

/* What was taken just before the start is of the part that begins there. */
Test(record, part_from_the_start)
{
	static const struct {
		struct record_filter filter;
		uint64_t samples;
	} cases[] = {
		{{.has_from = true, .from_ns = 0}, 2},
		{{.has_to = true, .to_ns = 0}, 0},
		{{.has_to = true, .to_ns = 1}, 1},
		{{.has_from = true, .from_ns = 1}, 1},
	};

	start((struct record_apart){0});
	give(-0.2, &threads[0], "main", NULL, 0);
	give(1, &threads[0], "main", NULL, 0);
	flush(2);
	end();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		reopen_sum();
		sum.filter = cases[i].filter;
		cr_assert_eq(add(file.len), 0);
		record_sum__finish(&sum);
		cr_expect_eq(sum.profile.samples, cases[i].samples, "%zu: %llu", i,
			     (unsigned long long)sum.profile.samples);
	}
}

/* A part that is recorded again is a run that began there, also if its first sample is in the second file. */
Test(record, part_as_recording)
{
	struct buf again = {0};
	struct recorder_config config = {
		.profile = &sum.profile, .host = "here", .write = append, .context = &again};
	struct recorder *part;
	size_t first;

	record_some();
	first = file.len;
	recorder__free(recorder);
	profile.start_realtime_ns += 5 * PERIOD;
	record_some();
	sum.filter = (struct record_filter){
		.has_from = true, .from_ns = 65 * PERIOD / 10, .has_to = true, .to_ns = 78 * PERIOD / 10};
	sum.profile.start_ns = START;
	cr_assert_eq(recorder__new(&part, &config), 0);
	sum.sink = recorder__sink(part);
	cr_assert_eq(add(first), 0);
	cr_assert_eq(record_sum__add(&sum, fd_with(file.data + first, file.len - first), &fault), 0);
	record_sum__finish(&sum);
	cr_assert_eq(recorder__end(part), 0);
	recorder__free(part);
	reopen_sum();
	cr_assert_eq(record_sum__add(&sum, fd_with(again.data, again.len), &fault), 0);
	buf__free(&again);
	cr_expect_null(fault);
	record_sum__finish(&sum);
	cr_expect_eq(sum.profile.samples, 3, "%llu", (unsigned long long)sum.profile.samples);
	cr_expect_eq(sum.profile.duration_ns, 13 * PERIOD / 10, "%llu",
		     (unsigned long long)sum.profile.duration_ns);
	cr_expect_eq(sum.profile.start_realtime_ns, 1700000000000000000ull + 65 * PERIOD / 10);
}

/* What is of other time is not added. */
Test(record, files_of_other_modes)
{
	size_t first;

	profile.account.mode = "cpu";
	record_some();
	first = file.len;
	recorder__free(recorder);
	profile.account.mode = "exception";
	record_some();
	cr_assert_eq(add(first), 0);
	cr_expect_null(fault);
	cr_assert_eq(record_sum__add(&sum, fd_with(file.data + first, file.len - first), &fault), 0);
	cr_expect(fault && strstr(fault, "of another kind") && sum.is_left_out && sum.cut_off);
	record_sum__finish(&sum);
	cr_expect_eq(sum.profile.samples, 5);
}

/* Of a wait that goes on longer than the span, the part in it. */
Test(record, wait_in_part)
{
	struct sink_sample wait = {.time_ns = START,
				   .thread = &threads[0],
				   .state = SINK_WAIT,
				   .weight_ns = 1000000,
				   .node = made_add_frame(&profile, TRIE_ROOT,
							  MADE_FRAME("rest", "a.py", 7, 1))};

	profile.unit = PROFILE_TIME;
	start((struct record_apart){0});
	recorder__sink(recorder)->take(recorder__sink(recorder), &wait);
	end();
	sum.filter = (struct record_filter){
		.has_from = true, .from_ns = 250000, .has_to = true, .to_ns = 650000};
	cr_assert_eq(add(file.len), 0);
	cr_expect_str_eq(summed(), "rest (a.py:7) 400\n");
}

/* What extras come to is told after them, and no nanosecond goes. */
Test(record, settled)
{
	uint64_t extra_ns[ESTIMATE_KINDS] = {[2] = 4000}, exact_ns[ESTIMATE_KINDS] = {[2] = 1000001, [3] = 5};
	struct sink_sample sample = {.time_ns = START,
				     .thread = &threads[0],
				     .node = made_add_frame(&profile, TRIE_ROOT, MADE_FRAME("a", "a.py", 7, 1)),
				     .kind = 2};
	struct sink *sink;

	profile.unit = PROFILE_TIME;
	start((struct record_apart){0});
	sink = recorder__sink(recorder);
	for (int i = 0; i < 3; i++) {
		sample.extra_ns = 1000;
		sink->take(sink, &sample);
	}
	/* One more is left out of the profile, and has its share of the sum. */
	sink->settle(sink, extra_ns, exact_ns);
	sample.kind = 3;
	sample.weight_ns = 7;
	sink->take(sink, &sample);
	end();
	cr_assert_eq(add(file.len), 0);
	record_sum__finish(&sum);
	cr_expect_eq(profile__total(&sum.profile), 1000001ull * 3 / 4 + 7 + 1000, "%llu",
		     (unsigned long long)profile__total(&sum.profile));
}

/* Cut off anywhere, all whole chunks are there, and it is told; what follows is never made up. */
Test(record, cut_off_anywhere)
{
	uint64_t samples = 0;

	record_some();
	for (size_t len = 0; len < file.len; len++) {
		int err;

		reopen_sum();
		err = add(len);
		if (len < RECORD_MAGIC_BYTES + 1) {
			cr_expect_eq(err, -EINVAL, "%zu bytes: %d", len, err);
			continue;
		}
		cr_assert_eq(err, 0, "%zu bytes: %d", len, err);
		cr_expect(fault && sum.cut_off, "%zu bytes", len);
		record_sum__finish(&sum);
		cr_expect(sum.profile.samples >= samples && sum.profile.samples <= 5);
		cr_expect_str_eq(sum.profile.account.end, "the recording was cut off");
		samples = sum.profile.samples;
	}
	cr_expect_eq(samples, 5);
}

Test(record, wrong_bytes)
{
	record_some();
	for (size_t at = RECORD_MAGIC_BYTES + 1; at < file.len; at++) {
		for (int bit = 0; bit < 8; bit++) {
			reopen_sum();
			file.data[at] = (char)(file.data[at] ^ 1 << bit);
			cr_assert_eq(add(file.len), 0);
			cr_expect(fault && sum.cut_off, "byte %zu, bit %d", at, bit);
			cr_expect_leq(sum.profile.samples, 5);
			file.data[at] = (char)(file.data[at] ^ 1 << bit);
		}
	}
}

/* Two files that were put together are no longer recording, and it is told. */
Test(record, more_behind_the_end)
{
	struct buf twice = {0};
	size_t len;

	record_some();
	len = file.len;
	for (int i = 0; i < 2; i++)
		buf__add(&twice, file.data, len);
	buf__free(&file);
	file = twice;
	cr_assert_eq(add(2 * len), 0);
	cr_expect(fault && strstr(fault, "follows its end") && sum.cut_off);
	record_sum__finish(&sum);
	cr_expect_eq(sum.profile.samples, 5);
	reopen_sum();
	cr_assert_eq(add(len + 1), 0);
	cr_expect(fault && sum.cut_off);
}

/* Times that no clock has: they are as they were, of a recording of a recording as well. */
Test(record, times_that_wrap)
{
	static const int64_t times[] = {INT64_MAX, INT64_MIN, 0, INT64_MAX - 1};
	struct sink_sample sample = {
		.node = made_add_frame(&profile, TRIE_ROOT, MADE_FRAME("a", "a.py", 7, 1)), .weight_ns = 5};
	struct record_reader *reader;
	struct record_sample got;
	struct profile read;
	size_t count = 0;

	profile.period_ns = 5;
	start((struct record_apart){0});
	for (size_t i = 0; i < 4; i++) {
		sample.time_ns = START + (uint64_t)times[i];
		recorder__sink(recorder)->take(recorder__sink(recorder), &sample);
	}
	end();
	cr_assert_eq(profile__init(&read, 1000), 0);
	cr_assert_eq(record_reader__open(&reader, fd_with(file.data, file.len), &read), 0);
	for (; record_reader__next(reader, &got); count++)
		cr_expect_eq(got.time_ns, times[count], "%zu: %lld", count, (long long)got.time_ns);
	cr_expect(count == 4 && reader->ended);
	record_reader__close(reader);
	profile__free(&read);
}

Test(record, other_versions)
{
	record_some();
	file.data[RECORD_MAGIC_BYTES]++;
	cr_expect_eq(add(file.len), -ENOTSUP);
	file.data[0]++;
	cr_expect_eq(add(file.len), -EINVAL);
}

Test(record, sizes_of_chunks)
{
	static const size_t sizes[] = {0, 1, 65535, 65536, 65537, 131072, RECORD_CHUNK_MAX - 1};
	static uint8_t bytes[RECORD_CHUNK_MAX];
	struct chunk_writer writer;
	struct chunk_reader reader;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * i >> 3 ^ i >> 11);
	cr_assert_eq(chunk_writer__open(&writer), 0);
	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++)
		chunk_writer__add(&writer, (uint8_t)(i + 1), bytes, i & 1 ? sizes[i / 2] : 0);
	cr_assert_eq(chunk_reader__open(&reader, fd_with(writer.out.data, writer.out.len)), 0);
	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		cr_assert_null(chunk_reader__next(&reader), "%zu", i);
		cr_expect_eq(reader.kind, i + 1);
		cr_assert_eq(reader.raw_len, i & 1 ? sizes[i / 2] : 0);
		cr_expect(!memcmp(reader.raw, bytes, reader.raw_len));
	}
	cr_expect_str_eq(chunk_reader__next(&reader), "it was cut off");
	chunk_reader__close(&reader);
	chunk_writer__close(&writer);
}

/* The formats take these as they are. */
Test(record, hostile_texts)
{
	profile.command = "a\x1b[31m\xff\xe2\x80\xae" "b\n";
	start((struct record_apart){0});
	give(1, &threads[0], "main", NULL, 0);
	end();
	cr_assert_eq(add(file.len), 0);
	record_sum__finish(&sum);
	cr_expect_str_eq(sum.profile.command, "a?[31m????b?");
}

/* Of weights nobody has to fear that they are more than a number holds, of one file or of all. */
Test(record, huge_weights)
{
	struct sink_sample sample = {.time_ns = START,
				     .node = made_add_frame(&profile, TRIE_ROOT, MADE_FRAME("a", "a.py", 7, 1)),
				     .weight_ns = 1ull << 59};
	int err = 0, files = 0;

	start((struct record_apart){0});
	recorder__sink(recorder)->take(recorder__sink(recorder), &sample);
	recorder__sink(recorder)->take(recorder__sink(recorder), &sample);
	end();
	for (; !err && files < 100; files++)
		err = add(file.len);
	cr_expect(err == -E2BIG && files == 5, "%d after %d files", err, files);
	reopen_sum();
	recorder__free(recorder);
	file.len = 0;
	start((struct record_apart){0});
	for (int i = 0; i < 3; i++)
		recorder__sink(recorder)->take(recorder__sink(recorder), &sample);
	end();
	cr_assert_eq(add(file.len), 0);
	cr_expect(fault && !sum.profile.samples);
	reopen_sum();
	recorder__free(recorder);
	file.len = 0;
	start((struct record_apart){0});
	sample = (struct sink_sample){.time_ns = START,
				      .node = sample.node,
				      .state = SINK_WAIT,
				      .weight_ns = UINT64_MAX - 4,
				      .extra_ns = 10,
				      .kind = 1};
	recorder__sink(recorder)->take(recorder__sink(recorder), &sample);
	end();
	cr_assert_eq(add(file.len), 0);
	cr_expect(fault && !sum.profile.samples);
}

/* Texts about the run that never end, each another one. */
Test(record, meta_without_end)
{
	char meta[1 + 6 + 2 + 512] = "\x06" "engine\x80\x04";
	struct chunk_writer writer;

	cr_assert_eq(chunk_writer__open(&writer), 0);
	memset(meta + 9, 'x', sizeof(meta) - 9);
	for (uint32_t i = 0; i < 2 * RECORD_META_MAX / sizeof(meta); i++) {
		snprintf(meta + 9, 9, "%08x", i);
		meta[17] = 'x';
		chunk_writer__add(&writer, RECORD_CHUNK_META, meta, sizeof(meta));
	}
	chunk_writer__add(&writer, RECORD_CHUNK_END, "\0", 1);
	cr_assert_eq(record_sum__add(&sum, fd_with(writer.out.data, writer.out.len), &fault), 0);
	cr_expect(fault && strstr(fault, "more in it than can be"), "%s", fault ?: "nothing is wrong");
	cr_expect_leq(strtab__bytes(sum.profile.strings), 4 * RECORD_META_MAX);
	cr_expect_geq(strtab__bytes(sum.profile.strings), RECORD_META_MAX / 2);
	chunk_writer__close(&writer);
}

/* Of kinds that are not known, as those of a newer program. */
Test(record, unknown_chunks)
{
	struct chunk_writer writer;
	struct chunk_reader reader;

	record_some();
	cr_assert_eq(chunk_writer__open(&writer), 0);
	cr_assert_eq(chunk_reader__open(&reader, fd_with(file.data, file.len)), 0);
	while (!chunk_reader__next(&reader)) {
		chunk_writer__add(&writer, 200, "something new", 13);
		chunk_writer__add(&writer, 201, "", 0);
		chunk_writer__add(&writer, reader.kind, reader.raw, reader.raw_len);
	}
	chunk_reader__close(&reader);
	cr_assert_eq(writer.out.err, 0);
	cr_assert_eq(record_sum__add(&sum, fd_with(writer.out.data, writer.out.len), &fault), 0);
	cr_expect_null(fault);
	record_sum__finish(&sum);
	cr_expect_eq(sum.profile.samples, 5);
	chunk_writer__close(&writer);
}

/* Chunks that are whole and not right: references to what is not there, numbers that cannot be. */
Test(record, wrong_chunks)
{
	static const struct {
		uint8_t kind;
		size_t len;
		const char *raw;
	} cases[] = {
		{RECORD_CHUNK_TABLES, 1, "\x09"},	       /* no such entry */
		{RECORD_CHUNK_TABLES, 3, "\x01\x05" "a"},      /* a text that is longer than the chunk */
		{RECORD_CHUNK_TABLES, 4, "\x01\x02" "a\0"},    /* ... with NUL */
		{RECORD_CHUNK_TABLES, 3, "\x02\x01\x01"},      /* a frame with a string that is not there */
		{RECORD_CHUNK_TABLES, 3, "\x02\x02\x00"},      /* ... that stands above stacks */
		{RECORD_CHUNK_TABLES, 3, "\x03\x00\x00"},      /* a node with a frame that is not there */
		{RECORD_CHUNK_TABLES, 2, "\x04\x01"},	       /* a stack with a node that is not there */
		{RECORD_CHUNK_TABLES, 5, "\x06\x00\x01\x00\x00"}, /* a thread with a process that is not there */
		{RECORD_CHUNK_TABLES, 4, "\x07\x01\x00\x00"},  /* a context with a thread that is not there */
		{RECORD_CHUNK_TABLES, 4, "\x07\x00\x00\x03"},  /* ... with no such share */
		{RECORD_CHUNK_SAMPLES, 4, "\x01\x00\x00\x00"}, /* more samples than bytes */
		{RECORD_CHUNK_SAMPLES, 6, "\x01\x00\x00\x00\x00\x00"}, /* a context that is not there */
		{RECORD_CHUNK_SAMPLES, 3, "\x00\x02\x00"},     /* times of a third kind */
		{RECORD_CHUNK_SAMPLES, 6, "\x00\x00\x01\x10\x00\x00"}, /* an extra of no kind */
		{RECORD_CHUNK_SAMPLES, 4, "\x00\x00\x00\x00"}, /* bytes that are too many */
		{RECORD_CHUNK_ACCOUNT, 3, "\x01" "a\x80"},     /* a number that does not end */
		{RECORD_CHUNK_META, 3, "\x01" "a\x01"},
		{RECORD_CHUNK_END, 1, "\x07"}, /* not as many samples */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct chunk_writer writer;

		reopen_sum();
		cr_assert_eq(chunk_writer__open(&writer), 0);
		chunk_writer__add(&writer, cases[i].kind, cases[i].raw, cases[i].len);
		chunk_writer__add(&writer, RECORD_CHUNK_END, "\0", 1);
		cr_assert_eq(record_sum__add(&sum, fd_with(writer.out.data, writer.out.len), &fault), 0);
		cr_expect(fault && sum.cut_off, "case %zu", i);
		chunk_writer__close(&writer);
	}
}

static size_t files_begun;
static size_t file_ends[16];

static int next_file(void *context)
{
	cr_assert_lt(files_begun, 16);
	file_ends[files_begun++] = ((struct buf *)context)->len;
	return 0;
}

/* Each file can be read by itself, and all of them are the run. */
Test(record, rotated)
{
	struct recorder_config config = {.profile = &profile,
					 .write = append,
					 .context = &file,
					 .rotate_ns = 2 * PERIOD,
					 .next = next_file};
	uint64_t samples = 0, lost = 0;

	cr_assert_eq(recorder__new(&recorder, &config), 0);
	for (int i = 0; i < 9; i++) {
		give(i + 0.5, &threads[i % 3], "main", i & 1 ? "work" : "rest", 0);
		profile.account.lost = 3 + (uint64_t)i;
		flush(i + 1);
	}
	end();
	file_ends[files_begun++] = file.len;
	cr_assert_eq(files_begun, 5);
	for (size_t i = 0, from = 0; i < files_begun; from = file_ends[i++]) {
		reopen_sum();
		cr_assert_eq(record_sum__add(&sum, fd_with(file.data + from, file_ends[i] - from), &fault), 0);
		cr_expect_null(fault);
		record_sum__finish(&sum);
		cr_expect_eq(sum.profile.start_realtime_ns, profile.start_realtime_ns + i * 2 * PERIOD);
		cr_expect_str_eq(sum.profile.account.end, i + 1 < files_begun ? "the next file goes on" : "duration over");
		samples += sum.profile.samples;
		lost += sum.profile.account.lost;
	}
	cr_expect_eq(samples, 9);
	cr_expect_eq(lost, 11);
	reopen_sum();
	sum.filter = (struct record_filter){.has_from = true, .from_ns = 3 * PERIOD};
	for (size_t i = 0, from = 0; i < files_begun; from = file_ends[i++])
		cr_assert_eq(record_sum__add(&sum, fd_with(file.data + from, file_ends[i] - from), &fault), 0);
	cr_expect_str_eq(summed(), "main (a.py:7);rest (b.py:70) 3\nmain (a.py:7);work (b.py:70) 3\n");
	cr_expect_eq(sum.profile.duration_ns, 6 * PERIOD);
}

/* The profile begins anew, with other nodes for what it had: what is told goes on. */
Test(record, renewed_profile)
{
	start((struct record_apart){0});
	for (int i = 0; i < 3; i++) {
		give(3 * i, &threads[0], "main", "work", 0);
		give(3 * i + 1, &threads[1], i & 1 ? "pool" : "main", NULL, 0);
		flush(3 * i + 2);
		frame_table__free(&profile.frames);
		profile.frames = (struct frame_table){0};
		trie__free(&profile.trie);
		cr_assert_eq(trie__init(&profile.trie, 100), 0);
		made_add_frame(&profile, TRIE_ROOT, MADE_FRAME("another", "a.py", 1, 1));
		recorder__sink(recorder)->renew(recorder__sink(recorder));
	}
	end();
	cr_assert_eq(add(file.len), 0);
	cr_expect_null(fault);
	cr_expect_str_eq(summed(), "main (a.py:7) 2\nmain (a.py:7);work (b.py:70) 3\npool (a.py:7) 1\n");
}

/* A function `name`, calling itself so often, and a sample of its first call. */
static void add_recursion(struct chunk_writer *writer, char name, uint32_t depth)
{
	/* Strings, a frame, the first node, a stack, a context; the rest of the nodes; a sample of weight 5. */
	const char tables[] = {RECORD_STRING, 1, name, RECORD_FRAME, 0, 1,	0, 5, 0, RECORD_NODE,
			       0,	      0, RECORD_STACK,	     0, RECORD_CONTEXT, 0, 0, RECORD_SHARE_PERIOD};
	static const char node[] = {RECORD_NODE, 0, 0}, sample[] = {1, 0, 0, 0, 0, 0};
	struct buf nodes = {0};

	chunk_writer__add(writer, RECORD_CHUNK_TABLES, tables, sizeof(tables));
	chunk_writer__add(writer, RECORD_CHUNK_SAMPLES, sample, sizeof(sample));
	for (uint32_t i = 1; i < depth; i++) {
		buf__add(&nodes, node, sizeof(node));
		if (nodes.len < RECORD_CHUNK_MAX / 2 && i + 1 < depth)
			continue;
		chunk_writer__add(writer, RECORD_CHUNK_TABLES, nodes.data, nodes.len);
		nodes.len = 0;
	}
	buf__free(&nodes);
}

/* More paths than are kept, but not at one time: so a recording may go on for ever. */
Test(record, paths_without_end)
{
	static const char meta[] = "\x09period_ns\x01" "5", functions[] = "ab";
	struct chunk_writer writer;

	cr_assert_eq(chunk_writer__open(&writer), 0);
	chunk_writer__add(&writer, RECORD_CHUNK_META, meta, sizeof(meta) - 1);
	for (size_t i = 0; functions[i]; i++) {
		add_recursion(&writer, functions[i], 2200000);
		chunk_writer__add(&writer, RECORD_CHUNK_RESET, "", 0);
	}
	chunk_writer__add(&writer, RECORD_CHUNK_END, "\x02", 1);
	cr_assert_eq(writer.out.err, 0);
	sum.filter = (struct record_filter){WITH("[ab]")};
	cr_assert_eq(record_sum__add(&sum, fd_with(writer.out.data, writer.out.len), &fault), 0);
	cr_expect_null(fault, "%s", fault);
	cr_expect(!sum.cut_off);
	cr_expect_str_eq(summed(), "a (:5) 1\nb (:5) 1\n");
	chunk_writer__close(&writer);
}

/* Threads `first` to before `end` of a process, with one text above them, and a sample of the first of them. */
static void add_crowd(struct chunk_writer *writer, char root, uint32_t first, uint32_t end)
{
	const char tables[] = {RECORD_STRING,  1, 'f', RECORD_FRAME, 0, 1, 0, 5, 0, RECORD_NODE, 0, 0, RECORD_STACK, 0,
			       RECORD_PROCESS, 1, 0,   0,	     0};
	static const char context[] = {RECORD_CONTEXT, 1, 0, RECORD_SHARE_PERIOD}, sample[] = {1, 0, 0, 0, 0, 0};
	struct buf threads = {0};

	chunk_writer__add(writer, RECORD_CHUNK_TABLES, tables, sizeof(tables));
	for (uint32_t tid = first; tid < end; tid++) {
		const char thread[] = {RECORD_THREAD,
				       0,
				       (char)(0x80 | (tid & 0x7f)),
				       (char)(0x80 | (tid >> 7 & 0x7f)),
				       (char)(tid >> 14),
				       0,
				       1,
				       root};

		buf__add(&threads, thread, sizeof(thread));
		if (threads.len < RECORD_CHUNK_MAX / 2 && tid + 1 < end)
			continue;
		chunk_writer__add(writer, RECORD_CHUNK_TABLES, threads.data, threads.len);
		threads.len = 0;
	}
	chunk_writer__add(writer, RECORD_CHUNK_TABLES, context, sizeof(context));
	chunk_writer__add(writer, RECORD_CHUNK_SAMPLES, sample, sizeof(sample));
	buf__free(&threads);
}

static uint64_t keys_met[2];
static size_t keys_count;

static void note_key(struct sink *sink, const struct sink_sample *sample)
{
	cr_assert_lt(keys_count, 2);
	keys_met[keys_count++] = sample->thread->key;
}

/* ... and more threads: each is told apart from those that had its number before. */
Test(record, threads_without_end)
{
	static const char meta[] = "\x09period_ns\x01" "5", roots[] = "pq";
	struct sink sink = {.take = note_key};
	struct chunk_writer writer;

	cr_assert_eq(chunk_writer__open(&writer), 0);
	chunk_writer__add(&writer, RECORD_CHUNK_META, meta, sizeof(meta) - 1);
	for (uint32_t i = 0; roots[i]; i++) {
		add_crowd(&writer, roots[i], 600000 * i + 1, 600000 * (i + 1));
		chunk_writer__add(&writer, RECORD_CHUNK_RESET, "", 0);
	}
	chunk_writer__add(&writer, RECORD_CHUNK_END, "\x02", 1);
	cr_assert_eq(writer.out.err, 0);
	sum.apart_is_set = sum.apart.threads = true;
	sum.sink = &sink;
	cr_assert_eq(record_sum__add(&sum, fd_with(writer.out.data, writer.out.len), &fault), 0);
	cr_expect_null(fault, "%s", fault);
	cr_expect_str_eq(summed(), "p;f (:5) 1\nq;f (:5) 1\n");
	cr_expect(keys_count == 2 && keys_met[0] != keys_met[1]);
	chunk_writer__close(&writer);
}

/* So many threads that tables begin anew: they take no more memory than that. */
Test(record, many_threads)
{
	struct sink_thread thread = threads[0];

	start((struct record_apart){0});
	for (uint32_t i = 0; i < 140000; i++) {
		thread.key = 1000 + i;
		thread.tid = 1 + i % 5000;
		give(i, &thread, "main", i & 1 ? "work" : NULL, 0);
	}
	end();
	cr_assert_eq(add(file.len), 0);
	cr_expect_null(fault);
	cr_expect_str_eq(summed(), "main (a.py:7) 70000\nmain (a.py:7);work (b.py:70) 70000\n");
}

/* Whatever is in a profile is in its recording. */
Test(record, of_made_profiles)
{
	static const char *const names[] = {"tiny", "shop", "threads", "hostile", "500"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *want;

		close_all();
		open_all();
		make_profile(&profile, names[i]);
		cr_assert_eq(pbp_writer.write(&profile, GROUP_LINE, &file), 0);
		cr_assert_eq(add(file.len), 0);
		cr_expect_null(fault, "%s: %s", names[i], fault);
		want = strdup(sorted(&profile));
		cr_expect_str_eq(summed(), want, "%s", names[i]);
		cr_expect_eq(sum.profile.samples, profile.samples, "%s", names[i]);
		cr_expect_eq(sum.profile.account.lost, profile.account.lost);
		free(want);
	}
}
