/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loading, ring buffer. Its timers are in a file of their own (run/timers.h).
 */
#include "run/sampler.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "base/vec.h"
#include "os/cpus.h"
#include "os/kernel_types.h"
#include "os/proc.h"
#include "run/kernel_clock.h"
#include "run/timers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "pybpfprof.skel.h"

#define DRAIN_BYTES    (2u << 20) /* handed over at once */
#define THREADS_MAX	 8192	    /* whose switches are watched: 512 bytes each ... */
#define THREADS_FOLLOWED 32768	    /* ... and where processes are followed */
#define RING_BYTES_MIN (512u << 10)
#define RING_BYTES_MAX (8u << 20)
#define RING_BYTES_FOLLOW (4u << 20)
#define NICE	       (-10)

/* What vmlinux/vmlinux.h has CO-RE relocate. */
static const char *const KERNEL_TYPES[] = {"pid", "thread_struct", "task_struct", "perf_event",
					  "mm_struct", "sched_entity", "signal_struct", "hrtimer"};

struct sampler {
	struct pybpfprof_bpf *skel;
	struct ring_buffer *ring;
	struct bpf_program *program;	    /* of ticks; NULL: there are none */
	struct bpf_program *switch_program; /* the same of switches */
	struct timers timers;
	uint32_t tick_hz; /* of the kernel's own clock, if that is used; else 0 */
	int cpus; /* that there can be */
	uint64_t clock_ahead_ns; /* what our clock has more than the kernel side's, modulo 2^64 */
	int stats_fd;	   /* while it is open the kernel times BPF programs; -1 = not measured */
	uint64_t *per_cpu; /* one value a CPU, to read counters into */
	size_t drained, drained_bytes; /* of the drain in progress */
	sampler_record_fn record;
	void *context;
	char notes[128];
};

uint32_t sampler_frame_budget(uint32_t rate_hz)
{
	uint64_t frames = 10000000ull / ((uint64_t)rate_hz * PBP_FRAME_NS);

	return max_u64(PBP_MIN_FRAMES, min_u64(PBP_MAX_FRAMES, frames));
}

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
 * Room for a quarter of a second of the longest records that are likely, at most a few megabytes. Of many processes all may
 * be new at once.
 */
static uint32_t ring_bytes(const struct sampler_config *config)
{
	uint64_t bytes = config->follow ? RING_BYTES_FOLLOW : RING_BYTES_MIN;

	while (bytes < RING_BYTES_MAX && bytes < (uint64_t)config->rate_hz * 4096)
		bytes *= 2;
	return bytes;
}

static bool kernel_has_loop(void)
{
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop, NULL) == 1;
}

static void choose_switch_program(struct sampler *sampler, enum sampler_program wanted, bool follow)
{
	struct pybpfprof_bpf *skel = sampler->skel;

	sampler->switch_program = wanted == SAMPLER_WALK      ? skel->progs.on_switch
				  : wanted == SAMPLER_BOUNDED ? skel->progs.on_switch_bounded
							      : skel->progs.on_switch_empty;
	bpf_program__set_autoload(sampler->switch_program, true);
	bpf_program__set_autoload(
		wanted == SAMPLER_EMPTY ? skel->progs.on_waking_empty : skel->progs.on_waking, true);
	bpf_map__set_max_entries(skel->maps.off_threads, follow ? THREADS_FOLLOWED : THREADS_MAX);
}

static void choose_programs(struct sampler *sampler, const struct sampler_config *config)
{
	struct pybpfprof_bpf *skel = sampler->skel;
	enum sampler_program wanted = config->program;

	if (wanted == SAMPLER_WALK && !kernel_has_loop()) {
		snprintf(sampler->notes, sizeof(sampler->notes),
			 "this kernel has no bpf_loop (5.17): walks cost a little more");
		wanted = SAMPLER_BOUNDED;
	}
	if (config->switches)
		choose_switch_program(sampler, wanted, config->follow);
	if (config->no_ticks)
		return;
	if (sampler->tick_hz)
		sampler->program = wanted == SAMPLER_WALK      ? skel->progs.on_kernel_tick
				   : wanted == SAMPLER_BOUNDED ? skel->progs.on_kernel_tick_bounded
							       : skel->progs.on_kernel_tick_empty;
	else
		sampler->program = wanted == SAMPLER_WALK      ? skel->progs.on_tick
				   : wanted == SAMPLER_BOUNDED ? skel->progs.on_tick_bounded
							       : skel->progs.on_tick_empty;
	bpf_program__set_autoload(sampler->program, true);
}

static void set_knobs(struct sampler *sampler, const struct sampler_config *config)
{
	struct pybpfprof_bpf *skel = sampler->skel;
	uint64_t seed = 0;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = (uint64_t)getpid() << 32 ^ proc__own_cpu_ns();
	skel->rodata->hash_seed = seed;
	skel->rodata->want_names = config->want_names;
	skel->rodata->want_exceptions = config->want_exceptions;
	skel->rodata->follow_forks = config->follow;
	skel->rodata->tell_execs = config->tell_execs;
	skel->rodata->tell_moves = config->tell_moves;
	bpf_program__set_autoload(skel->progs.on_move, config->tell_moves);
	skel->rodata->tick_ns = cpus__tick_ns();
	if (sampler->tick_hz)
		skel->rodata->tick_stride = kernel_clock__stride(config->rate_hz);
	if (config->follow)
		bpf_map__set_max_entries(skel->maps.targets, SAMPLER_TARGETS_MAX);
	skel->rodata->max_frames = config->max_frames ? min_u64(config->max_frames, PBP_MAX_FRAMES)
						      : sampler_frame_budget(config->rate_hz);
	bpf_map__set_max_entries(skel->maps.scratch_memory, sampler->timers.cpus_end);
	bpf_map__set_max_entries(skel->maps.events, ring_bytes(config));
}

/*
 * The kernel side learns in which pid namespace we are: it numbers tasks as we do. And we learn how its clock
 * differs from ours.
 */
static int find_namespaces(struct sampler *sampler)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);
	uint64_t before = now_ns(), theirs;
	int err = bpf_prog_test_run_opts(bpf_program__fd(sampler->skel->progs.own_pidns), &run);

	theirs = sampler->skel->bss->own_time_ns;
	if (theirs < before || theirs > now_ns())
		sampler->clock_ahead_ns = before - theirs;
	return err ? err : run.retval ? 0 : -ENXIO;
}

static bool is_old_kernel(void)
{
	struct utsname name;
	int major = 0, minor = 0;

	return !uname(&name) && sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
	       (major < 5 || (major == 5 && minor < 15));
}

static void log_program(const struct sampler *sampler, const struct bpf_program *program)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);

	if (program && log_enabled(LOG_DBG) &&
	    !bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
		log_dbg("sampler",
			"%s: %u instructions, %u looked at by the verifier, walks of at most %u frames",
			bpf_program__name(program), info.xlated_prog_len / 8, info.verified_insns,
			sampler__max_frames(sampler));
}

static int load(struct sampler *sampler, const struct sampler_config *config, char *reason,
		size_t reason_size)
{
	LIBBPF_OPTS(bpf_object_open_opts, options);
	int types_fd = kernel_types__open(KERNEL_TYPES, ARRAY_SIZE(KERNEL_TYPES)), err;
	const char *step = "open the BPF object";
	struct pybpfprof_bpf *skel;
	char types_path[64];

	if (types_fd >= 0) {
		snprintf(types_path, sizeof(types_path), "/proc/self/fd/%d", types_fd);
		options.btf_custom_path = types_path;
	} else {
		log_dbg("sampler", "libbpf reads all kernel types: %s", strerror(-types_fd));
	}
	skel = sampler->skel = pybpfprof_bpf__open_opts(&options);
	if (!skel) {
		err = -errno;
		goto out;
	}
	choose_programs(sampler, config);
	set_knobs(sampler, config);
	step = "load the BPF program";
	err = pybpfprof_bpf__load(skel);
	if (err)
		goto out;
	log_program(sampler, sampler->program);
	log_program(sampler, sampler->switch_program);
	if (sampler->program && !sampler->tick_hz)
		sampler->timers.program_fd = bpf_program__fd(sampler->program);
	step = "find the pid namespace";
	err = find_namespaces(sampler);
	if (err)
		goto out;
	step = "put a timer on a CPU";
	err = timers__try(&sampler->timers);
	if (err)
		goto out;
	step = "attach to sched_process_exec";
	err = pybpfprof_bpf__attach(skel);
	if (err)
		goto out;
	step = "map the ring buffer";
	sampler->ring = ring_buffer__new(bpf_map__fd(skel->maps.events), on_record, sampler, NULL);
	if (!sampler->ring)
		err = -errno;
out:
	if (types_fd >= 0)
		close(types_fd);
	if (err)
		snprintf(reason, reason_size, "cannot %s: %s%s", step, strerror(-err),
			 err == -EPERM || err == -EACCES ? ""
			 : is_old_kernel()		 ? "; this kernel is older than 5.15"
							 : "; -v shows the kernel's own words");
	return err;
}

/* One file descriptor a thread: raise the soft limit to the hard one. */
static void raise_fd_limit(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Where hundreds of processes want to run, the ring would fill before it is our turn. Only root may; others go without. */
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
	raise_fd_limit();
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
	err = err ?: sampler->per_cpu ? load(sampler, config, reason, reason_size) : -ENOMEM;
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

void sampler__mark_thread(struct sampler *sampler, pid_t tid)
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

int sampler__map_fd(const struct sampler *sampler, enum sampler_map map)
{
	const struct pybpfprof_bpf *skel = sampler->skel;

	return bpf_map__fd(map == SAMPLER_SKIPPED   ? skel->maps.skipped
			   : map == SAMPLER_BUDGETS ? skel->maps.switch_budgets
						    : skel->maps.off_threads);
}

int sampler__cpus(const struct sampler *sampler)
{
	return sampler->cpus;
}
