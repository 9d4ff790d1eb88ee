/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A tick of the kernel side around the walk: whose thread state it finds, which ticks are samples, what is
 * sent and when the reader is woken; and what it does about new programs and threads.
 */
#include "kernel_side.h"

/* ---- whose thread state ---- */

static void expect_found(const char *how, __u64 list_walks)
{
	__u64 before = counted(PBP_COUNTER_LIST_WALKS);

	take_tick();
	expect_whole(how);
	cr_expect_eq(counted(PBP_COUNTER_LIST_WALKS) - before, list_walks, "%s", how);
}

/* Does a tick of this event (NULL: one on the thread) become a sample? */
static bool take_tick_if(const struct perf_event *event)
{
	struct perf_event on_thread = {.cpu = -1}, copy = event ? *event : on_thread;

	tick_of(&copy, true);
	return sent.sample_size;
}

Test(tick, slots)
{
	struct pbp_target *layout = &image.target.layout;
	__u64 fsbase, tstate;

	start(14);
	push_ordinary();
	fsbase = host.task.thread.fsbase;
	tstate = image__at(&image, IMAGE_TSTATE);
	expect_found("below a fixed offset", 0);

	layout->slot_offset = -64;
	image__put(fsbase - 64, tstate, 8);
	set_target();
	expect_found("before the thread pointer", 0);

	/* {generation}, {block, free} of module 1, 2, ... */
	layout->slot_kind = PBP_SLOT_DTV;
	layout->slot_module = 2;
	layout->slot_offset = 24;
	image__put(fsbase + 8, image__at(&image, IMAGE_TLS + 2048), 8);
	image__put(image__at(&image, IMAGE_TLS + 2048 + 32), image__at(&image, IMAGE_TLS + 3000), 8);
	image__put(image__at(&image, IMAGE_TLS + 3024), tstate, 8);
	set_target();
	expect_found("in a module's block", 0);

	layout->slot_kind = PBP_SLOT_KEY2;
	layout->slot_offset = 1312;
	layout->slot_offset2 = 40;
	image__put(fsbase + 1312, image__at(&image, IMAGE_TLS + 3500), 8);
	image__put(image__at(&image, IMAGE_TLS + 3540), tstate, 8);
	set_target();
	expect_found("a key of the second level", 0);

	/* A block that is not there (yet): nothing is found by the slot, and the list tells once. */
	image__put(fsbase + 1312, 0, 8);
	expect_found("no second level", 1);
	expect_found("remembered", 0);
	layout->slot_kind = PBP_SLOT_DTV;
	image__put(image__at(&image, IMAGE_TLS + 2048 + 32), DTV_NOT_ALLOCATED, 8);
	set_target();
	expect_found("block not allocated", 0);
	image__free(&image);
}

/* A slot that holds something else, or another thread's state: what it says is not believed. */
Test(tick, wrong_slot)
{
	__u64 other, slot;

	start(15);
	push_ordinary();
	other = image__at(&image, IMAGE_TSTATE_2);
	slot = host.task.thread.fsbase + IMAGE_SLOT;
	image__make_thread(&image, other, image__at(&image, IMAGE_INTERP), 12345);
	image__put(slot, other, 8);
	expect_found("another thread's", 1);
	image__put(slot, 0xdead0000, 8);
	host.task.pid++;
	expect_found("garbage", 1);
	image__put(slot, image__at(&image, IMAGE_HEAP), 8);
	host.task.pid++;
	expect_found("memory of another kind", 1);
	image__free(&image);
}

static void link_threads(__u64 interp, __u64 first, __u64 second)
{
	image__put(interp + image.target.offsets.interp_threads_head, first, 8);
	image__put(first + image.target.offsets.thread_next, second, 8);
}

Test(tick, lists)
{
	__u64 first, second;

	for (int version = IMAGE_FIRST_TABLE; version <= IMAGE_LAST_VERSION; version++) {
		start(version);
		first = image__at(&image, IMAGE_TSTATE);
		second = image__at(&image, IMAGE_TSTATE_2);
		push_ordinary();
		image.target.layout.slot_kind = PBP_SLOT_NONE;
		set_target();
		host.task.pid++;
		expect_found("the only thread", 1);

		/* Another interpreter comes first in the list, as the newest does. */
		image__make_thread(&image, second, image__at(&image, IMAGE_INTERP_2), 12345);
		image__put(image.target.layout.interpreters_head, image__at(&image, IMAGE_INTERP_2), 8);
		image__put(image__at(&image, IMAGE_INTERP_2) + image.target.offsets.interp_next,
			   image__at(&image, IMAGE_INTERP), 8);
		link_threads(image__at(&image, IMAGE_INTERP_2), second, 0);
		host.task.pid++;
		expect_found("in the second interpreter", 1);

		/* Another thread of the interpreter comes first. */
		image__put(image.target.layout.interpreters_head, image__at(&image, IMAGE_INTERP), 8);
		link_threads(image__at(&image, IMAGE_INTERP), second, first);
		host.task.pid++;
		expect_found("the second thread", 1);

		/*
		 * The thread gets another state: what was found before no longer holds, and is looked for at
		 * once.
		 */
		image__make_thread(&image, first, image__at(&image, IMAGE_INTERP), 12345);
		image__make_thread(&image, second, image__at(&image, IMAGE_INTERP), host.task.thread.fsbase);
		image__put(second + image.target.offsets.thread_current_frame,
			   image.stack[image.depth - 1].address, 8);
		take_tick();
		cr_expect_eq(sent.sample.tstate, second);
		image__free(&image);
	}
}

/* The thread is not in the lists, which lead in circles. */
Test(tick, cyclic_lists)
{
	for (int use_loop = 0; use_loop < 2; use_loop++) {
		__u64 tstate, interp;

		start(14);
		tstate = image__at(&image, IMAGE_TSTATE);
		interp = image__at(&image, IMAGE_INTERP);
		image.target.layout.slot_kind = PBP_SLOT_NONE;
		set_target();
		host.task.thread.fsbase += 8;
		host.task.pid += use_loop;

		image__put(tstate + image.target.offsets.thread_next, tstate, 8);
		tick_again(use_loop);
		cr_expect_eq(sent.sample.status, PBP_STATUS_NO_TSTATE);
		cr_expect_leq(host.reads, PBP_MAX_THREADS + 10u, "threads: %llu", host.reads);

		image__put(tstate + image.target.offsets.thread_next, 0, 8);
		image__put(interp + image.target.offsets.interp_next, interp, 8);
		host.now_ns += RETRY_NS;
		tick_again(use_loop);
		cr_expect_eq(sent.sample.status, PBP_STATUS_NO_TSTATE);
		cr_expect_leq(host.reads, 2 * PBP_MAX_THREADS + 10u, "interpreters: %llu", host.reads);
		image__free(&image);
	}
}

/* A thread that has no state is not searched for at every tick; one that gets a state is found soon. */
Test(tick, native_thread)
{
	__u64 searches;

	start(14);
	push_ordinary();
	host.task.thread.fsbase += 8;
	searches = counted(PBP_COUNTER_LIST_WALKS);
	for (int i = 0; i < 100; i++) {
		host.now_ns += RETRY_NS / 50;
		tick_again(true);
		cr_expect_eq(sent.sample.status, PBP_STATUS_NO_TSTATE);
		cr_expect(!sent.sample.tstate && !sent.stack);
	}
	searches = counted(PBP_COUNTER_LIST_WALKS) - searches;
	cr_expect(searches >= 2 && searches <= 3, "%llu", searches);
	image__put(image__at(&image, IMAGE_TSTATE) + image.target.offsets.thread_thread_id,
		   host.task.thread.fsbase, 8);
	host.now_ns += RETRY_NS;
	take_tick();
	expect_whole("Python at last");
	image__free(&image);
}

/* What is known of a thread is not true of the next one with its id. */
Test(tick, reused_tid)
{
	start(14);
	push_ordinary();
	host.task.thread.fsbase += 8;
	tick_again(true);
	cr_expect_eq(sent.sample.status, PBP_STATUS_NO_TSTATE);
	host.task.thread.fsbase -= 8;
	image.target.layout.slot_kind = PBP_SLOT_NONE;
	set_target();
	tick_again(true);
	cr_expect_eq(sent.sample.status, PBP_STATUS_NO_TSTATE, "not yet");
	host.task.start_time++;
	expect_found("another thread", 1);
	image__free(&image);
}

Test(tick, tstate_not_resident)
{
	start(14);
	push_ordinary();
	host.fault_start = image__at(&image, IMAGE_TSTATE);
	host.fault_end = host.fault_start + 4096;
	take_tick();
	cr_expect_eq(sent.sample.status, PBP_STATUS_TSTATE_FAULT);
	host.fault_start = host.fault_end = 0;
	take_tick();
	expect_whole("resident");
	image__free(&image);
}

Test(tick, process_not_attached)
{
	start(14);
	push_ordinary();
	image.target.layout.interpreters_head = 0;
	set_target();
	take_tick();
	cr_expect_eq(sent.sample.status, PBP_STATUS_NO_TARGET);
	cr_expect_eq(host.reads, 0);
	host.task.tgid++;
	tick_again(true);
	cr_expect_eq(host.records.len, 0, "a process that nobody asked for");
	image__free(&image);
}

Test(tick, state_of_the_sample)
{
	for (int version = IMAGE_FIRST_TABLE; version <= IMAGE_LAST_VERSION; version++) {
		int minor = image_minor(version);
		const struct py_offsets *offsets = &image.target.offsets;
		__u64 tstate, interp;

		start(version);
		push_ordinary();
		tstate = image__at(&image, IMAGE_TSTATE);
		interp = image__at(&image, IMAGE_INTERP);
		take_tick();
		cr_expect_eq(sent.sample.flags, PBP_SAMPLE_ATTACHED);
		cr_expect_eq(sent.sample.generation, 0);
		image__put(tstate + offsets->thread_state, 0, 4);
		image__put(tstate + offsets->thread_current_exception, 0x1000, 8);
		image__put(interp + offsets->interp_gc_collecting, 1,
			   4); /* by another thread: test_activity.c */
		if (minor > 13)
			image__put(interp + offsets->interp_generation, 77, 8);
		take_tick();
		cr_expect_eq(sent.sample.flags, PBP_SAMPLE_RAISING, "3.%d", minor);
		cr_expect_eq(sent.sample.generation, minor > 13 ? 77 : 0);
		if (minor > 13)
			image__put(tstate + offsets->thread_executor, 0x1000, 8);
		take_tick();
		cr_expect_eq(sent.sample.flags, PBP_SAMPLE_RAISING | (minor > 13 ? PBP_SAMPLE_JIT : 0),
			     "3.%d", minor);
		user_mode = false;
		take_tick();
		cr_expect(sent.sample.flags & PBP_SAMPLE_KERNEL);
		user_mode = true;
		/* _Py_THREAD_SUSPENDED, where there are such pauses */
		image__put(tstate + offsets->thread_state, 2, 4);
		take_tick();
		cr_expect_eq(!!(sent.sample.flags & PBP_SAMPLE_SUSPENDED), version >= IMAGE_FREE_THREADED);
		cr_expect(!(sent.sample.flags & PBP_SAMPLE_ATTACHED));
		image__free(&image);
	}
}

/* ---- at the kernel's own tick ---- */

static bool expire(const char *function, bool use_loop)
{
	struct hrtimer timer = {.function = function};
	struct {
		__u64 args[4];
	} context = {{(uintptr_t)&timer}};

	host_forget_records();
	memset(&sent, 0, sizeof(sent));
	if (use_loop)
		on_kernel_tick((void *)&context);
	else
		on_kernel_tick_bounded((void *)&context);
	for (size_t i = 0; i < host.records.len; i++)
		take_record(&host.records.items[i]);
	return sent.sample_size;
}

/* Told by its name, once; then it is known by its address. */
Test(tick, kernel_tick)
{
	static const struct {
		const char *name;
		bool is_tick;
	} names[] = {{"tick_nohz_handler", true},	    {"tick_sched_timer", true},
		     {"tick_nohz_handler.llvm.77", true},   {"tick_nohz_handler2", false},
		     {"tick_nohz_handle", false},	    {"hrtimer_wakeup", false},
		     {"perf_swevent_hrtimer", false},	    {"", false},
		     {"my_tick_sched_timer", false}};

	start(14);
	push_ordinary();
	host_set_knob(&tick_stride, TICK_ONE);
	kernel_ticks = 1;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		tick_function = 0;
		cr_expect_eq(expire(names[i].name, i % 2), names[i].is_tick, "%s", names[i].name);
	}
	tick_function = 0;
	host.names = 0;
	host.registers.orig_ax = -1;
	forget_sent();
	cr_assert(expire("tick_nohz_handler", true));
	expect_whole("at the kernel's tick");
	cr_expect_not(sent.sample.flags & PBP_SAMPLE_KERNEL);
	host.registers.orig_ax = 0;
	cr_assert(expire((const char *)(uintptr_t)tick_function, true));
	cr_expect(sent.sample.flags & PBP_SAMPLE_KERNEL, "in a system call");
	cr_expect_not(expire("hrtimer_wakeup", true));
	cr_expect_eq(host.names, 1);
	kernel_ticks = 0;
	cr_expect_not(expire((const char *)(uintptr_t)tick_function, true), "before the run, and after it");
	image__free(&image);
}

/* One of so many, in the mean and never two strides apart, wherever chance puts them. */
Test(tick, kernel_ticks_thinned_out)
{
	static const struct {
		__u32 stride, random;
		int ticks, samples;
	} cases[] = {{TICK_ONE, 0, 100, 100},
		     {TICK_ONE, ~0u, 100, 100},
		     {5 * TICK_ONE / 2, 0, 100, 40},
		     {5 * TICK_ONE / 2, ~0u, 100, 40},
		     {10 * TICK_ONE, 0x80000000, 100, 10},
		     {10 * TICK_ONE, ~0u, 9, 0},
		     {10 * TICK_ONE, 0, 9, 1}};
	const char *name = "tick_sched_timer";

	start(14);
	push_ordinary();
	kernel_ticks = 1;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int samples = 0;
		__u32 zero = 0;

		host_set_knob(&tick_stride, cases[i].stride);
		*bpf_map_lookup_elem(&tick_paces, &zero) = (struct tick_pace){0};
		host.random = cases[i].random;
		for (int turn = 0; turn < cases[i].ticks; turn++)
			samples += expire(name, true);
		cr_expect_eq(samples, cases[i].samples, "case %zu: %d samples", i, samples);
	}
	host.task.tgid = 99; /* no target: its ticks are not counted */
	for (int turn = 0; turn < 100; turn++)
		cr_expect_not(expire(name, true));
	image__free(&image);
}

/* ---- what is sent ---- */

Test(tick, code_objects)
{
	start(14);
	for (int i = 0; i < IMAGE_CODES; i++)
		image__push(&image, IMAGE_PLAIN, i, i, 0);
	take_tick();
	cr_expect_eq(sent.codes, PBP_TICK_CODES);
	cr_expect_eq(host.records.items[host.records.len - 1].flags, BPF_RB_FORCE_WAKEUP,
		     "the rest is to be read soon");
	tick_again(true);
	cr_expect(!sent.codes && !sent.stack, "the stack is known");
	image__push(&image, IMAGE_PLAIN, 0, 0, 0);
	tick_again(true);
	/* Where two share a slot of the cache, which depends on addresses, one is sent once more. */
	cr_expect(sent.codes >= IMAGE_CODES - PBP_TICK_CODES &&
			  sent.codes <= IMAGE_CODES - PBP_TICK_CODES + 2,
		  "those that were too many: %zu", (size_t)sent.codes);
	recycle(7, 99);
	tick_again(true);
	cr_expect(sent.codes >= 1 && sent.codes <= 3);
	image__free(&image);
}

/* Names and tables that end where the mapping does, or are not there. */
Test(tick, code_object_at_the_end_of_memory)
{
	const struct pbp_code *record = NULL;
	__u64 end, code;

	start(15);
	image__push(&image, IMAGE_PLAIN, 0, 0, 0);
	code = image__code(&image, 0);
	end = image__chunk(&image, 3) + IMAGE_CHUNK;
	memset((void *)(uintptr_t)(end - 300), 0x5a, 300);
	image__put(code + image.target.layout.co_name, end - 100, 8);
	image__put(code + image.target.layout.co_filename, 0xdead0000, 8);
	image__put(code + image.target.layout.co_linetable, end - 300, 8);
	take_tick();
	for (size_t i = 0; i < host.records.len; i++)
		if (load_u32(host.records.items[i].bytes) == PBP_CODE)
			record = host.records.items[i].bytes;
	cr_assert(record && record->code == code && record->ident == 1000);
	cr_expect_eq(record->lens[0], image.target.layout.co_bytes);
	cr_expect_eq(record->lens[1], 100);
	cr_expect_eq(record->lens[2], 0);
	cr_expect_eq(record->lens[3], 300);
	cr_expect(record->name[99] == 0x5a && record->table[299] == 0x5a);
	cr_expect(!memcmp(record->header, (void *)(uintptr_t)code, record->lens[0]));
	image__free(&image);
}

/* A stack that found no room is sent with the next sample. */
Test(tick, ring_buffer_full)
{
	start(14);
	push_ordinary();
	host.ring_full = true;
	tick_again(true);
	cr_expect_eq(counted(PBP_COUNTER_LOST_STACK), 1);
	cr_expect_eq(counted(PBP_COUNTER_LOST_SAMPLE), 0, "counted once");
	host.ring_full = false;
	tick_again(true);
	expect_whole("room again");
	cr_expect_gt(sent.codes, 0);
	host.ring_full = true;
	tick_again(true);
	cr_expect_eq(counted(PBP_COUNTER_LOST_SAMPLE), 1);
	image__free(&image);
}

/* The reader is woken for what cannot wait, at most a hundred times a second whatever the target does. */
Test(tick, wake_ups)
{
	uint32_t woken = 0;

	start(14);
	push_ordinary();
	tick_again(true);
	tick_again(true);
	cr_expect_eq(host.records.items[0].flags, BPF_RB_NO_WAKEUP, "the reader polls");
	reader_idle = 1;
	tick_again(true);
	cr_expect_eq(host.records.items[host.records.len - 1].flags, BPF_RB_FORCE_WAKEUP, "it sleeps");
	reader_idle = 0;
	host.ring_used = host.ring_size / 2;
	host.now_ns += WAKEUP_INTERVAL_NS;
	tick_again(true);
	cr_expect_eq(host.records.items[host.records.len - 1].flags, BPF_RB_FORCE_WAKEUP,
		     "the ring fills up");
	host.ring_used = 0;
	host_set_knob(&max_frames, 2);
	for (int i = 0; i < 10000; i++) {
		host.now_ns += 100000;
		tick_again(true);
		woken += host.records.items[host.records.len - 1].flags == BPF_RB_FORCE_WAKEUP;
	}
	cr_expect(woken >= 99 && woken <= 101, "%u in a second", woken);
	image__free(&image);
}

Test(tick, witnesses)
{
	struct pbp_witness_key key = {.tgid = 4711};
	struct pbp_witnesses list = {.version = 3, .count = 4};
	const struct image_frame *witness;
	__u64 previous;

	start(14);
	for (int i = 0; i < 40; i++)
		image__push(&image, IMAGE_PLAIN, i % 5, i, 0);
	key.tstate = image__at(&image, IMAGE_TSTATE);
	witness = &image.stack[9];
	previous = image.stack[8].address;
	list.frames[0] = image.stack[2].address;
	list.frames[1] = witness->address;
	list.frames[2] = 0xdead0000;
	list.frames[3] = image__chunk(&image, 0) + IMAGE_CHUNK - 8;
	bpf_map_update_elem(&witness_lists, &key, &list, BPF_ANY);
	take_tick();
	cr_expect_eq(sent.sample_size, PBP_SAMPLE_SHORT, "a whole stack needs none");

	host_set_knob(&max_frames, 16);
	take_tick();
	cr_expect(sent.sample.witness_version == 3 && sent.sample.witness_count == 4);
	cr_expect_eq(sent.sample.witnesses[1],
		     pbp_frame_hash(witness->frame.code, witness->frame.instr, previous));
	cr_expect_neq(sent.sample.witnesses[0], sent.sample.witnesses[1]);
	cr_expect(!sent.sample.witnesses[2] && !sent.sample.witnesses[3], "not readable");

	key.tstate++;
	image__put(host.task.thread.fsbase + IMAGE_SLOT, 0, 8);
	host.task.tgid++;
	set_target();
	take_tick();
	cr_expect_eq(sent.sample.witness_version, 0, "another process's list");
	image__free(&image);
}

/* ---- processes and threads ---- */

Test(tick, exec)
{
	__u32 tgid = 4711;

	start(14);
	push_ordinary();
	host_forget_records();
	on_exec(NULL);
	cr_assert_eq(host.records.len, 1);
	cr_expect_eq(load_u32(host.records.items[0].bytes), PBP_EXEC);
	cr_expect_eq(bpf_map_lookup_elem(&targets, &tgid)->interpreters_head, 0);
	take_tick();
	cr_expect_eq(sent.sample.status, PBP_STATUS_NO_TARGET);
	host.task.tgid = 1;
	host_forget_records();
	on_exec(NULL);
	cr_expect_eq(host.records.len, 0);
	image__free(&image);
}

/* Ids are those of the profiler's pid namespace; the same numbers in a sibling of it are other processes. */
Test(tick, pid_namespace)
{
	int outer, middle, ours, sibling;
	__u32 tgid = 17;

	start(14);
	push_ordinary();
	host.task_ids = (struct pid){.level = 2, .numbers = {{4712, &outer}, {300, &middle}, {17, &ours}}};
	cr_expect_eq(own_pidns(NULL), 1);
	cr_expect_eq(pidns_level, 2);
	cr_expect_eq(own_time_ns, bpf_ktime_get_ns());
	bpf_map_update_elem(&targets, &tgid, &image.target.layout, BPF_ANY);
	take_tick();
	expect_whole("inside");
	cr_expect(sent.sample.tgid == 17 && sent.sample.tid == 17);

	host.task_ids.numbers[2].ns = &sibling;
	cr_expect(!take_tick_if(NULL), "a sibling namespace");
	host_forget_records();
	on_exec(NULL);
	cr_expect_eq(host.records.len, 0);
	host.task_ids = (struct pid){.level = 0, .numbers = {{17, &outer}}};
	cr_expect(!take_tick_if(NULL), "the machine's own namespace");
	image__free(&image);
}

/* ---- which timers count ---- */

Test(tick, timers)
{
	struct perf_event on_thread = {.cpu = -1}, on_cpu = {.cpu = 0};

	start(14);
	push_ordinary();
	cr_expect(take_tick_if(&on_thread));
	cpu_ticks = 1;
	cr_expect(!take_tick_if(&on_thread));
	cr_expect(take_tick_if(&on_cpu));
	image__free(&image);
}

Test(tick, first_new_thread_is_told)
{
	struct bpf_raw_tracepoint_args fork = {.args = {0, 0}}, thread = {.args = {0, CLONE_THREAD}};

	start(14);
	host_forget_records();
	on_new_task(&fork);
	cr_expect(!host.records.len && !birth_told);
	on_new_task(&thread);
	cr_assert_eq(host.records.len, 1);
	cr_expect_eq(load_u32(host.records.items[0].bytes), PBP_BIRTH);
	on_new_task(&thread);
	cr_expect_eq(host.records.len, 1);
	birth_told = 0;
	host.task.tgid = 1;
	on_new_task(&thread);
	cr_expect(host.records.len == 1 && !birth_told, "not a target");
	image__free(&image);
}

/* ---- processes that targets start ---- */

static struct task_struct child = {.pid = 4713, .tgid = 4713};
static struct bpf_raw_tracepoint_args fork_of_child = {.args = {(uintptr_t)&child, 0}};

static struct pbp_target *followed(__u32 tgid)
{
	return bpf_map_lookup_elem(&targets, &tgid);
}

Test(tick, a_fork_is_followed)
{
	struct pbp_process record;

	start(14);
	push_ordinary();
	host_set_knob(&follow_forks, 1);
	host_forget_records();
	on_new_task(&fork_of_child);
	cr_assert_eq(host.records.len, 1);
	cr_assert_eq(host.records.items[0].size, sizeof(record));
	memcpy(&record, host.records.items[0].bytes, sizeof(record));
	cr_expect(record.type == PBP_FORK && record.tgid == 4713 && record.parent == (__u32)host.task.tgid);
	cr_assert(followed(4713));
	cr_expect_eq(followed(4713)->interpreters_head, image.target.layout.interpreters_head);
	cr_expect_eq(followed(4713)->epoch, record.epoch);
	cr_expect(record.epoch & PBP_FORK_EPOCH);

	/* The same pid again: ids of its stacks are others. */
	on_new_task(&fork_of_child);
	cr_expect_neq(followed(4713)->epoch, record.epoch);

	/* It is sampled as what it was forked from, and so is what it forks. */
	host.task.tgid = host.task.pid = 4713;
	take_tick();
	expect_whole("the child");
	cr_expect_eq(sent.sample.tgid, 4713);
	child.tgid = child.pid = 4714;
	on_new_task(&fork_of_child);
	cr_expect(followed(4714));
	image__free(&image);
}

Test(tick, forks_that_are_not_followed)
{
	__u32 lost = PBP_COUNTER_LOST_PROCESS;

	start(14);
	host_forget_records();
	on_new_task(&fork_of_child);
	cr_expect(!host.records.len && !followed(4713), "nobody asked for it");
	host_set_knob(&follow_forks, 1);
	host.ring_full = true;
	on_new_task(&fork_of_child);
	cr_expect(!followed(4713), "the reader would not know");
	cr_expect_eq(*bpf_map_lookup_elem(&counters, &lost), 1);
	host.ring_full = false;
	host.task.tgid = 1;
	on_new_task(&fork_of_child);
	cr_expect(!host.records.len && !followed(4713), "not of a target");
	image__free(&image);
}

/* Those that are put into a cgroup, or started in one by a stranger. */
Test(tick, moves_are_told)
{
	struct task_struct other = {.pid = 99, .tgid = 98};
	struct bpf_raw_tracepoint_args move = {.args = {0, 0, (uintptr_t)&other}};
	struct bpf_raw_tracepoint_args into = {.args = {(uintptr_t)&other, CLONE_INTO_CGROUP}};
	struct pbp_process record;

	start(14);
	host_forget_records();
	on_move(&move);
	cr_assert_eq(host.records.len, 1);
	memcpy(&record, host.records.items[0].bytes, sizeof(record));
	cr_expect(record.type == PBP_MOVED && record.tgid == 98);
	host_set_knob(&follow_forks, 1);
	host.task.tgid = 1;
	on_new_task(&into);
	cr_expect_eq(host.records.len, 1, "nobody asked for it");
	host_set_knob(&tell_moves, 1);
	on_new_task(&into);
	cr_assert_eq(host.records.len, 2);
	memcpy(&record, host.records.items[1].bytes, sizeof(record));
	cr_expect(record.type == PBP_MOVED && record.tgid == 98);
	image__free(&image);
}

Test(tick, every_exec_is_told)
{
	start(14);
	host_set_knob(&tell_execs, 1);
	host_forget_records();
	host.task.tgid = 1;
	on_exec(NULL);
	cr_expect_eq(host.records.len, 1);
	cr_expect(!followed(1), "whether it is Python is for user space to say");
	image__free(&image);
}

/* ---- ends, and code that is loaded late ---- */

static struct pbp_process only_record(void)
{
	struct pbp_process record = {0};

	cr_assert_eq(host.records.len, 1, "%zu records", host.records.len);
	cr_assert_eq(host.records.items[0].size, sizeof(record));
	memcpy(&record, host.records.items[0].bytes, sizeof(record));
	return record;
}

static void host_forget_target(void)
{
	__u32 tgid = host.task.tgid;

	bpf_map_delete_elem(&targets, &tgid);
}

Test(tick, the_end_of_a_process)
{
	struct signal_struct signal = {.live.counter = 1, .sum_sched_runtime = 500};
	struct task_struct leader = {.pid = 4711, .tgid = 4711, .se.sum_exec_runtime = 20};
	struct bpf_raw_tracepoint_args freed = {.args = {(uintptr_t)&leader}};
	struct pbp_process record;

	start(14);
	host.task.signal = &signal;
	host.task.se.sum_exec_runtime = 3;
	host_forget_records();
	on_end(NULL);
	cr_expect(!host.records.len, "another thread lives");
	signal.live.counter = 0;
	on_end(NULL);
	record = only_record();
	cr_expect(record.type == PBP_EXIT && record.tgid == (__u32)host.task.tgid);
	cr_expect_eq(record.cpu_ns, 503);

	/* The main thread ended before, and waits to be reaped. */
	leader.group_leader = &leader;
	host.task.group_leader = &leader;
	host_forget_records();
	on_end(NULL);
	cr_expect_eq(only_record().cpu_ns, 523);

	/* It is reaped, and so all that it used is in one place; its target may be gone. */
	leader.signal = &signal;
	signal.sum_sched_runtime = 530;
	host_forget_records();
	host_forget_target();
	on_free(&freed);
	record = only_record();
	cr_expect(record.type == PBP_FREED && record.tgid == (__u32)host.task.tgid && record.cpu_ns == 530);
	on_free(&freed);
	cr_expect_eq(host.records.len, 1, "once");

	host_forget_records();
	on_end(NULL);
	on_free(&freed);
	cr_expect(!host.records.len, "not a target");
	image__free(&image);
}

static struct mm_struct memory = {.exec_vm = 100};

static size_t looks_after(__u64 ns)
{
	size_t count = 0;

	host.now_ns += ns;
	tick_again(true);
	for (size_t i = 0; i < host.records.len; i++)
		count += load_u32(host.records.items[i].bytes) == PBP_LOOK;
	return count;
}

Test(tick, new_code_of_what_is_no_python)
{
	size_t count = 0;
	__u32 tgid;

	start(14);
	host.task.mm = &memory;
	tgid = host.task.tgid;
	cr_expect_eq(looks_after(0), 0, "it is Python");
	image.target.layout.interpreters_head = 0;
	set_target();
	cr_expect_eq(looks_after(0), 1, "as it is at the first tick");
	cr_expect_eq(looks_after(LOOK_FIRST_NS), 0, "it is the same");
	memory.exec_vm++;
	cr_expect_eq(looks_after(0), 1);
	memory.exec_vm++;
	cr_expect_eq(looks_after(LOOK_FIRST_NS), 0, "too soon, for the second time");
	cr_expect_eq(looks_after(LOOK_FIRST_NS), 1, "it is not forgotten");

	/* One that makes code all the time, then stops. */
	for (int i = 0; i < 1000; i++) {
		memory.exec_vm++;
		count += looks_after(LOOK_FIRST_NS);
	}
	cr_expect_lt(count, 25, "%zu times in %llu s", count, 1000 * LOOK_FIRST_NS / 1000000000);
	cr_expect_gt(count, 10, "%zu times", count);
	looks_after(LOOK_MOST_NS);
	memory.exec_vm++;
	cr_expect_eq(looks_after((LOOK_QUIET + 2) * LOOK_MOST_NS), 1);
	memory.exec_vm++;
	cr_expect_eq(looks_after(LOOK_FIRST_NS), 1, "it was quiet for long");

	/* Another program, which may have as much code. */
	on_exec(NULL);
	cr_expect_eq(looks_after(0), 1);

	/* What the ring had no room for is told later. */
	memory.exec_vm++;
	host.ring_full = true;
	cr_expect_eq(looks_after(LOOK_FIRST_NS), 0);
	host.ring_full = false;
	cr_expect_eq(looks_after(0), 1);

	bpf_map_delete_elem(&targets, &tgid);
	memory.exec_vm++;
	cr_expect_eq(looks_after(LOOK_MOST_NS), 0, "nobody asked for others");
	host_set_knob(&tell_execs, 1);
	cr_expect_eq(looks_after(LOOK_MOST_NS), 1);
	host.task.tgid = 1;
	cr_expect_eq(looks_after(0), 0, "many are told of one after the other");
	cr_expect_eq(looks_after(STRANGERS_NS), 1);
	host.task.mm = NULL;
	host.task.tgid = 2;
	cr_expect_eq(looks_after(STRANGERS_NS), 0, "a kernel thread");
	image__free(&image);
}

/* Where the interpreter's count of freed code objects cannot be read, identities hold for one walk. */
Test(tick, generation_not_resident)
{
	start(14);
	push_ordinary();
	host.fault_start = image__at(&image, IMAGE_INTERP) + image.target.layout.in_gc_collecting;
	host.fault_end = host.fault_start + 4096;
	take_tick();
	recycle(3, 5000);
	take_tick();
	expect_whole("recycled");
	image__free(&image);
}

Test(tick, names_of_threads)
{
	start(14);
	take_tick();
	cr_expect_str_eq(sent.sample.comm, "");
	host_set_knob(&want_names, 1);
	take_tick();
	cr_expect_str_eq(sent.sample.comm, "worker");
	image__free(&image);
}
