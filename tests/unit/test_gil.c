/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Holding and waiting, as it stands in the profile and in the sums of threads.
 */
#include "run/gil.h"

#include "run/process.h"
#include "run/symbolize.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>

enum { GIL = 0x5000, SECOND_GIL = 0x7000 };

static struct profile profile;
static struct estimate estimate;
static struct gil gil;
static struct process process;
static uint32_t pruned;

static void start_with(uint32_t max_nodes)
{
	cr_assert_eq(profile__init(&profile, max_nodes), 0);
	profile.period_ns = 1000;
	pruned = trie__child(&profile.trie, TRIE_ROOT, 0);
	cr_assert_eq(gil__init(&gil, &profile, &estimate, pruned), 0);
	process = (struct process){.pid = 12, .serial = 3};
	cr_assert_eq(vec__push(&process.gils.items, (py_addr)GIL), 0);
}

static void start(void)
{
	start_with(1000);
}

static void stop(void)
{
	gil__free(&gil);
	estimate__free(&estimate);
	profile__free(&profile);
	py_gils__free(&process.gils);
}

TestSuite(gil, .init = start, .fini = stop);

static uint32_t frame_id(const char *name)
{
	struct frame frame = {.kind = !strncmp(name, "process", 7)  ? FRAME_PROCESS
				      : !strncmp(name, "thread", 6) ? FRAME_THREAD
				      : name[0] == '['		    ? FRAME_SPECIAL
								    : FRAME_PYTHON,
			      .function = strtab__add(profile.strings, name, strlen(name)),
			      .wait = !strncmp(name, "[holds", 6) || !strncmp(name, "[waits", 6)};

	return frame_table__add(&profile.frames, &frame);
}

/* The node of these frames, until NULL. */
static uint32_t node_of(const char *name, ...)
{
	uint32_t node = TRIE_ROOT;
	va_list names;

	va_start(names, name);
	for (; name; name = va_arg(names, const char *))
		node = trie__child(&profile.trie, node, frame_id(name));
	va_end(names);
	return node;
}

static struct pbp_sample sample_of(pid_t tid, uint64_t time, bool attached)
{
	return (struct pbp_sample){.tgid = 12,
				   .tid = tid,
				   .time_ns = time,
				   .flags = attached ? PBP_SAMPLE_ATTACHED : 0,
				   .comm = {'t', (char)('0' + tid)}};
}

static void run(pid_t tid, uint32_t node, uint64_t time)
{
	struct pbp_sample sample = sample_of(tid, time, true);

	gil__add(&gil, &process, node, &sample, &(struct sample_share){.time_ns = 10});
}

static void sleep_with_it(pid_t tid, uint32_t node, uint64_t from, uint64_t time)
{
	struct pbp_sample sample = sample_of(tid, from, true);

	gil__add(&gil, &process, node, &sample,
		 &(struct sample_share){.time_ns = time, .reason = WAIT_SLEEP});
}

static void wait_for_it(pid_t tid, uint32_t node, uint64_t from, uint64_t time)
{
	struct pbp_sample sample = sample_of(tid, from, false);

	gil__add(&gil, &process, node, &sample,
		 &(struct sample_share){.time_ns = time, .reason = WAIT_GIL, .lock = GIL});
}

static void expect(uint32_t node, uint64_t time)
{
	const struct trie_node *found = &profile.trie.nodes.items[node];

	cr_assert_neq(node, TRIE_FULL);
	cr_expect_eq(found->self, time, "%s: %lu, should be %lu",
		     strtab__get(profile.strings, frame_table__get(&profile.frames, found->frame)->function),
		     found->self, time);
}

Test(gil, stands_below_its_stack)
{
	uint32_t burn = node_of("main", "burn", NULL), nap = node_of("main", "nap", NULL);
	uint32_t want = node_of("main", "want", NULL);

	run(1, burn, 50);
	sleep_with_it(2, nap, 200, 100);
	wait_for_it(3, want, 0, 100);
	wait_for_it(3, want, 250, 100);
	wait_for_it(1, burn, 400, 30);
	cr_assert_eq(gil__settle(&gil), 0);
	expect(node_of("main", "burn", "[holds the GIL]", NULL), 10);
	expect(node_of("main", "nap", "[holds the GIL: sleep]", NULL), 100);
	expect(node_of("main", "want", "[waits for the GIL]", "main", "nap", "[holder: sleep]", NULL), 50);
	expect(node_of("main", "want", "[waits for the GIL]", "main", "burn", "[holder: on the CPU]", NULL), 150);
	expect(node_of("main", "burn", "[waits for the GIL]", "[holder not seen]", NULL), 30);
	cr_expect_eq(profile__total(&profile), 10 + 100 + 200 + 30);
}

/* Which process it is, is known from the waiter; which thread, is not. */
Test(gil, holders_root)
{
	uint32_t burn = node_of("process 12", "thread 1", "main", "burn", NULL);
	uint32_t want = node_of("process 12", "thread 2", "main", "want", NULL);

	run(1, burn, 50);
	wait_for_it(2, want, 0, 100);
	cr_assert_eq(gil__settle(&gil), 0);
	expect(node_of("process 12", "thread 2", "main", "want", "[waits for the GIL]", "thread 1", "main", "burn",
		       "[holder: on the CPU]", NULL),
	       100);
}

/* Of two processes at one address, and of two in one process. */
Test(gil, others_have_others)
{
	struct process forked = {.pid = 13, .serial = 4};
	uint32_t burn = node_of("burn", NULL), want = node_of("want", NULL);
	struct pbp_sample sample = sample_of(1, 50, true);

	cr_assert_eq(vec__push(&forked.gils.items, (py_addr)GIL), 0);
	gil__add(&gil, &forked, burn, &sample, &(struct sample_share){.time_ns = 10});
	process.gils.items.items[0] = SECOND_GIL;
	run(1, burn, 60);
	wait_for_it(2, want, 0, 100);
	cr_assert_eq(gil__settle(&gil), 0);
	expect(node_of("want", "[waits for the GIL]", "[holder not seen]", NULL), 100);
	py_gils__free(&forked.gils);
}

Test(gil, parts)
{
	struct pbp_sample attached = sample_of(1, 0, true), detached = sample_of(1, 0, false);
	struct sample_share wait = {.lock = GIL, .reason = WAIT_GIL}, cpu = {0}, sleep = {.reason = WAIT_SLEEP};

	cr_expect_eq(gil__part(&process, &attached, &cpu), GIL_HOLDS);
	cr_expect_eq(gil__part(&process, &attached, &sleep), GIL_HOLDS);
	cr_expect_eq(gil__part(&process, &detached, &cpu), GIL_NEITHER);
	cr_expect_eq(gil__part(&process, &detached, &sleep), GIL_NEITHER);
	cr_expect_eq(gil__part(&process, &detached, &wait), GIL_WAITS);
	/* A free-threaded one: attached, and there is no GIL. */
	process.gils.items.len = 0;
	cr_expect_eq(gil__part(&process, &attached, &cpu), GIL_NEITHER);
}

/* An address that is in no GIL, as of any other lock: records that are older than the last look make no other one. */
Test(gil, looked_for_now_and_then)
{
	process.attached = true;
	process.gils.read_ns = 5000000000;
	cr_expect_eq(process__gil_at(&process, 0x9000, 4900000000), 0);
	cr_expect_eq(process__gil_at(&process, 0x9000, 5099999999), 0);
	cr_expect_eq(process.gils.read_ns, 5000000000);
	cr_expect_eq(process__gil_at(&process, GIL + 8, 5200000000), GIL);
	cr_expect_eq(process.gils.read_ns, 5000000000);
	cr_expect_eq(process__gil_at(&process, 0x9000, 5100000000), 0);
	cr_expect_eq(process.gils.read_ns, 5100000000);
}

/* What stands for others is known in sum only, and each thread has its part of that. */
Test(gil, sums)
{
	uint32_t burn = node_of("burn", NULL), want = node_of("want", NULL);
	const uint64_t exact[ESTIMATE_KINDS] = {0, 500, [SYMBOLIZE_CPU_KIND] = 3000};
	struct pbp_sample sample = sample_of(2, 0, false), on_cpu = sample_of(1, 60, true);
	struct gil_rows rows = {0};
	struct gil_sums sums;

	gil__add(&gil, &process, burn, &on_cpu, &(struct sample_share){.extra_ns = 10});
	gil__add(&gil, &process, burn, &on_cpu, &(struct sample_share){.extra_ns = 10});
	on_cpu.tid = 2;
	gil__add(&gil, &process, want, &on_cpu, &(struct sample_share){.extra_ns = 10});
	gil__add(&gil, &process, want, &sample,
		 &(struct sample_share){
			 .time_ns = 100, .extra_ns = 50, .kind = 1, .reason = WAIT_GIL, .lock = GIL});
	sleep_with_it(1, burn, 1000, 40);
	cr_assert_eq(gil__settle(&gil), 0);
	estimate__settle(&estimate, &profile.trie, exact, ESTIMATE_HIDDEN);
	gil__sums(&gil, &sums);
	cr_expect_eq(sums.on_ns, 3000);
	cr_expect_eq(sums.off_ns, 40);
	cr_expect_geq(sums.waited_ns, 599, "%lu", sums.waited_ns); /* less what rounding leaves */
	cr_expect_eq(sums.unseen_ns, 0);
	cr_assert_eq(gil__rows(&gil, &sums, &rows), 0);
	cr_assert_eq(rows.items.len, 2);
	cr_expect_eq(rows.items.items[0].thread->tid, 1);
	cr_expect_eq(rows.items.items[0].sums.on_ns, 2000);
	cr_expect_eq(rows.items.items[0].sums.off_ns, 40);
	cr_expect_str_eq(rows.items.items[0].thread->comm, "t1");
	cr_expect_eq(rows.items.items[1].sums.on_ns, 1000);
	cr_expect_eq(rows.items.items[1].sums.waited_ns, sums.waited_ns);
	vec__free(&rows.items);
}

/*
 * A sample weighs by how long its thread was on the CPU, between times off it, with a GIL or without. All come to what
 * is known of all.
 */
Test(gil, time_on_the_cpu)
{
	uint32_t burn = node_of("burn", NULL), spin = node_of("spin", NULL);
	const uint64_t exact[ESTIMATE_KINDS] = {[SYMBOLIZE_CPU_KIND] = 8000};
	struct gil_rows rows = {0};
	struct gil_sums sums;

	for (uint64_t at = 0; at < 20; at++) {
		struct pbp_sample first = sample_of(1, 1000 + at * 100, true);
		struct pbp_sample second = sample_of(2, 1050 + at * 100, true);

		gil__add(&gil, &process, burn, &first, &(struct sample_share){.extra_ns = 10});
		if (at % 4)
			gil__add(&gil, &process, spin, &second, &(struct sample_share){.extra_ns = 10});
		else
			gil__hide(&gil, &process, &second, ESTIMATE_HIDDEN);
		gil__note_off(&gil, &process, &first, 1020 + at * 100, 1090 + at * 100, 0);
		gil__note_off(&gil, &process, &second, 1060 + at * 100, 1120 + at * 100, 0);
	}
	cr_assert_eq(gil__settle(&gil), 0);
	estimate__settle(&estimate, &profile.trie, exact, ESTIMATE_HIDDEN);
	/* 20 + 19 * 30, and 10 + 19 * 40 */
	expect(node_of("burn", "[holds the GIL]", NULL), 8000ull * 590 / (590 + 577 + 192));
	gil__sums(&gil, &sums);
	cr_expect(sums.on_ns >= 8000ull * (590 + 577) / 1359 - 2 &&
			  sums.on_ns <= 8000ull * (590 + 577) / 1359 + 2,
		  "%lu", sums.on_ns);
	cr_assert_eq(gil__rows(&gil, &sums, &rows), 0);
	cr_assert_eq(rows.items.len, 2);
	cr_expect_eq(rows.items.items[0].thread->tid, 1);
	vec__free(&rows.items);
}

/* Of many that come and go each has its time while it is there, and none goes. */
Test(gil, more_threads_than_are_kept)
{
	uint32_t burn = node_of("burn", NULL);
	struct gil_rows rows = {0};
	struct gil_sums sums;
	uint64_t sum = 0, last = 0;
	pid_t tid = 0;

	while (!gil__is_full(&gil) && tid < 100000) {
		tid++;
		run(tid, burn, 1000 + tid);
	}
	cr_assert_lt(tid, 100000);
	cr_assert_eq(gil__settle(&gil), 0);
	cr_expect(!gil__is_full(&gil));
	tid++;
	run(tid, burn, 1000 + tid);
	run(tid - 1, burn, 1001 + tid);
	cr_assert_eq(gil__settle(&gil), 0);
	gil__sums(&gil, &sums);
	cr_expect_eq(sums.on_ns, 10ull * (tid + 1));
	cr_assert_eq(gil__rows(&gil, &sums, &rows), 0);
	for (size_t i = 0; i < rows.items.len; i++) {
		const struct gil_row *row = &rows.items.items[i];

		sum += row->sums.on_ns;
		last += row->thread && row->thread->tid >= tid - 1 ? row->sums.on_ns : 0;
		cr_expect(!row->thread || row->thread->tid > tid / 4, "%d", row->thread->tid);
	}
	cr_expect_eq(sum, sums.on_ns);
	cr_expect_eq(last, 30);
	vec__free(&rows.items);
}

/* No time goes when the profile is full. */
Test(gil, no_room)
{
	stop();
	gil = (struct gil){0};
	estimate = (struct estimate){0};
	start_with(4);
	run(1, node_of("main", "burn", NULL), 50);
	wait_for_it(2, node_of("main", NULL), 0, 100);
	wait_for_it(2, pruned, 0, 100);
	cr_assert_eq(gil__settle(&gil), 0);
	cr_expect_eq(profile__total(&profile), 210);
}
