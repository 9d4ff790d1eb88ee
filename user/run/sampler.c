/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See sampler.h. What is loaded, and how, is in sampler_load.c; timers are in run/timers.h.
 */
#include "run/sampler_parts.h"

#include "base/log.h"
#include "os/task.h"
#include "run/kernel_clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "pybpfprof.skel.h"

#define DRAIN_BYTES (2u << 20) /* handed over at once */
#define NICE	    (-10)

static int print_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	char *text; /* a verifier's log can be a megabyte, and its last lines say why */

	if (!log_enabled(LOG_DBG) || level == LIBBPF_DEBUG)
		return 0;
	if (vasprintf(&text, format, args) < 0)
		return 0;
	log_dbg("libbpf", "%s", text);
	free(text);
	return 0;
}

static int on_record(void *context, void *data, size_t size)
{
	struct sampler *sampler = context;

	sampler->record(sampler->context, data, size);
	sampler->drained++;
	sampler->drained_bytes += size;
	/* A target can fill the ring as fast as it is emptied: the reader has to look up now and then. */
	return sampler->drained_bytes < DRAIN_BYTES ? 0 : -ECANCELED;
}

/*
 * Where hundreds of processes want to run, the ring would fill before it is our turn. Only root may; others
 * go without.
 */
static void raise_priority(void)
{
	if (getpriority(PRIO_PROCESS, 0) > NICE)
		setpriority(PRIO_PROCESS, 0, NICE);
}

int sampler__open(struct sampler **out, const struct sampler_config *config, char *reason, size_t reason_size)
{
	struct sampler *sampler = calloc(1, sizeof(*sampler));
	int err = 0;

	if (!sampler)
		return -ENOMEM;
	libbpf_set_print(print_libbpf);
	task__raise_file_limit(); /* one descriptor a thread */
	if (config->follow)
		raise_priority();
	sampler->stats_fd = config->measure ? bpf_enable_stats(BPF_STATS_RUN_TIME) : -1;
	sampler->cpus = libbpf_num_possible_cpus();
	if (sampler->cpus < 1)
		sampler->cpus = 1;
	sampler->per_cpu = calloc(sampler->cpus, sizeof(*sampler->per_cpu));
	if (config->clock == SAMPLER_TICK && !config->no_ticks) {
		sampler->tick_hz = kernel_clock__hz();
		err = kernel_clock__check(config->rate_hz, reason, reason_size);
	}
	err = err ?: timers__init(&sampler->timers, 1000000000ull / config->rate_hz, sampler->cpus);
	err = err ?: sampler->per_cpu ? 0 : -ENOMEM;
	err = err ?: sampler_load(sampler, config, on_record, reason, reason_size);
	if (!err && sampler->tick_hz && config->program != SAMPLER_EMPTY)
		err = kernel_clock__wait(&sampler->skel->bss->tick_function, reason, reason_size);
	if (err) {
		sampler__close(sampler);
		return err;
	}
	*out = sampler;
	return 0;
}

static void detach(struct bpf_link **link)
{
	bpf_link__destroy(*link);
	*link = NULL;
}

void sampler__stop(struct sampler *sampler)
{
	struct pybpfprof_bpf *skel = sampler->skel;

	if (sampler->tick_hz && skel) {
		detach(&skel->links.on_kernel_tick);
		detach(&skel->links.on_kernel_tick_bounded);
		detach(&skel->links.on_kernel_tick_empty);
	}
	if (sampler->switch_program) {
		detach(&skel->links.on_switch);
		detach(&skel->links.on_switch_bounded);
		detach(&skel->links.on_waking);
	}
	timers__stop(&sampler->timers);
}

void sampler__close(struct sampler *sampler)
{
	if (!sampler)
		return;
	sampler__stop(sampler);
	timers__free(&sampler->timers);
	ring_buffer__free(sampler->ring);
	pybpfprof_bpf__destroy(sampler->skel);
	if (sampler->stats_fd >= 0)
		close(sampler->stats_fd);
	free(sampler->per_cpu);
	free(sampler);
}

static void set_bit(uint64_t *bits, pid_t id)
{
	__atomic_fetch_or(&bits[id % PBP_ID_BITS / 64], 1ull << id % 64, __ATOMIC_SEQ_CST);
}

void sampler_mark_thread(struct sampler *sampler, pid_t tid)
{
	set_bit((uint64_t *)sampler->skel->bss->off_thread_bits, tid);
}

int sampler__add_target(struct sampler *sampler, pid_t pid, const struct pbp_target *target)
{
	uint32_t key = pid;

	set_bit((uint64_t *)sampler->skel->bss->target_bits, pid);
	return bpf_map_update_elem(bpf_map__fd(sampler->skel->maps.targets), &key, target, BPF_ANY) ? -errno
												    : 0;
}

int sampler__set_target(struct sampler *sampler, pid_t pid, const struct pbp_target *target)
{
	uint32_t key = pid;

	return bpf_map_update_elem(bpf_map__fd(sampler->skel->maps.targets), &key, target, BPF_EXIST) ? -errno
												      : 0;
}

void sampler__remove_target(struct sampler *sampler, pid_t pid, uint32_t epoch)
{
	int fd = bpf_map__fd(sampler->skel->maps.targets);
	struct pbp_target target;
	uint32_t key = pid;

	if (!bpf_map_lookup_elem(fd, &key, &target) && target.epoch == epoch)
		bpf_map_delete_elem(fd, &key);
}

int sampler__set_witnesses(struct sampler *sampler, pid_t pid, uint64_t tstate,
			   const struct pbp_witnesses *witnesses)
{
	struct pbp_witness_key key = {.tstate = tstate, .tgid = pid};
	int fd = bpf_map__fd(sampler->skel->maps.witness_lists);

	return bpf_map_update_elem(fd, &key, witnesses, BPF_ANY) ? -errno : 0;
}

/* Where there are timers, they are what counts. */
static int count_ticks(struct sampler *sampler, int err)
{
	if (!err && sampler->tick_hz)
		__atomic_store_n(&sampler->skel->bss->kernel_ticks, 1, __ATOMIC_SEQ_CST);
	return err;
}

int sampler__watch_cpus(struct sampler *sampler)
{
	return count_ticks(sampler, timers__watch_cpus(&sampler->timers, &sampler->skel->bss->cpu_ticks));
}

int sampler__watch_cgroups(struct sampler *sampler, const int *fds, size_t count)
{
	return count_ticks(sampler, timers__watch_cgroups(&sampler->timers, fds, count,
							  &sampler->skel->bss->cpu_ticks));
}

int sampler__refresh_cpus(struct sampler *sampler)
{
	return timers__refresh(&sampler->timers);
}

int sampler__attach(struct sampler *sampler, pid_t pid)
{
	return count_ticks(sampler, timers__attach(&sampler->timers, pid, &sampler->skel->bss->cpu_ticks));
}

int sampler__fd(const struct sampler *sampler)
{
	return ring_buffer__epoll_fd(sampler->ring);
}

void sampler__set_idle(struct sampler *sampler, bool idle)
{
	__atomic_store_n(&sampler->skel->bss->reader_idle, idle, __ATOMIC_SEQ_CST);
}

int sampler__drain(struct sampler *sampler, sampler_record_fn record, void *context, bool *more)
{
	int err;

	sampler->record = record;
	sampler->context = context;
	sampler->drained = 0;
	sampler->drained_bytes = 0;
	err = ring_buffer__consume(sampler->ring);
	*more = err == -ECANCELED;
	return err < 0 && !*more ? err : (int)sampler->drained;
}

uint64_t sampler__counter(const struct sampler *sampler, enum pbp_counter counter)
{
	uint64_t *values = sampler->per_cpu, sum = 0;
	uint32_t key = counter;

	if (bpf_map_lookup_elem(bpf_map__fd(sampler->skel->maps.counters), &key, values))
		return 0;
	for (int cpu = 0; cpu < sampler->cpus; cpu++)
		sum += values[cpu];
	return sum;
}

void sampler__counters(const struct sampler *sampler, uint64_t out[PBP_COUNTER_COUNT])
{
	for (int counter = 0; counter < PBP_COUNTER_COUNT; counter++)
		out[counter] = sampler__counter(sampler, counter);
}

const char *sampler__kernel_notes(const struct sampler *sampler)
{
	return sampler->notes;
}

uint32_t sampler__max_frames(const struct sampler *sampler)
{
	return sampler->skel->rodata->max_frames;
}

uint32_t sampler__tick_hz(const struct sampler *sampler)
{
	return sampler->tick_hz;
}

uint64_t sampler__kernel_ns(const struct sampler *sampler, uint64_t time_ns)
{
	return time_ns - sampler->clock_ahead_ns;
}

uint64_t sampler__local_ns(const struct sampler *sampler, uint64_t time_ns)
{
	return time_ns + sampler->clock_ahead_ns;
}

static uint64_t mean_ns(const struct sampler *sampler, const struct bpf_program *program, uint64_t *runs)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);

	*runs = 0;
	if (!program || sampler->stats_fd < 0 ||
	    bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
		return 0;
	*runs = info.run_cnt;
	return info.run_cnt ? info.run_time_ns / info.run_cnt : 0;
}

uint64_t sampler__mean_tick_ns(const struct sampler *sampler, uint64_t *runs)
{
	return mean_ns(sampler, sampler->program, runs);
}

uint64_t sampler__mean_switch_ns(const struct sampler *sampler)
{
	uint64_t runs;

	return mean_ns(sampler, sampler->switch_program, &runs);
}

uint64_t sampler__missed_switches(const struct sampler *sampler)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);

	if (!sampler->switch_program ||
	    bpf_obj_get_info_by_fd(bpf_program__fd(sampler->switch_program), &info, &size))
		return 0;
	return info.recursion_misses;
}

int sampler_map_fd(const struct sampler *sampler, enum sampler_map map)
{
	const struct pybpfprof_bpf *skel = sampler->skel;

	return bpf_map__fd(map == SAMPLER_SKIPPED   ? skel->maps.skipped
			   : map == SAMPLER_BUDGETS ? skel->maps.switch_budgets
						    : skel->maps.off_threads);
}
