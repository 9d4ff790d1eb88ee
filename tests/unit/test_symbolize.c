/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records in, profile out. Code objects are given as the kernel side sends them, so no process is needed;
 * where one is (tails), it is a memory image (image.h). Profiles are compared as collapsed stacks.
 */
#include "image.h"
#include "out/writer.h"
#include "run/gil.h"
#include "run/symbolize.h"

#include <errno.h>
#include <stdio.h>

enum {
	PID = 77,
	CODE = 0x10000, /* address of code object 0; ... */
	CODE_STEP = 0x1000,
	CODE_TYPE = 0x5000,
	OBJECT = 40, /* header of a compact ASCII string; of bytes: 32 */
	MAX_NODES = 100000,
};

static struct profile profile;
static struct symbolizer symbolizer;
static struct processes processes;
static struct process *process, *other;
static struct buf text;

static struct process *add_process(pid_t pid, const char *command)
{
	struct process *p = calloc(1, sizeof(*p));

	cr_assert(p);
	*p = (struct process){.pid = pid, .pidfd = -1, .attached = true, .python = true};
	snprintf(p->raw_command, sizeof(p->raw_command), "%s", command);
	code_cache__init(&p->codes, profile.strings);
	image_offsets(&p->target.offsets, 14);
	cr_assert_eq(py_layout__fill(&p->target.layout, &p->target.offsets, PBP_NONE), 0);
	p->codes.code_type = CODE_TYPE;
	cr_assert_eq(processes__add(&processes, p), 0);
	return p;
}

static void start_with(uint32_t max_nodes, bool by_process, bool by_thread)
{
	cr_assert_eq(profile__init(&profile, max_nodes), 0);
	cr_assert_eq(symbolizer__init(&symbolizer, &profile, &processes, by_process, by_thread), 0);
	process = add_process(PID, "python3 app.py");
	other = add_process(PID + 1, "worker");
}

static void start(void)
{
	start_with(MAX_NODES, false, false);
}

static void stop(void)
{
	symbolizer__free(&symbolizer);
	processes__free(&processes);
	profile__free(&profile);
	buf__free(&text);
}

/* ---- records ---- */

static struct pbp_frame frame_of(uint32_t code, uint32_t unit)
{
	const struct py_offsets *offsets = &process->target.offsets;
	uint64_t address = CODE + code * CODE_STEP;

	return (struct pbp_frame){
		.code = address, .instr = address + offsets->code_adaptive + 2 * unit, .ident = 1 + code};
}

static uint32_t put_string(uint8_t *to, const char *s)
{
	uint64_t len = strlen(s);
	uint32_t state = 1 << 2 | 1 << 5 | 1 << 6; /* one byte each, compact, ASCII */

	memcpy(to + 16, &len, 8);
	memcpy(to + 32, &state, 4);
	memcpy(to + OBJECT, s, len);
	return PBP_NAME_BYTES;
}

/* Code object `code`: function named so in app.py, beginning at line 100 * code + 1, with a line a unit. */
static void send_code_of(uint32_t tgid, uint32_t code, const char *function, const char *file)
{
	const struct py_offsets *offsets = &process->target.offsets;
	struct pbp_frame frame = frame_of(code, 0);
	struct pbp_code record = {.type = PBP_CODE, .tgid = tgid, .code = frame.code, .ident = frame.ident};
	uint64_t type = CODE_TYPE, units = 100, table_len = 200;
	uint32_t first_line = 100 * code + 1;

	record.lens[0] = process->target.layout.co_bytes;
	memcpy(record.header + offsets->object_type, &type, 8);
	memcpy(record.header + offsets->var_object_size, &units, 8);
	memcpy(record.header + offsets->code_firstlineno, &first_line, 4);
	memcpy(record.header + offsets->code_version, &frame.ident, 4);
	record.lens[1] = put_string(record.name, function);
	record.lens[2] = put_string(record.file, file);
	memcpy(record.table + offsets->bytes_size, &table_len, 8);
	for (size_t i = 0; i < table_len; i += 2) {
		record.table[offsets->bytes_data + i] = 0x80 | 13 << 3;
		record.table[offsets->bytes_data + i + 1] = i ? 0x02 : 0x00;
	}
	record.lens[3] = PBP_TABLE_BYTES;
	cr_assert_eq(symbolizer__take(&symbolizer, &record, sizeof(record)), 0);
}

static void send_code(uint32_t code)
{
	char name[16];

	snprintf(name, sizeof(name), "f%u", code);
	send_code_of(PID, code, name, "app.py");
}

static int send_stack_of(uint32_t tgid, uint64_t id, const struct pbp_frame *frames, uint32_t count)
{
	size_t size = sizeof(struct pbp_stack) + count * sizeof(*frames);
	struct pbp_stack *record = calloc(1, size);
	int err;

	*record = (struct pbp_stack){.type = PBP_STACK, .tgid = tgid, .id = id, .count = count};
	memcpy(record + 1, frames, count * sizeof(*frames));
	((struct pbp_frame *)(record + 1))->instr = 0; /* the leaf's is in the sample */
	err = symbolizer__take(&symbolizer, record, size);
	free(record);
	return err;
}

/* send_stack(id, leaf, caller, ...) */
#define send_stack(id, ...)                                                                                  \
	cr_assert_eq(                                                                                        \
		send_stack_of(PID, (id), (const struct pbp_frame[]){__VA_ARGS__},                            \
			      sizeof((const struct pbp_frame[]){__VA_ARGS__}) / sizeof(struct pbp_frame)),   \
		0)

static struct pbp_sample sample_of(uint64_t stack_id, struct pbp_frame leaf)
{
	return (struct pbp_sample){.type = PBP_SAMPLE,
				   .tgid = PID,
				   .tid = PID,
				   .stack_id = stack_id,
				   .leaf_instr = leaf.instr,
				   .tstate = 0x1000,
				   .comm = "main"};
}

static void send(const struct pbp_sample *sample)
{
	cr_assert_eq(symbolizer__take(&symbolizer, sample,
				      sample->tail_frame ? sizeof(*sample) : PBP_SAMPLE_SHORT),
		     0);
}

static void send_sample(uint64_t stack_id, struct pbp_frame leaf)
{
	struct pbp_sample sample = sample_of(stack_id, leaf);

	send(&sample);
}

static void flush(void)
{
	cr_assert_eq(symbolizer__flush_batch(&symbolizer), 0);
}

static void expect(const char *want)
{
	text.len = 0;
	cr_assert_eq(collapsed_writer.write(&profile, GROUP_LINE, &text), 0);
	buf__addc(&text, '\0');
	cr_expect_str_eq(text.data, want);
}

/* ---- stacks and samples ---- */

Test(symbolize, samples_of_two_stacks, .init = start, .fini = stop)
{
	for (uint32_t i = 0; i < 3; i++)
		send_code(i);
	send_stack(10, frame_of(1, 0), frame_of(0, 4));
	send_stack(11, frame_of(2, 0), frame_of(0, 4));
	send_sample(10, frame_of(1, 5));
	send_sample(11, frame_of(2, 6));
	send_sample(10, frame_of(1, 5));
	send_sample(10, frame_of(1, 7));
	flush();
	expect("f0 (app.py:5);f1 (app.py:106) 2\n"
	       "f0 (app.py:5);f1 (app.py:108) 1\n"
	       "f0 (app.py:5);f2 (app.py:207) 1\n");
	/* What is known needs no record any more. */
	send_sample(11, frame_of(2, 6));
	flush();
	cr_expect_eq(symbolizer.counts.samples, 5);
	cr_expect_eq(profile.samples, 5);
	expect("f0 (app.py:5);f1 (app.py:106) 2\n"
	       "f0 (app.py:5);f2 (app.py:207) 2\n"
	       "f0 (app.py:5);f1 (app.py:108) 1\n");
}

/* The sample comes before its stack in the ring, or a batch later. */
Test(symbolize, order_in_a_batch, .init = start, .fini = stop)
{
	send_sample(10, frame_of(0, 1));
	send_stack(10, frame_of(0, 0));
	send_code(0);
	flush();
	expect("f0 (app.py:2) 1\n");
}

Test(symbolize, states, .init = start, .fini = stop)
{
	struct pbp_sample sample;

	send_code(0);
	send_stack(10, frame_of(0, 0));
	for (uint32_t flags = 0; flags < 16; flags++) {
		sample = sample_of(10, frame_of(0, 1));
		sample.flags = flags;
		send(&sample);
	}
	for (uint16_t status = PBP_STATUS_NO_TARGET; status < PBP_STATUS_COUNT + 2; status++) {
		sample = sample_of(0, frame_of(0, 1));
		sample.status = status;
		send(&sample);
	}
	flush();
	cr_expect(symbolizer.counts.attached == 8 && symbolizer.counts.collecting == 8 &&
		  symbolizer.counts.raising == 8 && symbolizer.counts.in_kernel == 8);
	cr_expect_eq(symbolizer.counts.status[PBP_STATUS_COMPLETE], 16);
	for (int status = PBP_STATUS_NO_TARGET; status < PBP_STATUS_COUNT; status++)
		cr_expect_eq(symbolizer.counts.status[status], 1);
	expect("f0 (app.py:2) 8\nf0 (app.py:2);[GC] 8\n[no Python frames] 6\n[stack not taken] 1\n");
}

/* f0 -> collection -> f1, and a collection in f0 with nothing called. */
static void send_collections(void)
{
	struct pbp_frame collection = {.flags = PBP_FRAME_GC};
	struct pbp_sample sample;

	send_code(0);
	send_code(1);
	send_stack(10, frame_of(1, 0), collection, frame_of(0, 3));
	send_stack(11, collection, frame_of(0, 3));
	send_stack(12, frame_of(0, 0));
	for (uint64_t id = 10; id <= 12; id++) {
		sample = sample_of(id, frame_of(id == 10, 5));
		sample.flags = PBP_SAMPLE_GC;
		send(&sample);
	}
	send_sample(12, frame_of(0, 5));
	flush();
}

/* Where it is not known in which frame it began, it is the innermost. */
Test(symbolize, collections, .init = start, .fini = stop)
{
	send_collections();
	expect("f0 (app.py:4);[GC] 1\nf0 (app.py:4);[GC];f1 (app.py:106) 1\nf0 (app.py:6) 1\n"
	       "f0 (app.py:6);[GC] 1\n");
}

Test(symbolize, collections_left_out, .init = start, .fini = stop)
{
	symbolizer.hide_gc = true;
	send_collections();
	expect("f0 (app.py:6) 2\nf0 (app.py:4) 1\nf0 (app.py:4);f1 (app.py:106) 1\n");
	cr_expect_eq(symbolizer.counts.collecting, 3);
}

Test(symbolize, only_exceptions, .init = start, .fini = stop)
{
	symbolizer.only_exceptions = true;
	send_code(0);
	send_stack(10, frame_of(0, 0));
	for (uint32_t i = 0; i < 8; i++) {
		struct pbp_sample sample = sample_of(10, frame_of(0, i));

		sample.flags = (i & 1 ? PBP_SAMPLE_HANDLING : 0) | (i & 2 ? PBP_SAMPLE_RAISING : 0);
		send(&sample);
	}
	send_sample(0, frame_of(0, 0));
	flush();
	expect("f0 (app.py:2) 1\nf0 (app.py:3) 1\nf0 (app.py:4) 1\nf0 (app.py:6) 1\nf0 (app.py:7) 1\n"
	       "f0 (app.py:8) 1\n");
	cr_expect(symbolizer.counts.samples == 6 && symbolizer.counts.handling == 4 &&
		  symbolizer.counts.raising == 4);
	cr_expect(symbolizer.counts.left_out_exceptions == 3 && !symbolizer.counts.left_out_threads);
	cr_expect_eq(profile.samples, 6);
}

static void send_of_thread(pid_t tid, const char *comm, uint64_t extra_ns)
{
	struct pbp_sample sample = sample_of(10, frame_of(0, 1));
	struct sample_share share = {.time_ns = 1000000, .extra_ns = extra_ns, .reason = WAIT_LOCK};

	sample.tid = tid;
	memset(sample.comm, 0, sizeof(sample.comm));
	strcpy(sample.comm, comm);
	cr_assert_eq(symbolizer__take_share(&symbolizer, &sample, &share), 0);
}

/* By name, by number, and the main thread; their share of what is known in sum goes with the others. */
Test(symbolize, only_some_threads, .init = start, .fini = stop)
{
	uint64_t exact[ESTIMATE_KINDS] = {8000000};
	struct thread_filter filter = {.main = true};

	cr_assert_eq(vec__push(&filter.names, "pool-*") ?: vec__push(&filter.names, "79"), 0);
	symbolizer.namer.filter = &filter;
	profile.unit = PROFILE_TIME;
	send_code(0);
	send_stack(10, frame_of(0, 0));
	send_of_thread(PID, "python3", 1000000);
	send_of_thread(78, "pool-1", 0);
	send_of_thread(79, "python3", 0);
	send_of_thread(80, "python3", 3000000);
	send_of_thread(80, "pool-9", 0); /* renamed */
	send_of_thread(81, "a pool-1", 0);
	flush();
	symbolizer__settle(&symbolizer, exact, true);
	expect("f0 (app.py:2);[lock] 6000\n");
	cr_expect(symbolizer.counts.samples == 4 && symbolizer.counts.left_out_threads == 2);
	cr_expect_eq(symbolizer.counts.left_out_waits, 2);
	cr_expect_eq(symbolizer.counts.left_out_ns, 8000000);
	thread_filter__free(&filter);
}

static void send_share(uint64_t id, uint64_t time_ns, enum wait_reason reason, int32_t syscall)
{
	struct pbp_sample sample = sample_of(id, frame_of(0, 1));
	struct sample_share share = {.time_ns = time_ns, .reason = reason, .syscall = syscall};

	cr_assert_eq(symbolizer__take_share(&symbolizer, &sample, &share), 0);
}

/* A profile of time: samples stand for a period, waits for themselves, below what they were waited for. */
Test(symbolize, waits, .init = start, .fini = stop)
{
	profile.unit = PROFILE_TIME;
	profile.period_ns = 1000000;
	send_code(0);
	send_stack(10, frame_of(0, 0));
	send_sample(10, frame_of(0, 1));
	send_share(10, 5000000, WAIT_SLEEP, 0);
	send_share(10, 7000000, WAIT_IO, 0);
	send_share(10, 8000000, WAIT_IO, 45);
	send_share(10, 4000, WAIT_READY, 0);
	flush();
	expect("f0 (app.py:2);[I/O: recvfrom] 8000\nf0 (app.py:2);[I/O: read] 7000\nf0 (app.py:2);[sleep] "
	       "5000\n"
	       "f0 (app.py:2) 1000\nf0 (app.py:2);[waits for a CPU] 4\n");
	cr_expect_eq(symbolizer.counts.samples, 5);
	cr_expect_eq(symbolizer.counts.waits, 4);
	cr_expect_eq(profile.samples, 5);
}

/* What was not walked is shared out by what was. */
Test(symbolize, estimated_waits, .init = start, .fini = stop)
{
	struct pbp_sample sample = sample_of(10, frame_of(0, 1)), none = sample_of(0, frame_of(0, 1));
	struct sample_share share = {.time_ns = 1000000, .extra_ns = 9000000, .kind = 2, .reason = WAIT_LOCK};
	uint64_t exact[ESTIMATE_KINDS] = {0, 0, 20000000};

	profile.unit = PROFILE_TIME;
	none.status = PBP_STATUS_NOT_WALKED;
	send_code(0);
	send_stack(10, frame_of(0, 0));
	cr_assert_eq(symbolizer__take_share(&symbolizer, &sample, &share), 0);
	share = (struct sample_share){.time_ns = 3000, .reason = WAIT_LOCK};
	cr_assert_eq(symbolizer__take_share(&symbolizer, &none, &share), 0);
	flush();
	symbolizer__settle(&symbolizer, exact, true);
	exact[5] = 5000;
	symbolizer__settle(&symbolizer, exact, true);
	expect("f0 (app.py:2);[lock] 21000\n[stack not taken] 5\n[stack not taken];[lock] 3\n");
}

Test(symbolize, idle_waits_left_out, .init = start, .fini = stop)
{
	uint64_t exact[ESTIMATE_KINDS] = {4000000};
	struct pbp_sample sample = sample_of(10, frame_of(0, 1));
	struct sample_share share = {.time_ns = 1000000, .extra_ns = 1000000, .reason = WAIT_LOCK};

	symbolizer.hide_idle = true;
	profile.unit = PROFILE_TIME;
	profile.period_ns = 1000000;
	send_code_of(PID, 0, "Queue.get", "/usr/lib/python3/queue.py");
	send_stack(10, frame_of(0, 0));
	send_sample(10, frame_of(0, 1));
	send_share(10, 2000000, WAIT_GIL, 0);
	cr_assert_eq(symbolizer__take_share(&symbolizer, &sample, &share), 0);
	flush();
	symbolizer__settle(&symbolizer, exact, true);
	expect("Queue.get (/usr/lib/python3/queue.py:2);[GIL] 2000\nQueue.get (/usr/lib/python3/queue.py:2) "
	       "1000\n");
	cr_expect_eq(symbolizer.counts.hidden_ns, 5000000);
	cr_expect_eq(symbolizer.counts.waits, 1);
}

/* --- samples one by one --- */

static struct taken {
	struct sink_sample sample;
	char thread[64], process[64];
} taken[32];
static size_t takes;
static uint64_t settled[2][ESTIMATE_KINDS];

static void take_one(struct sink *sink, const struct sink_sample *sample)
{
	struct taken *one = &taken[takes++];

	cr_assert_lt(takes, ARRAY_SIZE(taken));
	one->sample = *sample;
	if (sample->thread) {
		snprintf(one->thread, sizeof(one->thread), "%s", sample->thread->root);
		snprintf(one->process, sizeof(one->process), "%s", sample->thread->process->root);
	}
}

static void take_settled(struct sink *sink, const uint64_t extra[ESTIMATE_KINDS],
			 const uint64_t exact[ESTIMATE_KINDS])
{
	memcpy(settled[0], extra, sizeof(settled[0]));
	memcpy(settled[1], exact, sizeof(settled[1]));
}

static size_t renewals;

static void note_renewal(struct sink *sink)
{
	renewals++;
}

static struct sink a_sink = {.take = take_one, .settle = take_settled, .renew = note_renewal};

/* Where nobody wants all of it, a profile that is full begins anew: later stacks are told as they are. */
Test(symbolize, renewed, .fini = stop)
{
	start_with(8, false, false);
	symbolizer.sink = &a_sink;
	for (uint32_t round = 0; round < 3; round++) {
		cr_expect(!symbolizer__is_profile_full(&symbolizer));
		for (uint32_t code = 0; code < 5; code++) {
			uint64_t id = 10 * round + code + 1;

			send_code(code);
			send_stack(id, frame_of(code, 0));
			send_sample(id, frame_of(code, round));
		}
		flush();
		cr_expect(symbolizer__is_profile_full(&symbolizer));
		cr_expect_eq(symbolizer.counts.pruned, 0);
		expect(round == 0   ? "f0 (app.py:1) 1\nf1 (app.py:101) 1\nf2 (app.py:201) 1\n"
				      "f3 (app.py:301) 1\nf4 (app.py:401) 1\n"
		       : round == 1 ? "f0 (app.py:2) 1\nf1 (app.py:102) 1\nf2 (app.py:202) 1\n"
				      "f3 (app.py:302) 1\nf4 (app.py:402) 1\n"
				    : "f0 (app.py:3) 1\nf1 (app.py:103) 1\nf2 (app.py:203) 1\n"
				      "f3 (app.py:303) 1\nf4 (app.py:403) 1\n");
		symbolizer__forget(&symbolizer, NULL);
		code_cache__clear(&process->codes);
		process->codes.code_type = CODE_TYPE;
		hmap__clear(&process->lines);
		cr_assert_eq(symbolizer__renew(&symbolizer), 0);
		cr_expect_eq(renewals, round + 1);
	}
	cr_expect_eq(takes, 15);
	cr_expect_eq(profile.samples, 15);
}

/* Their strings as well, of which there may be too many with few frames: names are told as they are now. */
Test(symbolize, renewed_strings, .init = start, .fini = stop)
{
	size_t len = 8u << 20, bytes = strtab__bytes(profile.strings);
	char *huge = malloc(len);

	symbolizer.sink = &a_sink;
	for (uint32_t round = 0; round < 3; round++) {
		struct pbp_sample sample = sample_of(round + 1, frame_of(round, 0));

		/* The same tid, and a name of the same number. */
		snprintf(sample.comm, sizeof(sample.comm), "pool %u", round);
		sample.tid = 78;
		send_code(round);
		send_stack(round + 1, frame_of(round, 0));
		cr_assert_eq(symbolizer__take(&symbolizer, &sample, PBP_SAMPLE_SHORT), 0);
		flush();
		cr_assert_eq(takes, round + 1);
		cr_expect_str_eq(taken[round].thread, round == 0   ? "thread 78 (pool 0)"
						      : round == 1 ? "thread 78 (pool 1)"
								   : "thread 78 (pool 2)");
		expect(round == 0   ? "f0 (app.py:1) 1\n"
		       : round == 1 ? "f1 (app.py:101) 1\n"
				    : "f2 (app.py:201) 1\n");
		cr_expect(!symbolizer__is_profile_full(&symbolizer));
		for (int i = 0; i < 7; i++)
			cr_assert_neq(strtab__add(profile.strings, memset(huge, 'a' + i, len), len), UINT32_MAX);
		cr_expect(symbolizer__is_profile_full(&symbolizer));
		symbolizer__forget(&symbolizer, NULL);
		code_cache__clear(&process->codes);
		process->codes.code_type = CODE_TYPE;
		hmap__clear(&process->lines);
		cr_assert_eq(symbolizer__renew(&symbolizer), 0);
		cr_expect_leq(strtab__bytes(profile.strings), bytes);
	}
	free(huge);
}

Test(symbolize, one_by_one, .init = start, .fini = stop)
{
	struct pbp_sample sample = sample_of(10, frame_of(0, 1));
	struct sample_share share = {.time_ns = 5, .extra_ns = 7, .kind = 2, .reason = WAIT_LOCK};
	uint64_t exact[ESTIMATE_KINDS] = {[2] = 100, [3] = 50};

	symbolizer.sink = &a_sink;
	profile.period_ns = 1000;
	send_code(0);
	send_stack(10, frame_of(0, 0));
	sample.time_ns = 12345;
	sample.tid = 78;
	sample.flags = PBP_SAMPLE_ATTACHED | PBP_SAMPLE_KERNEL;
	snprintf(sample.comm, sizeof(sample.comm), "pool");
	cr_assert_eq(symbolizer__take(&symbolizer, &sample, PBP_SAMPLE_SHORT), 0);
	cr_assert_eq(symbolizer__take_share(&symbolizer, &sample, &share), 0);
	share.counted = true;
	cr_assert_eq(symbolizer__take_share(&symbolizer, &sample, &share), 0);
	sample.stack_id = 0;
	sample.status = PBP_STATUS_NO_TSTATE;
	sample.tid = 79;
	cr_assert_eq(symbolizer__take(&symbolizer, &sample, PBP_SAMPLE_SHORT), 0);
	flush();
	cr_assert_eq(takes, 4);
	cr_expect_eq(taken[0].sample.time_ns, 12345);
	cr_expect_eq(taken[0].sample.weight_ns, 1000);
	cr_expect_eq(taken[0].sample.state, SINK_ATTACHED | SINK_KERNEL);
	cr_expect_str_eq(taken[0].thread, "thread 78 (pool)");
	cr_expect_str_eq(taken[0].process, "process 77 (python3 app.py)");
	cr_expect(taken[1].sample.weight_ns == 5 && taken[1].sample.extra_ns == 7 && taken[1].sample.kind == 2);
	cr_expect_eq(taken[1].sample.state, SINK_WAIT);
	cr_expect_eq(taken[2].sample.state, SINK_WAIT | SINK_CONTINUED);
	cr_expect_eq(taken[1].sample.thread, taken[0].sample.thread);
	cr_expect_eq(taken[3].sample.state, SINK_WITHOUT_PYTHON | SINK_ATTACHED | SINK_KERNEL);
	cr_expect_str_eq(taken[3].thread, "thread 79 (pool)");
	cr_expect_eq(profile.samples, 3);

	/* Of the third kind there may be a sample yet; when there can be none, its time is no thread's. */
	symbolizer__settle(&symbolizer, exact, false);
	cr_expect(settled[0][2] == 14 && settled[1][2] == 100 && !settled[1][3]);
	cr_expect_eq(takes, 4);
	symbolizer__settle(&symbolizer, exact, true);
	cr_assert_eq(takes, 5);
	cr_expect(taken[4].sample.weight_ns == 50 && !taken[4].sample.thread &&
		  taken[4].sample.state == SINK_CONTINUED);
}

/* --- of a GIL --- */

static struct gil gil;

static void start_gil(void)
{
	start();
	profile.unit = PROFILE_TIME;
	profile.period_ns = 1000000;
	cr_assert_eq(gil__init(&gil, &profile, &symbolizer.estimate, symbolizer.pruned), 0);
	symbolizer.gil = &gil;
	symbolizer.namer.name_all = symbolizer.cpu_is_known = true;
	gil.symbolizer = &symbolizer;
	cr_assert_eq(vec__push(&process->gils.items, (py_addr)0x5000), 0);
	process->gils.read_ns = 1;
	send_code(0);
	send_stack(10, frame_of(0, 0));
}

static void stop_gil(void)
{
	gil__free(&gil);
	stop();
}

static struct pbp_sample sample_with_gil(pid_t tid, const char *comm)
{
	struct pbp_sample sample = sample_of(10, frame_of(0, 1));

	sample.tid = tid;
	sample.flags = PBP_SAMPLE_ATTACHED;
	sample.time_ns = 500000;
	memset(sample.comm, 0, sizeof(sample.comm));
	strcpy(sample.comm, comm);
	return sample;
}

/* One that was not asked for is not shown, but by who waited for it. */
Test(symbolize, holder_that_is_left_out, .init = start_gil, .fini = stop_gil)
{
	uint64_t exact[ESTIMATE_KINDS] = {[SYMBOLIZE_CPU_KIND] = 3000000};
	struct pbp_sample holds = sample_with_gil(78, "hold"), waits = sample_with_gil(79, "want");
	struct sample_share share = {.time_ns = 1000000, .reason = WAIT_GIL, .lock = 0x5000};
	struct thread_filter filter = {0};

	cr_assert_eq(vec__push(&filter.names, "want"), 0);
	symbolizer.namer.filter = &filter;
	waits.flags = waits.time_ns = 0;
	send(&holds);
	cr_assert_eq(symbolizer__take_share(&symbolizer, &waits, &share), 0);
	flush();
	cr_assert_eq(gil__settle(&gil), 0);
	symbolizer__settle(&symbolizer, exact, true);
	expect("f0 (app.py:2);[waits for the GIL];f0 (app.py:2);[holder: on the CPU] 1000\n");
	cr_expect(symbolizer.counts.samples == 1 && symbolizer.counts.left_out_threads == 1);
	cr_expect_eq(symbolizer.counts.left_out_ns, 3000000);
	cr_expect_eq(symbolizer.counts.hidden_ns, 0);
	thread_filter__free(&filter);
}

/* What is known later is of the thread as it was called, whatever can be read of it by then. */
Test(symbolize, one_by_one_and_more, .init = start_gil, .fini = stop_gil)
{
	struct pbp_sample holds = sample_with_gil(78, "python3");

	symbolizer.sink = &a_sink;
	send(&holds);
	flush();
	cr_assert_eq(takes, 1);
	cr_expect(!taken[0].sample.weight_ns && !taken[0].sample.extra_ns);
	gil.threads.items[0].name = strtab__add(profile.strings, "worker-1", strlen("worker-1"));
	process->epoch++;
	cr_assert_eq(gil__settle(&gil), 0);
	cr_assert_eq(takes, 2);
	cr_expect_eq(taken[1].sample.extra_ns, 1000000);
	cr_expect_eq(taken[1].sample.state, SINK_CONTINUED);
	cr_expect_str_eq(taken[1].thread, "thread 78 (worker-1)");
}

/* Only of the innermost function, and of its other samples not. */
Test(symbolize, lines_under_the_jit, .init = start, .fini = stop)
{
	struct pbp_sample sample;

	send_code(0);
	send_code(1);
	send_stack(10, frame_of(0, 0), frame_of(1, 3));
	send_sample(10, frame_of(0, 1));
	for (int i = 0; i < 3; i++) {
		sample = sample_of(10, frame_of(0, 1));
		sample.flags = PBP_SAMPLE_JIT;
		send(&sample);
	}
	sample = sample_of(0, frame_of(0, 1));
	sample.flags = PBP_SAMPLE_JIT;
	sample.status = PBP_STATUS_NO_FRAMES;
	send(&sample);
	flush();
	expect("f1 (app.py:104);f0 (app.py:~2) 3\n[no Python frames] 1\nf1 (app.py:104);f0 (app.py:2) 1\n");
	cr_expect_eq(symbolizer.counts.approximate, 3);
}

Test(symbolize, unknown_stack_is_lost, .init = start, .fini = stop)
{
	send_code(0);
	send_stack(10, frame_of(0, 0));
	send_sample(99, frame_of(0, 1));
	send_sample(10, frame_of(0, 1));
	flush();
	cr_expect_eq(symbolizer.counts.unknown_stack, 1);
	cr_expect_eq(symbolizer.counts.samples, 1);
	cr_expect_eq(profile.samples, 1);
	expect("f0 (app.py:2) 1\n");
}

Test(symbolize, process_that_nobody_asked_for, .init = start, .fini = stop)
{
	struct pbp_frame frame = frame_of(0, 0);
	struct pbp_sample sample = sample_of(10, frame);

	sample.tgid = 1;
	cr_expect_eq(send_stack_of(1, 10, &frame, 1), 0);
	send_code_of(1, 0, "f", "app.py");
	send(&sample);
	flush();
	cr_expect_eq(symbolizer.stacks.len, 0);
	cr_expect(!symbolizer.counts.samples && !symbolizer.counts.unknown_stack);
	expect("");
}

/* The kernel side sends a stack again when it has forgotten that it did. */
Test(symbolize, stack_sent_twice, .init = start, .fini = stop)
{
	send_code(0);
	for (int i = 0; i < 3; i++) {
		send_stack(10, frame_of(0, 0), frame_of(0, 9));
		send_code(0);
		send_sample(10, frame_of(0, 1));
		flush();
	}
	cr_expect_eq(symbolizer.stacks.len, 1);
	cr_expect_eq(process->codes.codes.len, 1);
	expect("f0 (app.py:10);f0 (app.py:2) 3\n");
}

Test(symbolize, malformed_records, .init = start, .fini = stop)
{
	struct {
		struct pbp_stack stack;
		struct pbp_frame frames[2];
	} record = {.stack = {.type = PBP_STACK, .tgid = PID, .id = 10, .count = 2},
		    .frames = {frame_of(0, 0), frame_of(0, 1)}};
	struct pbp_code code = {.type = PBP_CODE, .tgid = PID};
	struct pbp_sample sample = sample_of(10, frame_of(0, 1));

	for (size_t size = 0; size < sizeof(record); size++)
		cr_expect_eq(symbolizer__take(&symbolizer, &record, size), -EINVAL, "stack of %zu bytes",
			     size);
	for (size_t size = 0; size < sizeof(code); size += 7)
		cr_expect_eq(symbolizer__take(&symbolizer, &code, size), -EINVAL, "code of %zu bytes", size);
	for (size_t size = 0; size < PBP_SAMPLE_SHORT; size++)
		cr_expect_eq(symbolizer__take(&symbolizer, &sample, size), -EINVAL, "sample of %zu bytes",
			     size);
	record.stack.count = 0;
	cr_expect_eq(symbolizer__take(&symbolizer, &record, sizeof(record)), -EINVAL);
	record.stack.count = 3;
	cr_expect_eq(symbolizer__take(&symbolizer, &record, sizeof(record)), -EINVAL);
	record.stack.count = UINT32_MAX;
	cr_expect_eq(symbolizer__take(&symbolizer, &record, sizeof(record)), -EINVAL);
	record.stack.type = 99;
	cr_expect_eq(symbolizer__take(&symbolizer, &record, sizeof(record)), -EINVAL);
	cr_expect(!symbolizer.stacks.len && !symbolizer.samples.len && !process->codes.offers.len);
	flush();
	expect("");
}

/* ---- frames ---- */

Test(symbolize, special_code, .init = start, .fini = stop)
{
	send_code(0);
	send_code_of(PID, 1, "__init__", "__init__");
	send_code(2);
	/* A shim in the middle and as the leaf; a code object that nobody could read. */
	send_stack(10, frame_of(2, 0), frame_of(1, 0), frame_of(0, 0));
	send_stack(11, frame_of(1, 0), frame_of(0, 0));
	send_stack(12, frame_of(2, 0), frame_of(9, 0), frame_of(0, 0));
	send_stack(13, frame_of(9, 0), frame_of(0, 0));
	for (uint64_t id = 10; id <= 13; id++)
		send_sample(id, frame_of(2, 1));
	flush();
	expect("f0 (app.py:1) 1\n"
	       "f0 (app.py:1);[code freed before it was read] 1\n"
	       "f0 (app.py:1);[code freed before it was read];f2 (app.py:202) 1\n"
	       "f0 (app.py:1);f2 (app.py:202) 1\n");
	cr_expect_eq(symbolizer.counts.unreadable, 2);
	cr_expect_eq(symbolizer.counts.samples, 4);
}

/* As deep as a record can be. */
Test(symbolize, deep_stack, .fini = stop)
{
	struct pbp_frame *frames = calloc(STACK_FRAMES_MAX + 1, sizeof(*frames));
	uint32_t node, depth = 0;

	start_with(STACK_FRAMES_MAX + 2, false, false);
	send_code(0);
	send_code(1);
	for (uint32_t i = 0; i <= STACK_FRAMES_MAX; i++)
		frames[i] = frame_of(i % 2, 3);
	cr_expect_eq(send_stack_of(PID, 11, frames, STACK_FRAMES_MAX + 1), -EINVAL);
	cr_assert_eq(send_stack_of(PID, 10, frames, STACK_FRAMES_MAX), 0);
	send_sample(10, frame_of(0, 50));
	flush();
	cr_assert_eq(profile.trie.nodes.len, 2 + STACK_FRAMES_MAX);
	for (node = profile.trie.nodes.len - 1; node; node = profile.trie.nodes.items[node].parent)
		depth++;
	cr_expect_eq(depth, STACK_FRAMES_MAX);
	cr_expect_eq(profile.trie.nodes.items[profile.trie.nodes.len - 1].self, 1);
	free(frames);
}

/* No sample is dropped when the profile may not grow any more: what is new goes under one node. */
Test(symbolize, profile_at_its_size_limit, .fini = stop)
{
	struct sample_share share = {.time_ns = 5, .reason = WAIT_LOCK};
	struct pbp_sample sample;

	start_with(6, false, false);
	for (uint32_t i = 0; i < 8; i++)
		send_code(i);
	for (uint32_t i = 0; i < 8; i++) {
		send_stack(10 + i, frame_of(i, 0), frame_of(0, 4));
		send_sample(10 + i, frame_of(i, 1));
		send_sample(10 + i, frame_of(i, 1));
	}
	send_sample(10, frame_of(0, 2));
	flush();
	cr_expect_leq(profile.trie.nodes.len, 6);
	cr_expect_eq(symbolizer.counts.samples, 17);
	cr_expect_eq(profile.samples, 17);
	cr_expect_eq(symbolizer.counts.pruned, 17 - 6);
	expect("[beyond the profile's size limit] 11\n"
	       "f0 (app.py:5);f0 (app.py:2) 2\n"
	       "f0 (app.py:5);f1 (app.py:102) 2\n"
	       "f0 (app.py:5);f2 (app.py:202) 2\n");
	/* ... and what is known is still told apart. */
	send_sample(11, frame_of(1, 1));
	flush();
	cr_expect_eq(symbolizer.counts.pruned, 11);
	/* A wait there, whose frame would be new: once, whatever shares it has. */
	sample = sample_of(11, frame_of(1, 1));
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(symbolizer__take_share(&symbolizer, &sample, &share), 0);
		share.counted = true;
	}
	flush();
	cr_expect_eq(symbolizer.counts.pruned, 12);
	/* ... of what is not known either. */
	sample = sample_of(17, frame_of(7, 1));
	share.counted = false;
	cr_assert_eq(symbolizer__take_share(&symbolizer, &sample, &share), 0);
	flush();
	cr_expect_eq(symbolizer.counts.pruned, 13);
	cr_expect_eq(symbolizer.counts.samples, 20);
}

/* ---- roots ---- */

Test(symbolize, roots, .fini = stop)
{
	struct pbp_sample sample;
	struct pbp_frame leaf;

	start_with(MAX_NODES, true, true);
	leaf = frame_of(0, 1);
	send_code(0);
	send_code_of(PID + 1, 0, "g", "worker.py");
	send_stack(10, frame_of(0, 0));
	cr_assert_eq(send_stack_of(PID + 1, 20, &leaf, 1), 0);
	send_sample(10, leaf);
	sample = sample_of(10, leaf);
	sample.tid = PID + 5;
	strcpy(sample.comm, "pool-1");
	send(&sample);
	send(&sample);
	strcpy(sample.comm, "pool-2"); /* renamed, or another thread with its id */
	send(&sample);
	sample.stack_id = 20;
	sample.tgid = PID + 1;
	memcpy(sample.comm, "sixteen letters!", 16); /* no NUL */
	send(&sample);
	memcpy(sample.comm, "\xff\n;\x1b[31m", 9);
	send(&sample);
	flush();
	expect("process 77 (python3 app.py);thread 82 (pool-1);f0 (app.py:2) 2\n"
	       "process 77 (python3 app.py);thread 77 (main);f0 (app.py:2) 1\n"
	       "process 77 (python3 app.py);thread 82 (pool-2);f0 (app.py:2) 1\n"
	       "process 78 (worker);thread 82 (?\\x0a\\x3b\\x1b[31m);g (worker.py:2) 1\n"
	       "process 78 (worker);thread 82 (sixteen letters!);g (worker.py:2) 1\n");
}

/* ---- bounds ---- */

Test(symbolize, forget, .init = start, .fini = stop)
{
	struct pbp_frame leaf = frame_of(0, 1);
	struct pbp_sample sample = sample_of(20, leaf);

	sample.tgid = PID + 1;
	send_code(0);
	send_code_of(PID + 1, 0, "g", "worker.py");
	send_stack(10, frame_of(0, 0));
	cr_assert_eq(send_stack_of(PID + 1, 20, &leaf, 1), 0);
	send_sample(10, leaf);
	send(&sample);
	flush();
	symbolizer__forget(&symbolizer, process);
	cr_expect_eq(symbolizer.stored_frames, 1);
	send_sample(10, leaf);
	send(&sample);
	flush();
	cr_expect_eq(symbolizer.counts.unknown_stack, 1, "the one's is gone");
	expect("g (worker.py:2) 2\nf0 (app.py:2) 1\n");
	symbolizer__forget(&symbolizer, NULL);
	cr_expect(!symbolizer.stored_frames && !symbolizer.stacks.len);
	send(&sample);
	flush();
	cr_expect_eq(symbolizer.counts.unknown_stack, 2);
}

Test(symbolize, full, .init = start, .fini = stop)
{
	struct pbp_frame *frames = calloc(PBP_MAX_FRAMES, sizeof(*frames));
	uint64_t id = 1;

	send_code(0);
	while (!symbolizer__is_full(&symbolizer) && id < 100000)
		send_stack(id++, frame_of(0, 0));
	cr_expect(id > 10000 && id < 100000, "many stacks: %lu", id);
	flush();
	symbolizer__forget(&symbolizer, NULL);
	cr_expect(!symbolizer__is_full(&symbolizer));
	for (id = 1; !symbolizer__is_full(&symbolizer) && id < 100000; id++)
		cr_assert_eq(send_stack_of(PID, id, frames, PBP_MAX_FRAMES), 0);
	cr_expect(id > 100 && id < 1000, "deep stacks: %lu", id);
	symbolizer__forget(&symbolizer, NULL);
	cr_expect(!symbolizer__is_full(&symbolizer));
	free(frames);
}

/* ---- tails ---- */

static struct image image;

/* A sample of the image's thread, of which the kernel side walked `kept` frames; its stack has been sent. */
static struct pbp_sample cut_after(uint64_t id, size_t kept)
{
	static struct pbp_frame frames[IMAGE_MAX_DEPTH];
	static uint64_t addresses[IMAGE_MAX_DEPTH];
	struct tail_reader *reader = process__tail_reader(process, image__at(&image, IMAGE_TSTATE));
	struct pbp_sample sample;

	cr_assert_gt(image__expect(&image, frames, addresses), kept);
	sample = sample_of(id, frames[0]);
	sample.status = PBP_STATUS_DEEP;
	sample.tstate = image__at(&image, IMAGE_TSTATE);
	sample.link_frame = addresses[kept - 1];
	sample.tail_frame = addresses[kept];
	sample.witness_version = reader->witnesses.version;
	for (uint32_t i = 0; i < reader->witnesses.count; i++)
		for (size_t k = 0; k < image.depth; k++)
			if (image.stack[k].address == reader->witnesses.frames[i])
				sample.witnesses[i] =
					pbp_frame_hash(image.stack[k].frame.code, image.stack[k].frame.instr,
						       k ? image.stack[k - 1].address : 0);
	cr_assert_eq(send_stack_of(PID, id, frames, kept), 0);
	return sample;
}

static void start_image(void)
{
	start();
	image__init(&image, 14);
	for (int i = 0; i < 60; i++)
		image__push(&image, IMAGE_PLAIN, i / 10, i / 5, 0);
	process->target = image.target;
	process->attached = true;
	cr_assert(tail_reader__prime(process__tail_reader(process, image__at(&image, IMAGE_TSTATE)),
				     &process->target, image__at(&image, IMAGE_TSTATE), 0));
}

static void stop_image(void)
{
	stop();
	image__free(&image);
}

/* Code objects of the image have no names, so paths are told by their depth. */
static uint32_t depth_of_sample(uint64_t weight)
{
	uint32_t depth = 0;

	for (uint32_t node = 1; node < profile.trie.nodes.len; node++) {
		if (profile.trie.nodes.items[node].self != weight)
			continue;
		for (; node; node = profile.trie.nodes.items[node].parent)
			depth++;
		return depth;
	}
	return 0;
}

Test(symbolize, completed_tail, .init = start_image, .fini = stop_image)
{
	struct pbp_sample sample = cut_after(10, 20);
	uint64_t calls;

	for (int i = 0; i < 5; i++)
		send(&sample);
	flush();
	cr_expect_eq(symbolizer.counts.tails_completed, 5);
	cr_expect(!symbolizer.counts.unverified && !symbolizer.counts.truncated);
	cr_expect_eq(depth_of_sample(5), 60);
	/*
	 * In the next batch the tail is read and proved again, once for all its samples; nothing else is
	 * read.
	 */
	calls = process->target.remote.stats.calls;
	for (int i = 0; i < 5; i++)
		send(&sample);
	flush();
	cr_expect_eq(process->target.remote.stats.calls - calls, 2);
	cr_expect_eq(depth_of_sample(10), 60);
}

/* The leaf itself is the link: its instruction is in the sample, not in the stack. */
Test(symbolize, tail_of_one_frame, .init = start_image, .fini = stop_image)
{
	struct pbp_sample sample = cut_after(10, 1);

	send(&sample);
	flush();
	cr_expect_eq(symbolizer.counts.tails_completed, 1);
	cr_expect_eq(depth_of_sample(1), 60);
	sample.leaf_instr += 2;
	send(&sample);
	flush();
	cr_expect_eq(symbolizer.counts.unverified, 1, "it has moved on");
}

/* A process that was found may be anything: what is sampled of it counts once it is known to be Python. */
Test(symbolize, processes_that_are_found, .init = start, .fini = stop)
{
	struct pbp_sample sample = {
		.type = PBP_SAMPLE, .tgid = PID, .tid = PID, .status = PBP_STATUS_NO_TARGET};

	process->python = false;
	send(&sample);
	send(&sample);
	sample.tgid = PID + 1;
	other->python = false;
	send(&sample);
	flush();
	cr_expect_eq(profile.samples, 0);
	cr_expect_eq(symbolizer.counts.skipped, 3);
	process->python = true;
	symbolizer__admit(&symbolizer, process);
	cr_expect_eq(profile.samples, 2);
	cr_expect_eq(process->samples, 2);
	cr_expect_eq(symbolizer.counts.status[PBP_STATUS_NO_TARGET], 2);
	cr_expect_eq(symbolizer.counts.skipped, 1);
	symbolizer__admit(&symbolizer, process);
	cr_expect_eq(profile.samples, 2, "once");
}

/* What the kernel side did not send of it cannot be read any more. */
Test(symbolize, a_process_that_has_ended, .init = start, .fini = stop)
{
	struct pbp_frame frames[] = {frame_of(1, 0), frame_of(0, 3)};
	struct pbp_sample sample = {.type = PBP_SAMPLE, .tgid = PID, .tid = PID, .stack_id = 5};

	sample.leaf_instr = frame_of(1, 2).instr;
	process->exited = true;
	send_code(0);
	cr_assert_eq(send_stack_of(PID, 5, frames, 2), 0);
	send(&sample);
	flush();
	expect("f0 (app.py:4);[exited] 1\n");
	cr_expect_eq(symbolizer.counts.exited, 1);
	cr_expect_eq(symbolizer.counts.unreadable, 0);
}

/* Another process with the same pid and another name is another root; so is a program after an exec. Names
 * are escaped once. */
Test(symbolize, a_pid_again, .fini = stop)
{
	struct pbp_sample sample = {
		.type = PBP_SAMPLE, .tgid = PID, .tid = PID, .status = PBP_STATUS_NO_TSTATE};

	start_with(MAX_NODES, true, false);
	send(&sample);
	flush();
	processes__end(&processes, process, 1);
	process = add_process(PID, "second");
	send(&sample);
	flush();
	snprintf(process->raw_command, sizeof(process->raw_command), "a\n\033third\xff");
	process->renamed++;
	send(&sample);
	flush();
	expect("process 77 (a\\x0a\\x1bthird\\xff);[no Python frames] 1\n"
	       "process 77 (python3 app.py);[no Python frames] 1\n"
	       "process 77 (second);[no Python frames] 1\n");
}

Test(symbolize, unverified_tail, .init = start_image, .fini = stop_image)
{
	struct pbp_sample sample = cut_after(10, 20), without = sample;

	/* No link; a link that has returned; a process that is gone. */
	without.link_frame = 0;
	send(&without);
	flush();
	cr_expect_eq(depth_of_sample(1), 1 + 20);
	without.stack_id = 0;
	send(&without);
	flush();
	cr_expect_eq(symbolizer.counts.unverified, 2);
	while (image.depth > 40)
		image__pop(&image);
	send(&sample);
	flush();
	cr_expect_eq(symbolizer.counts.unverified, 3);
	sample = cut_after(11, 20);
	process->attached = false;
	send(&sample);
	flush();
	cr_expect_eq(symbolizer.counts.unverified, 4);
	cr_expect_eq(symbolizer.counts.samples, 4);
	cr_expect_eq(symbolizer.counts.tails_completed, 0);
	cr_expect_eq(profile.samples, 4);
}

Test(symbolize, commands_end_with_a_whole_character)
{
	char raw[140], *const argv[] = {raw, NULL};
	struct process process = {0};

	for (size_t len = 123; len < 128; len++) {
		memset(raw, 'a', len);
		strcpy(raw + len, "\u20ac\u20ac\u20ac");
		process__set_command(&process, argv);
		cr_expect_eq(strlen(process.raw_command), len == 123 || len == 124 ? len + 3 : len, "%zu", len);
		cr_expect_str_eq(process.command, process.raw_command);
	}
}
