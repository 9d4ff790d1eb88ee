/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples for the Firefox Profiler: their times, threads, processes and categories. What the format asks for
 * is looked at by tests/readers.py.
 */
#include "made.h"
#include "out/gecko_parts.h"
#include "unit/json_check.h"

#include <criterion/criterion.h>

#define START 1000000000ull
#define MS    1000000ull

static struct profile profile;
static struct gecko *gecko;
static struct buf file;
static struct sink_process process = {.key = 1, .pid = 12, .command = "app", .root = "", .container = ""};
static struct sink_thread first = {.key = 2, .process = &process, .tid = 12, .name = "main", .root = ""};
static struct sink_thread second = {.key = 3, .process = &process, .tid = 7, .name = "worker", .root = ""};

static void begin(void)
{
	cr_assert_eq(profile__init(&profile, 1000), 0);
	profile.period_ns = MS;
	profile.start_ns = START;
	cr_assert_eq(gecko__new(&gecko, &profile, GROUP_LINE), 0);
}

static void end(void)
{
	gecko__free(gecko);
	buf__free(&file);
	profile__free(&profile);
}

TestSuite(gecko, .init = begin, .fini = end);

static void write_file(void)
{
	cr_assert_eq(gecko__write(gecko, &file), 0);
	cr_expect(json_is_valid(file.data, file.len));
	buf__addc(&file, '\0');
}

static void expect(const char *text)
{
	cr_expect(strstr(file.data, text), "no %s in %s", text, file.data);
}

static void take(const struct sink_thread *thread, uint64_t ms, uint32_t node, uint32_t state,
		 uint64_t weight_ns)
{
	struct sink_sample sample = {.time_ns = START + ms * MS,
				     .thread = thread,
				     .node = node,
				     .state = state,
				     .weight_ns = weight_ns};

	gecko__sink(gecko)->take(gecko__sink(gecko), &sample);
}

static uint32_t node_of(uint32_t parent, const char *name)
{
	return made_add_frame(&profile, parent, (struct made_frame){name, "a.py", 3, 1, FRAME_PYTHON});
}

/* The main thread comes first, and each thread's samples in the order of time. */
Test(gecko, threads_and_times)
{
	uint32_t f = node_of(TRIE_ROOT, "f"), g = node_of(f, "g");
	struct sink_process other = {
		.key = 9, .pid = 12, .command = "after exec", .root = "", .container = ""};
	struct sink_thread main = {.key = 10, .process = &other, .tid = 12, .name = "main", .root = ""};

	take(&second, 5, f, 0, MS);
	take(&first, 3, g, 0, MS);
	take(&first, 1, f, 0, MS);
	take(&main, 8, f, 0, MS);
	profile.duration_ns = 8 * MS;
	write_file();
	expect("{\"name\":\"main\",\"processName\":\"app\",\"pid\":\"12\",\"tid\":12,\"isMainThread\":true");
	/* What is at the end is not shown. */
	expect("\"profilingEndTime\":8.000001");
	expect("\"stack\":[1,2],\n\"time\":[1,3],\n\"weight\":[1,1]");
	expect("{\"name\":\"worker\",\"processName\":\"app\",\"pid\":\"12\",\"tid\":7,\"isMainThread\":"
	       "false");
	/* After an exec it is another process. */
	expect("\"processName\":\"after exec\",\"pid\":\"12.1\",\"tid\":12,\"isMainThread\":true");
	cr_expect_lt(strstr(file.data, "\"tid\":12"), strstr(file.data, "\"tid\":7"));
	expect("\"frame\":[0,1,2],\n\"prefix\":[null,null,1]");
}

/* "Other", "Python", "Waits for the GIL", "Garbage collection", "Off the CPU", "In the kernel" */
Test(gecko, categories)
{
	uint32_t f = node_of(TRIE_ROOT, "f");
	struct frame wait = {.kind = FRAME_SPECIAL, .wait = true};
	uint32_t gil, sleep;

	wait.function = made_text(&profile, "[GIL]");
	gil = trie__child(&profile.trie, f, frame_table__add(&profile.frames, &wait));
	wait.function = made_text(&profile, "[sleep]");
	sleep = trie__child(&profile.trie, f, frame_table__add(&profile.frames, &wait));
	profile.unit = PROFILE_TIME;
	take(&first, 0, f, SINK_ATTACHED, 1500000);
	take(&first, 1, f, SINK_GC | SINK_ATTACHED, MS);
	take(&first, 2, f, SINK_KERNEL, MS);
	take(&first, 3, gil, SINK_WAIT, 4 * MS);
	take(&first, 7, sleep, SINK_WAIT | SINK_KERNEL, MS / 2);
	take(&first, 8, f, SINK_GC, MS);
	write_file();
	expect("\"category\":[0,1,3,5,2,4]");
	expect("\"stack\":[1,2,3,4,5,2],\n\"time\":[0,1,2,3,7,8],\n\"weight\":[1.5,1,1,4,0.5,1],"
	       "\"weightType\":"
	       "\"tracing-ms\",\n\"threadCPUDelta\":[1500000,1000000,1000000,0,0,1000000]");
	/* They are one function. */
	expect("\"func\":[0,1,1,1,2,3]");
}

/* Who holds the GIL may be on the CPU or off it. */
Test(gecko, holders)
{
	uint32_t f = node_of(TRIE_ROOT, "f"), node;
	struct frame wait = {.kind = FRAME_SPECIAL, .wait = true};

	profile.unit = PROFILE_TIME;
	wait.function = made_text(&profile, "[holds the GIL]");
	take(&first, 0, trie__child(&profile.trie, f, frame_table__add(&profile.frames, &wait)), 0, MS);
	wait.function = made_text(&profile, "[holds the GIL: sleep]");
	take(&first, 1, trie__child(&profile.trie, f, frame_table__add(&profile.frames, &wait)), SINK_WAIT, MS);
	wait.function = made_text(&profile, "[waits for the GIL]");
	node = node_of(trie__child(&profile.trie, f, frame_table__add(&profile.frames, &wait)), "h");
	node = made_add_frame(&profile, node, MADE_NOTE("[holder: sleep]", FRAME_SPECIAL));
	take(&first, 2, node, SINK_CONTINUED, MS); /* for whom it waited is known later */
	write_file();
	expect("\"category\":[0,1,1,4,2,1,2]");
	expect("\"threadCPUDelta\":[1000000,0,0]");
}

/* The collection itself is a frame, with its own category, where it is one. */
Test(gecko, collection)
{
	uint32_t f = node_of(TRIE_ROOT, "f");

	take(&first, 0, made_add_frame(&profile, f, MADE_NOTE("[GC]", FRAME_SPECIAL)), SINK_GC, MS);
	take(&first, 1, made_add_frame(&profile, f, MADE_NOTE("[truncated]", FRAME_SPECIAL)), 0, MS);
	write_file();
	expect("\"category\":[0,1,3,0]");
}

/* From before the start, of no thread, below a root, and of no stack. */
Test(gecko, odd_ones)
{
	uint32_t root = made_add_frame(&profile, TRIE_ROOT, MADE_NOTE("process 12 (app)", FRAME_PROCESS));
	uint32_t f = node_of(root, "f");
	struct sink_sample before = {.time_ns = START - 5 * MS, .thread = &first, .node = f, .weight_ns = MS};

	gecko__sink(gecko)->take(gecko__sink(gecko), &before);
	take(NULL, 2, node_of(TRIE_ROOT, "f"), 0, MS);
	take(&first, 3, root, 0, MS);
	write_file();
	expect("\"stack\":[1,null],\n\"time\":[0,3]");
	expect("{\"name\":\"[no thread]\",\"pid\":\"0\",\"tid\":0,\"isMainThread\":false");
	cr_expect(!strstr(file.data, "process 12"), "a root is a frame");
}

/* What is beyond the limit stands at the end of its thread, and no weight goes. */
Test(gecko, limit)
{
	uint32_t f = node_of(TRIE_ROOT, "f");

	gecko->samples = 3999999;
	take(&first, 1, f, 0, MS);
	take(&first, 2, f, 0, MS);
	take(&first, 3, f, 0, 2 * MS);
	take(&second, 4, f, 0, MS);
	write_file();
	expect("\"stack\":[1,0],\n\"time\":[1,1],\n\"weight\":[1,3]");
	expect("\"tid\":7");
	expect("\"stack\":[0],\n\"time\":[0],\n\"weight\":[1]");
	expect("\"pruned\": 4");
}

/* So many texts that not all fit: those that are there are right, and the rest is summed up. */
Test(gecko, texts)
{
	static char name[1 << 20];
	uint32_t f = node_of(TRIE_ROOT, "f");

	memset(name, 'x', sizeof(name) - 1);
	for (int i = 0; i < 80; i++) {
		name[0] = (char)('0' + i % 10);
		name[1] = (char)('0' + i / 10);
		take(&first, i, node_of(TRIE_ROOT, name), 0, MS);
	}
	take(&first, 90, f, 0, MS);
	cr_expect(strtab__bytes(gecko->strings) < 70u << 20, "%zu bytes", strtab__bytes(gecko->strings));
	cr_expect(gecko->samples > 50 && gecko->samples < 70, "%zu samples", gecko->samples);
	cr_expect_eq(gecko->pruned_ns, (81 - gecko->samples) * MS);
	cr_expect_eq(gecko->frames.len, 1 + gecko->samples);
}

Test(gecko, nothing)
{
	write_file();
	expect("\"threads\":[]");
}
