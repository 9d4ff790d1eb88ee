/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See sampler.h. The maps of bpf/offcpu.bpf.h. The kernel side writes an entry whenever its thread leaves the
 * CPU or comes back, so that user space never changes one: it only makes those that are not there.
 */
#include "run/sampler_parts.h"

#include "base/util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#define KEYS_MAX 131072

int sampler__expect_thread(struct sampler *sampler, pid_t pid, pid_t tid, uint64_t since_ns, uint64_t ran_ns)
{
	struct pbp_off_thread thread = {
		.out_ns = since_ns,
		.ran_ns = ran_ns,
		.found_tgid = pid,
		.wait = {.type = PBP_WAIT,
			 .flags = PBP_WAIT_FOUND,
			 .out_ns = since_ns,
			 .syscall = -1,
			 .sample = {.type = PBP_SAMPLE,
				    .tgid = pid,
				    .tid = tid,
				    .status = PBP_STATUS_NOT_WALKED,
				    .flags = PBP_SAMPLE_KERNEL,
				    .time_ns = since_ns}},
	};
	uint32_t key = tid;

	sampler_mark_thread(sampler, tid);
	return bpf_map_update_elem(sampler_map_fd(sampler, SAMPLER_OFF_THREADS), &key, &thread, BPF_NOEXIST)
		       ? -errno
		       : 0;
}

bool sampler__is_off_since(const struct sampler *sampler, pid_t tid, uint64_t out_ns,
			   struct pbp_off_thread *out)
{
	uint32_t key = tid;

	return !bpf_map_lookup_elem(sampler_map_fd(sampler, SAMPLER_OFF_THREADS), &key, out) &&
	       out->out_ns == out_ns;
}

void sampler__forget_thread(struct sampler *sampler, pid_t tid)
{
	uint32_t key = tid;

	bpf_map_delete_elem(sampler_map_fd(sampler, SAMPLER_OFF_THREADS), &key);
}

/* Read twice, since the kernel side may be about to change it. */
static bool read_off(int fd, uint32_t key, struct pbp_off_thread *thread)
{
	struct pbp_off_thread again;

	return !bpf_map_lookup_elem(fd, &key, thread) && thread->out_ns &&
	       !bpf_map_lookup_elem(fd, &key, &again) && !memcmp(thread, &again, sizeof(again));
}

void sampler__each_off(const struct sampler *sampler, sampler_off_fn take, void *context)
{
	int fd = sampler_map_fd(sampler, SAMPLER_OFF_THREADS);
	struct pbp_off_thread thread;
	uint32_t key, *last = NULL;

	/* A key that is deleted meanwhile makes it begin again. */
	for (int i = 0; i < KEYS_MAX && !bpf_map_get_next_key(fd, last, &key); i++) {
		last = &key;
		if (read_off(fd, key, &thread))
			take(context, key, &thread);
	}
}

uint64_t sampler__unwalked_ns(const struct sampler *sampler)
{
	int fd = sampler_map_fd(sampler, SAMPLER_BUDGETS), cpus = sampler->cpus;
	struct pbp_switch_budget *budgets = calloc(cpus, sizeof(*budgets));
	uint64_t last_ns = 0;
	uint32_t zero = 0;

	if (budgets && !bpf_map_lookup_elem(fd, &zero, budgets))
		for (int cpu = 0; cpu < cpus; cpu++)
			last_ns = max_u64(last_ns, budgets[cpu].unwalked_ns);
	free(budgets);
	return last_ns;
}

void sampler__skipped(const struct sampler *sampler, struct pbp_skipped out[PBP_WAIT_KINDS])
{
	int fd = sampler_map_fd(sampler, SAMPLER_SKIPPED), cpus = sampler->cpus;
	struct pbp_skipped *values = calloc(cpus, sizeof(*values));

	for (uint32_t kind = 0; kind < PBP_WAIT_KINDS; kind++) {
		out[kind] = (struct pbp_skipped){0};
		if (!values || bpf_map_lookup_elem(fd, &kind, values))
			continue;
		for (int cpu = 0; cpu < cpus; cpu++) {
			out[kind].count += values[cpu].count;
			out[kind].time_ns += values[cpu].time_ns;
		}
	}
	free(values);
}
