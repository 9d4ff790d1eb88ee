/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Time off the CPU: at a switch the thread that leaves is walked, in its own context still, and the one that
 * comes back has its wait told of, exact to the nanosecond. Interrupts are off at a switch, so that the
 * CPU's scratch memory is free.
 *
 * How long a wait will last is not known when it begins and its stack can be walked. A thread that waits for
 * microseconds, over and over, would be slowed down by that. So walks have a budget: a small one where waits are
 * brief, since of these there can be any number, and one for the others. When it is used up, a wait is walked with a
 * chance that is in proportion to how long those of its kind (thread, system call) have lasted, certain from
 * walk_every_ns on, and stands for 1 / chance times its own duration. What was not walked is counted with its exact
 * time, so that user space can adjust the sums. One that turns out to be long is told of whether it was walked or
 * not, and stands for itself; while it lasts, user space can read it.
 */
#pragma once

#define BUDGET_WINDOW_NS 50000000ull
#define BUDGET_BRIEF_NS	 (BUDGET_WINDOW_NS / 400) /* in a window */
#define BUDGET_OTHER_NS	 (BUDGET_WINDOW_NS / 200)
#define BRIEF_NS	 1000000ull
#define WALK_EVERY_LEAST 20000ull
#define WALK_EVERY_MOST	 (1ull << 28)
#define EXTRA_MOST	 64 /* times walk_every_ns: no wait stands for more */

static __always_inline bool has_bit(const __u64 *bits, __u32 id)
{
	return bits[id % PBP_ID_BITS / 64] >> id % 64 & 1;
}

static __always_inline void set_bit(__u64 *bits, __u32 id)
{
	if (!has_bit(bits, id))
		__sync_fetch_and_or(&bits[id % PBP_ID_BITS / 64], 1ull << id % 64);
}

static __always_inline void relax_budget(struct pbp_walk_budget *budget, __u64 whole_ns)
{
	if (budget->spent_ns < whole_ns / 2)
		budget->walk_every_ns -= (budget->walk_every_ns + 3) / 4;
	if (budget->walk_every_ns < WALK_EVERY_LEAST)
		budget->walk_every_ns = 0;
	budget->spent_ns = 0;
}

static __always_inline void begin_window(struct pbp_switch_budget *budget, __u64 now)
{
	if (now - budget->window_ns < BUDGET_WINDOW_NS)
		return;
	relax_budget(&budget->brief, BUDGET_BRIEF_NS);
	relax_budget(&budget->other, BUDGET_OTHER_NS);
	budget->window_ns = now;
}

/* A walk has taken that long. Beyond the budget they become rarer, at once and further with each quarter of
 * it. */
static __always_inline void spend_budget(struct pbp_walk_budget *budget, __u64 whole_ns, __u64 ns)
{
	__u64 before = budget->spent_ns / (whole_ns / 4);

	budget->spent_ns += ns;
	if (budget->spent_ns < whole_ns || budget->spent_ns / (whole_ns / 4) == before)
		return;
	if (budget->walk_every_ns < WALK_EVERY_MOST)
		budget->walk_every_ns = budget->walk_every_ns ? 2 * budget->walk_every_ns : WALK_EVERY_LEAST;
}

static __always_inline __u64 walk_every(const struct pbp_switch_budget *budget, __u64 usual)
{
	return usual < BRIEF_NS ? budget->brief.walk_every_ns : budget->other.walk_every_ns;
}

static __always_inline void spend_on(struct pbp_switch_budget *budget, __u64 usual, __u64 ns)
{
	if (usual < BRIEF_NS)
		spend_budget(&budget->brief, BUDGET_BRIEF_NS, ns);
	else
		spend_budget(&budget->other, BUDGET_OTHER_NS, ns);
}

static __always_inline __u64 usual_of(const struct pbp_off_thread *thread)
{
	return thread->usual_ns[thread->kind & (PBP_WAIT_KINDS - 1)];
}

static __always_inline bool is_walked(struct pbp_off_thread *thread, __u64 usual, __u64 walk_every_ns)
{
	thread->walk_every_ns = walk_every_ns;
	thread->expected_ns = usual;
	if (!usual || usual >= walk_every_ns) {
		thread->wait.flags |= PBP_WAIT_CERTAIN;
		return true;
	}
	return bpf_get_prandom_u32() * walk_every_ns < usual << 32;
}

static __always_inline void note_reason(struct pbp_wait *wait, struct task_struct *task, __u32 state)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	__s64 number = regs->orig_ax;

	wait->type = PBP_WAIT;
	wait->flags = !state					 ? PBP_WAIT_READY
		      : state & (__TASK_STOPPED | __TASK_TRACED) ? PBP_WAIT_STOPPED
								 : 0;
	/* Else it is the one that it was in before. */
	if (number != PBP_SYSCALL_RESTART || !pbp_syscall_restarts(wait->syscall)) {
		wait->syscall = number < 0 ? -1 : number;
		wait->arg = number < 0 ? 0 : regs->di;
	}
	wait->duration_ns = wait->ready_ns = wait->extra_ns = 0;
}

/* Whose it is stays, but it has no stack. */
static __always_inline void note_unwalked(struct pbp_sample *sample, __u64 now)
{
	sample->status = PBP_STATUS_NOT_WALKED;
	sample->flags = PBP_SAMPLE_KERNEL;
	sample->time_ns = now;
	sample->stack_id = sample->tail_frame = 0;
}

static __always_inline void walk_switched(struct pbp_off_thread *thread, const struct pbp_target *target,
					  struct task_struct *task, bool use_loop)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct scratch *scratch = bpf_map_lookup_elem(&scratch_memory, &cpu);
	struct pbp_sample *sample;
	bool urgent = false;

	if (!scratch)
		return;
	sample = &scratch->sample;
	__builtin_memset(sample, 0, sizeof(*sample));
	sample->type = PBP_SAMPLE;
	sample->flags = PBP_SAMPLE_KERNEL;
	fill_ids(sample, task);
	scratch->target = *target;
	thread->walked = take_sample(sample, &scratch->target, scratch, task, use_loop, &urgent);
	if (!thread->walked) /* the reader will not know its stack */
		note_unwalked(sample, sample->time_ns);
	if (sample->tail_frame)
		thread->wait.sample = *sample;
	else
		__builtin_memcpy(&thread->wait.sample, sample, PBP_SAMPLE_SHORT);
	thread->wait.sample.tail_frame = sample->tail_frame;
}

static __always_inline struct pbp_off_thread *off_thread_of(__u32 key)
{
	return has_bit(off_thread_bits, key) ? bpf_map_lookup_elem(&off_threads, &key) : NULL;
}

/* The first time that it leaves the CPU. */
static __always_inline struct pbp_off_thread *new_off_thread(__u32 key)
{
	struct pbp_off_thread *none;
	__u32 zero = 0;

	none = bpf_map_lookup_elem(&no_thread, &zero);
	if (!none || bpf_map_update_elem(&off_threads, &key, none, BPF_ANY)) {
		count(PBP_COUNTER_LOST_THREAD);
		return NULL;
	}
	set_bit(off_thread_bits, key);
	return bpf_map_lookup_elem(&off_threads, &key);
}

static __always_inline const struct pbp_target *target_of(struct task_struct *task)
{
	__u32 tgid = pidns_level ? local_id(BPF_CORE_READ(task, group_leader)) : task->tgid;

	return has_bit(target_bits, tgid) ? bpf_map_lookup_elem(&targets, &tgid) : NULL;
}

static __always_inline void send_wait(struct pbp_wait *wait, __u64 now)
{
	bool has_tail = wait->sample.tail_frame;
	__u64 flags = wakeup_flags(now, has_tail);
	long err = has_tail ? bpf_ringbuf_output(&events, wait, sizeof(*wait), flags)
			    : bpf_ringbuf_output(&events, wait, PBP_WAIT_SHORT, flags);

	if (err) {
		count(PBP_COUNTER_LOST_WAIT);
		/* What it stands for besides is counted (note_skipped), and others stand for it. */
		add(PBP_COUNTER_LOST_WAIT_NS, wait->duration_ns);
	}
}

static __always_inline void note_skipped(__u32 kind, __u64 duration)
{
	struct pbp_skipped *sum = bpf_map_lookup_elem(&skipped, &kind);

	if (sum) {
		sum->count++;
		sum->time_ns += duration;
	}
}

static __always_inline void learn(struct pbp_off_thread *thread, __u64 duration)
{
	__u64 *usual = &thread->usual_ns[thread->kind & (PBP_WAIT_KINDS - 1)];

	*usual = *usual ? *usual - *usual / 8 + duration / 8 : duration;
	if (!*usual)
		*usual = 1;
}

/* What a wait that was walked by chance stands for besides itself. */
static __always_inline __u64 extra_of(const struct pbp_off_thread *thread, __u64 duration)
{
	__u64 expected = thread->expected_ns ?: 1, most = EXTRA_MOST * thread->walk_every_ns;
	__u64 extra = duration * thread->walk_every_ns / expected - duration;

	return extra < most ? extra : most;
}

static __always_inline void end_wait(struct pbp_off_thread *thread, __u64 now)
{
	struct pbp_wait *wait = &thread->wait;
	__u64 duration = now - thread->out_ns;
	bool told = true;

	thread->out_ns = 0;
	wait->duration_ns = duration;
	wait->ready_ns = wait->flags & PBP_WAIT_READY ? duration
			 : thread->woken_ns	      ? now - thread->woken_ns
						      : 0;
	if (!thread->found_tgid)
		learn(thread, duration);
	if (!(wait->flags & (PBP_WAIT_CERTAIN | PBP_WAIT_FOUND)) && duration < PBP_WAIT_LONG_NS) {
		told = thread->walked;
		if (told)
			wait->extra_ns = extra_of(thread, duration);
		else
			note_skipped(thread->kind, duration);
	}
	if (!told)
		return;
	if (!thread->walked)
		note_unwalked(&wait->sample, wait->out_ns);
	send_wait(wait, now);
}

/* One that user space put in may have ended meanwhile, and its number may be another process's. */
static __always_inline bool is_of_another(const struct pbp_off_thread *thread, __u32 tgid)
{
	return thread->found_tgid && !pidns_level && thread->found_tgid != tgid;
}

/*
 * A thread that leaves the CPU has come back to it, and that was not told of: kernels do not trace every switch,
 * and a program may be kept from running. It came back as long ago as it has run since, by the scheduler's
 * account, which is up to date at a switch. One that user space put in may have been on a CPU all the time: then
 * it was not woken, and has run all the time but for interrupts.
 */
static __attribute__((noinline)) int end_unseen(struct pbp_off_thread *thread, __u32 tgid, __u64 ran_ns, __u64 now)
{
	__u64 ran = ran_ns - thread->ran_ns, back = now - ran;
	bool known = thread->ran_ns && ran < now - thread->out_ns;

	if (thread->found_tgid)
		known &= (thread->woken_ns || back - thread->out_ns > tick_ns) && !is_of_another(thread, tgid);
	if (known) {
		count(PBP_COUNTER_UNSEEN);
		end_wait(thread, back > thread->woken_ns ? back : thread->woken_ns);
	}
	thread->out_ns = 0;
	return 0;
}

static __always_inline void switch_out(bool preempted, __u64 now, bool use_loop)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 state = preempted ? 0 : task->__state;
	__u32 key = thread_key(task, task->pid), zero = 0;
	struct pbp_off_thread *thread = off_thread_of(key);
	const struct pbp_target *target = NULL;
	struct pbp_switch_budget *budget;
	__u64 usual;

	if (thread && thread->out_ns) {
		now = now ?: bpf_ktime_get_ns();
		end_unseen(thread, task->tgid, task->se.sum_exec_runtime, now);
	}
	if (state & TASK_DEAD) {
		if (thread)
			bpf_map_delete_elem(&off_threads, &key);
		return;
	}
	if (!thread) {
		target = target_of(task);
		thread = target && target->interpreters_head ? new_off_thread(key) : NULL;
	}
	if (!thread)
		return;
	budget = bpf_map_lookup_elem(&switch_budgets, &zero);
	if (!budget)
		return;
	now = now ?: bpf_ktime_get_ns();
	begin_window(budget, now);
	note_reason(&thread->wait, task, state);
	thread->kind = pbp_wait_kind(thread->wait.flags, thread->wait.syscall);
	thread->woken_ns = 0;
	thread->ran_ns = task->se.sum_exec_runtime;
	thread->walked = 0;
	thread->found_tgid = 0;
	thread->wait.out_ns = now;
	usual = usual_of(thread);
	if (is_walked(thread, usual, walk_every(budget, usual))) {
		target = target ?: target_of(task);
		if (!target) { /* ... any more */
			bpf_map_delete_elem(&off_threads, &key);
			return;
		}
		/* User space may be looking at it anew: then its time is told without a stack. */
		if (target->interpreters_head) {
			walk_switched(thread, target, task, use_loop);
			spend_on(budget, usual, bpf_ktime_get_ns() - now);
		}
	}
	if (!thread->walked) {
		thread->out_ticks = bpf_jiffies64();
		budget->unwalked_ns = now;
	}
	thread->out_ns = now;
}

/* It has become another program. */
static __always_inline void forget_off_thread(struct task_struct *task)
{
	__u32 key = thread_key(task, task->pid);

	if (has_bit(off_thread_bits, key))
		bpf_map_delete_elem(&off_threads, &key);
}

/* Its off_thread if it is off the CPU. */
static __always_inline struct pbp_off_thread *off_thread_at(struct task_struct *task)
{
	__u32 key = task->pid ? thread_key(task, task->pid) : 0;
	struct pbp_off_thread *thread = key ? off_thread_of(key) : NULL;

	if (!thread || !thread->out_ns)
		return NULL;
	return is_of_another(thread, task->tgid) ? NULL : thread;
}

/* Arguments of sched_switch: preempted, the one that leaves, the one that comes; the rest since 5.18 only. */
static __always_inline int on_switch_of(struct bpf_raw_tracepoint_args *ctx, bool use_loop)
{
	struct pbp_off_thread *next = off_thread_at((void *)ctx->args[2]);
	__u64 now = next ? bpf_ktime_get_ns() : 0;

	if (next)
		end_wait(next, now);
	switch_out(ctx->args[0], now, use_loop);
	return 0;
}

/*
 * Of a wait without a stack the time that it was ready to run is told if it lasts long: to two ticks is as
 * good then, and of the many that are short a look at the clock would be much of what they cost.
 */
static __always_inline __u64 time_of_waking(const struct pbp_off_thread *thread)
{
	__u32 ticks = (__u32)bpf_jiffies64() - thread->out_ticks;

	if (thread->walked || thread->wait.flags & (PBP_WAIT_CERTAIN | PBP_WAIT_FOUND))
		return bpf_ktime_get_ns();
	return thread->out_ns + (ticks ? (__u64)(ticks - 1) * tick_ns : 0);
}

static __always_inline int on_waking_of(struct bpf_raw_tracepoint_args *ctx)
{
	struct pbp_off_thread *thread = off_thread_at((void *)ctx->args[0]);

	if (thread && !thread->woken_ns)
		thread->woken_ns = time_of_waking(thread);
	return 0;
}
