/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Switches on the kernel side: what is told of a thread that was off the CPU, and what is left out when there
 * are too many of them.
 */
#include "kernel_side.h"

#define MS	      1000000ull
#define SYSCALL_READ  0
#define SYSCALL_FUTEX 202

static struct task_struct idle_task; /* pid 0 */
static size_t taken;		     /* of the records that were sent */

static void start_waiting(void)
{
	start(14);
	push_ordinary();
	memset(&sent, 0, sizeof(sent));
	host.task.__state = 1;
	host.registers = (struct pt_regs){.orig_ax = SYSCALL_FUTEX, .di = 0xabc0};
	host.step_ns = 0;
	set_bit(target_bits, host.task.tgid);
}

static void take_records(void)
{
	for (; taken < host.records.len; taken++)
		take_record(&host.records.items[taken]);
}

/* The current task leaves, or one comes in its place. */
static void switch_tasks(bool preempted, struct task_struct *next)
{
	struct {
		__u64 args[4];
	} context = {{preempted, (uintptr_t)&host.task, (uintptr_t)next}};

	on_switch((void *)&context);
	take_records();
}

static void leave(void)
{
	switch_tasks(false, &idle_task);
}

/* ... while another one, of no target, leaves. */
static void come_back(struct task_struct *task)
{
	struct task_struct copy = *task, current = host.task;

	host.task = (struct task_struct){.pid = 99, .tgid = 99, .group_leader = &host.task};
	switch_tasks(false, &copy);
	host.task = current;
}

static void wait_for(__u64 ns)
{
	leave();
	host.now_ns += ns;
	come_back(&host.task);
}

static void wake(struct task_struct *task)
{
	struct {
		__u64 args[4];
	} context = {{(uintptr_t)task}};

	on_waking((void *)&context);
}

static struct pbp_skipped skipped_of(__s32 syscall)
{
	__u32 kind = pbp_wait_kind(0, syscall);

	return *bpf_map_lookup_elem(&skipped, &kind);
}

static struct pbp_switch_budget *budget(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&switch_budgets, &zero);
}

/* Of all lengths, from now on. */
static void walk_one_every(__u64 ns)
{
	budget()->window_ns = host.now_ns;
	budget()->brief.walk_every_ns = budget()->other.walk_every_ns = ns;
}

Test(switch, one_wait)
{
	__u64 began;

	start_waiting();
	began = host.now_ns;
	leave();
	cr_expect(sent.stack && !sent.waits, "the stack goes out at once, the wait when it is over");
	host.now_ns += 5 * MS;
	come_back(&host.task);
	cr_assert_eq(sent.waits, 1);
	expect_whole("of a wait");
	cr_expect_eq(sent.wait.out_ns, began);
	cr_expect_eq(sent.wait.duration_ns, 5 * MS);
	cr_expect_eq(sent.wait.ready_ns, 0);
	cr_expect_eq(sent.wait.extra_ns, 0);
	cr_expect_eq(sent.wait.syscall, SYSCALL_FUTEX);
	cr_expect_eq(sent.wait.arg, 0xabc0);
	cr_expect_eq(sent.wait.flags, PBP_WAIT_CERTAIN);
	cr_expect_eq(sent.sample.tid, 4712);
	cr_expect_eq(sent.sample.tgid, 4711);
	come_back(&host.task);
	cr_expect_eq(sent.waits, 1, "it is on the CPU already");
	image__free(&image);
}

Test(switch, deep_stack)
{
	start_waiting();
	host_set_knob(&max_frames, 3);
	wait_for(MS);
	cr_expect_eq(sent.sample_size, sizeof(struct pbp_sample), "whole, with its tail");
	cr_expect_eq(sent.sample.status, PBP_STATUS_DEEP);
	cr_expect(sent.sample.tail_frame && sent.sample.link_frame);
	host_set_knob(&max_frames, PBP_MAX_FRAMES);
	wait_for(MS);
	cr_expect_eq(sent.sample_size, PBP_SAMPLE_SHORT);
	cr_expect_eq(sent.sample.status, PBP_STATUS_COMPLETE);
	image__free(&image);
}

/* It leaves once more, and nothing was told of its return: what it ran since tells when that was. */
Test(switch, return_not_told_of)
{
	__u64 began;

	start_waiting();
	host.task.se.sum_exec_runtime = 50 * MS;
	began = host.now_ns;
	leave();
	host.now_ns += 4 * MS;
	wake(&host.task);
	host.now_ns += 6 * MS;
	host.task.se.sum_exec_runtime += 3 * MS;
	leave();
	cr_assert_eq(sent.waits, 1);
	expect_whole("of a wait whose end was not told of");
	cr_expect_eq(sent.wait.out_ns, began);
	cr_expect_eq(sent.wait.duration_ns, 7 * MS);
	cr_expect_eq(sent.wait.ready_ns, 3 * MS);
	cr_expect_eq(counted(PBP_COUNTER_UNSEEN), 1);
	host.now_ns += 2 * MS;
	come_back(&host.task);
	cr_assert_eq(sent.waits, 2, "the next one is an ordinary one");
	cr_expect_eq(sent.wait.out_ns, began + 10 * MS);
	cr_expect_eq(sent.wait.duration_ns, 2 * MS);
	cr_expect_eq(counted(PBP_COUNTER_UNSEEN), 1);

	/* By the scheduler's account, which leaves interrupts out, it came back before it was woken. */
	leave();
	host.now_ns += 5 * MS;
	wake(&host.task);
	host.now_ns += MS;
	host.task.se.sum_exec_runtime += MS + 1000;
	leave();
	cr_expect_eq(sent.wait.duration_ns, 5 * MS);
	cr_expect_eq(sent.wait.ready_ns, 0);
	/* It has run all the time. */
	host.now_ns += MS;
	host.task.se.sum_exec_runtime += MS;
	leave();
	cr_expect_eq(sent.waits, 3);
	cr_expect_eq(counted(PBP_COUNTER_UNSEEN), 2);
	/* It ends. */
	host.now_ns += 9 * MS;
	host.task.se.sum_exec_runtime += MS;
	host.task.__state = TASK_DEAD;
	leave();
	cr_expect_eq(sent.waits, 4);
	cr_expect_eq(sent.wait.duration_ns, 8 * MS);
	image__free(&image);
}

/* Whether it could have run, and from when on. */
Test(switch, reasons)
{
	start_waiting();
	switch_tasks(true, &idle_task);
	host.now_ns += 3 * MS;
	come_back(&host.task);
	cr_expect(sent.wait.flags & PBP_WAIT_READY, "preempted, whatever state it was about to be in");
	cr_expect_eq(sent.wait.ready_ns, 3 * MS);

	host.task.__state = 0;
	wait_for(2 * MS);
	cr_expect(sent.wait.flags & PBP_WAIT_READY, "it has given way");
	cr_expect_eq(sent.wait.ready_ns, 2 * MS);

	host.task.__state = 1;
	leave();
	host.now_ns += 2 * MS;
	wake(&host.task);
	host.now_ns += MS;
	wake(&host.task);
	come_back(&host.task);
	cr_expect_not(sent.wait.flags & PBP_WAIT_READY);
	cr_expect_eq(sent.wait.duration_ns, 3 * MS);
	cr_expect_eq(sent.wait.ready_ns, MS, "from the first time that it was woken");

	host.task.__state = 4;
	wait_for(MS);
	cr_expect(sent.wait.flags & PBP_WAIT_STOPPED);
	host.task.__state = 2;
	host.registers.orig_ax = -1;
	wait_for(MS);
	cr_expect_eq(sent.wait.syscall, PBP_SYSCALL_NONE);
	cr_expect_eq(sent.wait.arg, 0, "registers of an interrupted program are its own");
	image__free(&image);
}

/* After a stop it goes on under another number. */
Test(switch, goes_on_after_a_stop)
{
	start_waiting();
	host.registers.orig_ax = PBP_SYSCALL_RESTART;
	wait_for(MS);
	cr_expect_eq(sent.wait.syscall, PBP_SYSCALL_RESTART, "it is not known what it was");
	host.registers = (struct pt_regs){.orig_ax = SYSCALL_FUTEX, .di = 0xabc0};
	wait_for(MS);
	host.task.__state = 4;
	wait_for(MS);
	cr_expect(sent.wait.flags & PBP_WAIT_STOPPED);
	host.task.__state = 1;
	host.registers = (struct pt_regs){.orig_ax = PBP_SYSCALL_RESTART, .di = 1};
	for (int i = 0; i < 2; i++) {
		wait_for(MS);
		cr_expect_eq(sent.wait.syscall, SYSCALL_FUTEX);
		cr_expect_eq(sent.wait.arg, 0xabc0);
		cr_expect_not(sent.wait.flags & PBP_WAIT_STOPPED);
	}
	host.registers.orig_ax = SYSCALL_READ;
	wait_for(MS);
	host.registers.orig_ax = PBP_SYSCALL_RESTART;
	wait_for(MS);
	cr_expect_eq(sent.wait.syscall, PBP_SYSCALL_RESTART, "a read is made anew");
	image__free(&image);
}

Test(switch, none_of_ours)
{
	struct task_struct other = {.pid = 5000, .tgid = 5000};
	__u32 tgid = host.task.tgid, key = 4712;

	start_waiting();
	come_back(&other);
	wake(&other);
	wake(&host.task);
	tgid = host.task.tgid;
	bpf_map_lookup_elem(&targets, &tgid)->interpreters_head = 0;
	wait_for(MS);
	bpf_map_delete_elem(&targets, &tgid);
	wait_for(MS);
	cr_expect(!sent.waits && !sent.stack, "not known as Python (yet), or no target at all");

	set_target();
	leave();
	host.task.__state = TASK_DEAD;
	leave();
	cr_expect_null(bpf_map_lookup_elem(&off_threads, &key), "it has ended");
	come_back(&host.task);
	cr_expect_eq(sent.waits, 0);
	image__free(&image);
}

/* User space finds out anew what the process is: what it waits for meanwhile is told without a stack. */
Test(switch, looked_at_anew)
{
	__u32 tgid = 4711, key = 4712;

	start_waiting();
	wait_for(MS);
	cr_assert_eq(sent.waits, 1);
	bpf_map_lookup_elem(&targets, &tgid)->interpreters_head = 0;
	wait_for(3 * MS);
	cr_assert_eq(sent.waits, 2);
	cr_expect_eq(sent.wait.duration_ns, 3 * MS);
	cr_expect_eq(sent.sample.status, PBP_STATUS_NOT_WALKED);
	cr_expect(sent.sample.stack_id == 0 && sent.sample.tgid == 4711 && sent.sample.tid == 4712);
	cr_expect_eq(sent.wait.syscall, SYSCALL_FUTEX);
	leave();
	set_target();
	host.now_ns += 2 * MS;
	come_back(&host.task);
	cr_assert_eq(sent.waits, 3, "known again before it is over");
	cr_expect_eq(sent.wait.duration_ns, 2 * MS);
	wait_for(MS);
	expect_whole("known again");

	bpf_map_delete_elem(&targets, &tgid);
	wait_for(MS);
	cr_expect_eq(sent.waits, 4, "no target any more");
	cr_expect_null(bpf_map_lookup_elem(&off_threads, &key));
	image__free(&image);
}

/* When there was one that user space may have to read is told. */
Test(switch, unwalked)
{
	start_waiting();
	wait_for(10000);
	cr_expect_eq(budget()->unwalked_ns, 0);
	walk_one_every(1000000);
	host.random = 0xffffffff;
	leave();
	cr_expect_eq(budget()->unwalked_ns, host.now_ns, "while it lasts");
	come_back(&host.task);
	image__free(&image);
}

/* A thread without a thread state, and a stack that the ring had no room for. */
Test(switch, without_frames)
{
	start_waiting();
	host.ring_full = true;
	leave();
	host.ring_full = false;
	host.now_ns += MS;
	come_back(&host.task);
	cr_expect_eq(sent.sample.status, PBP_STATUS_NOT_WALKED);
	cr_expect_eq(sent.sample.stack_id, 0);
	cr_expect_eq(sent.wait.duration_ns, MS, "its time is told all the same");

	host.ring_full = true;
	leave();
	host.now_ns += MS;
	come_back(&host.task);
	cr_expect_eq(counted(PBP_COUNTER_LOST_WAIT), 1);
	cr_expect_eq(counted(PBP_COUNTER_LOST_WAIT_NS), MS);
	host.ring_full = false;

	host.task.thread.fsbase = 12345;
	host.task.pid++;
	wait_for(MS);
	cr_expect_eq(sent.sample.status, PBP_STATUS_NO_TSTATE);
	image__free(&image);
}

/* Put in by user space: asleep since before anything was watched. */
Test(switch, found_asleep)
{
	struct pbp_off_thread found = {
		.out_ns = host.now_ns - 7 * MS,
		.found_tgid = 4711,
		.wait = {.type = PBP_WAIT,
			 .flags = PBP_WAIT_FOUND,
			 .out_ns = host.now_ns - 7 * MS,
			 .sample = {.type = PBP_SAMPLE,
				    .tgid = 4711,
				    .tid = 4712,
				    .status = PBP_STATUS_NOT_WALKED}},
	};
	struct task_struct other = {.pid = 4712, .tgid = 8};
	__u32 key = 4712, taken_waits;

	start_waiting();
	set_bit(off_thread_bits, key);
	bpf_map_update_elem(&off_threads, &key, &found, BPF_ANY);
	come_back(&other);
	cr_expect_eq(sent.waits, 0, "another process's thread has the number now");
	come_back(&host.task);
	cr_assert_eq(sent.waits, 1);
	cr_expect_eq(sent.wait.duration_ns, 7 * MS);
	cr_expect(sent.wait.flags & PBP_WAIT_FOUND);
	wait_for(MS);
	cr_expect_eq(sent.wait.flags, PBP_WAIT_CERTAIN, "the next one is like any other");

	bpf_map_update_elem(&off_threads, &key, &found, BPF_ANY);
	leave();
	host.now_ns += MS;
	come_back(&host.task);
	cr_expect_eq(sent.wait.duration_ns, MS, "it was on a CPU in truth");

	/* Its return was not told of. */
	found.ran_ns = 30 * MS;
	found.out_ns = host.now_ns;
	host.now_ns += 5 * MS;
	host.task.se.sum_exec_runtime = 35 * MS - 10000;
	bpf_map_update_elem(&off_threads, &key, &found, BPF_ANY);
	taken_waits = sent.waits;
	leave();
	cr_expect_eq(sent.waits, taken_waits, "it ran all the time, but for interrupts");
	host.task.se.sum_exec_runtime = 32 * MS;
	bpf_map_update_elem(&off_threads, &key, &found, BPF_ANY);
	leave();
	cr_assert_eq(sent.waits, ++taken_waits, "it had no CPU, and was not woken: it was ready to run");
	cr_expect_eq(sent.wait.duration_ns, 3 * MS);
	cr_expect_eq(sent.wait.ready_ns, 0);
	bpf_map_update_elem(&off_threads, &key, &found, BPF_ANY);
	host.now_ns -= 2 * MS;
	wake(&host.task);
	host.now_ns += 2 * MS;
	leave();
	cr_assert_eq(sent.waits, taken_waits + 1);
	cr_expect_eq(sent.wait.duration_ns, 3 * MS);
	cr_expect(sent.wait.flags & PBP_WAIT_FOUND);
	bpf_map_update_elem(&off_threads, &key, &found, BPF_ANY);
	wake(&host.task);
	host.task.tgid = 8;
	leave();
	cr_expect_eq(sent.waits, taken_waits + 1, "another process's thread");
	image__free(&image);
}

/* Short waits beyond the budget: a chance in proportion to how long they last, and exact sums of the rest. */
Test(switch, short_waits)
{
	start_waiting();
	wait_for(10000);
	cr_expect_eq(sent.waits, 1, "the first of its kind");
	walk_one_every(1000000);

	host.random = 0xffffffff;
	wait_for(10000);
	cr_expect_eq(sent.waits, 1);
	cr_expect_eq(skipped_of(SYSCALL_FUTEX).count, 1);
	cr_expect_eq(skipped_of(SYSCALL_FUTEX).time_ns, 10000);

	host.random = 0;
	wait_for(20000);
	cr_expect_eq(sent.waits, 2);
	cr_expect_eq(sent.wait.duration_ns, 20000);
	cr_expect_eq(sent.wait.extra_ns, 20000 * 99, "its chance was 1 in 100");
	expect_whole("walked by chance");
	cr_expect_eq(skipped_of(SYSCALL_FUTEX).count, 1);

	/* Just under and over the chance of 11,250 in 1,000,000. */
	host.random = (11250ull << 32) / 1000000 + 1;
	wait_for(10000);
	cr_expect_eq(skipped_of(SYSCALL_FUTEX).count, 2);
	host.random = (11094ull << 32) / 1000000;
	wait_for(10000);
	cr_expect_eq(skipped_of(SYSCALL_FUTEX).count, 2);

	host.registers.orig_ax = SYSCALL_READ;
	host.random = 0xffffffff;
	wait_for(10000);
	cr_expect_eq(sent.wait.syscall, SYSCALL_READ, "another kind");
	cr_expect(sent.wait.flags & PBP_WAIT_CERTAIN);
	cr_expect_eq(skipped_of(SYSCALL_READ).count, 0);

	host.random = 0;
	host.ring_full = true;
	wait_for(10000);
	cr_expect_eq(counted(PBP_COUNTER_LOST_WAIT_NS), 10000, "for the others others will stand");
	image__free(&image);
}

/* One that lasts long is told of whether it was walked or not, and stands for itself. */
Test(switch, long_among_short)
{
	start_waiting();
	wait_for(10000);
	walk_one_every(200 * MS);
	host.random = 0xffffffff;
	wait_for(49 * MS);
	cr_assert_eq(sent.waits, 1);
	cr_expect_eq(skipped_of(SYSCALL_FUTEX).time_ns, 49 * MS);
	wait_for(50 * MS);
	cr_assert_eq(sent.waits, 2);
	cr_expect_eq(sent.sample.status, PBP_STATUS_NOT_WALKED);
	cr_expect_eq(sent.sample.stack_id, 0);
	cr_expect_eq(sent.wait.duration_ns, 50 * MS);
	cr_expect_eq(sent.wait.extra_ns, 0);
	cr_expect_eq(skipped_of(SYSCALL_FUTEX).count, 1);

	walk_one_every(200 * MS);
	leave();
	wake(&host.task);
	host.now_ns += 60 * MS;
	come_back(&host.task);
	cr_expect_eq(sent.wait.ready_ns, 60 * MS, "woken in the tick that it left in");
	walk_one_every(200 * MS);
	leave();
	host.now_ns += 60 * MS;
	wake(&host.task);
	host.now_ns += 10 * MS;
	come_back(&host.task);
	cr_expect_eq(sent.sample.status, PBP_STATUS_NOT_WALKED);
	cr_expect_eq(sent.wait.ready_ns, 11 * MS, "to a tick");

	host.random = 0;
	walk_one_every(200 * MS);
	wait_for(100 * MS);
	cr_expect_eq(sent.sample.status, PBP_STATUS_COMPLETE);
	cr_expect_eq(sent.wait.extra_ns, 0);
	cr_expect_eq(sent.wait.duration_ns, 100 * MS);
	image__free(&image);
}

/* However unlikely it was to be walked. */
Test(switch, most_that_one_stands_for)
{
	start_waiting();
	wait_for(1);
	walk_one_every(100000);
	host.random = 0;
	wait_for(40 * MS);
	cr_expect_eq(sent.waits, 2);
	cr_expect_eq(sent.wait.extra_ns, 64 * 100000);
	image__free(&image);
}

/* Walks that take too long become rarer, and when there are few again all are walked. */
Test(switch, budget_of_walks)
{
	__u64 peak = 0, walked = 0, waits = 200;

	start_waiting();
	host.step_ns = 10000; /* so long does a walk take */
	host.random = 0x40000000;
	for (__u64 i = 0; i < waits; i++) {
		uint32_t before = sent.waits;

		wait_for(5000);
		walked += sent.waits - before;
		peak = budget()->brief.walk_every_ns > peak ? budget()->brief.walk_every_ns : peak;
	}
	cr_expect_gt(peak, 20000);
	cr_expect_lt(walked, 60, "%llu of %llu waits within 10 ms", (unsigned long long)walked,
		     (unsigned long long)waits);
	for (int i = 0; i < 100; i++) {
		host.now_ns += 60 * MS;
		wait_for(5000);
	}
	cr_expect_eq(budget()->brief.walk_every_ns, 0);
	image__free(&image);
}

/* What waits for milliseconds does not suffer for what waits for microseconds. */
Test(switch, budget_of_others)
{
	uint32_t before;

	start_waiting();
	host.step_ns = 10000;
	host.random = 0xffffffff;
	for (int i = 0; i < 20; i++)
		wait_for(5000);
	cr_expect_gt(budget()->brief.walk_every_ns, 0);
	host.registers.orig_ax = SYSCALL_READ;
	wait_for(4 * MS);
	before = sent.waits;
	for (int i = 0; i < 40; i++)
		wait_for(4 * MS);
	cr_expect_eq(sent.waits, before + 40, "300 walks a second of 10 us each");
	cr_expect_eq(skipped_of(SYSCALL_READ).count, 0);
	host.step_ns = 1 * MS;
	for (int i = 0; i < 40; i++)
		wait_for(4 * MS);
	cr_expect_gt(budget()->other.walk_every_ns, 0, "there is an end to it as well");
	image__free(&image);
}
