/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loading: which programs the kernel gets, with which sizes and knobs, and where they hang.
 */
#include "run/sampler_parts.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "os/cpus.h"
#include "os/kernel_types.h"
#include "os/proc.h"
#include "run/kernel_clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "pybpfprof.skel.h"

#define THREADS_MAX	 8192  /* whose switches are watched: 512 bytes each ... */
#define THREADS_FOLLOWED 32768 /* ... and where processes are followed */

#define RING_BYTES_MIN	  (512u << 10)
#define RING_BYTES_MAX	  (8u << 20)
#define RING_BYTES_FOLLOW (4u << 20)

/* What vmlinux/vmlinux.h has CO-RE relocate. */
static const char *const KERNEL_TYPES[] = {"pid", "thread_struct", "task_struct", "perf_event",
					  "mm_struct", "sched_entity", "signal_struct", "hrtimer"};

/* 1 % of a CPU over the cost of a frame at this rate, within PBP_MIN_FRAMES..PBP_MAX_FRAMES. */
static uint32_t frame_budget(uint32_t rate_hz)
{
	uint64_t frames = 10000000ull / ((uint64_t)rate_hz * PBP_FRAME_NS);

	return max_u64(PBP_MIN_FRAMES, min_u64(PBP_MAX_FRAMES, frames));
}

/*
 * Room for a quarter of a second of the longest records that are likely, at most a few megabytes. Of many
 * processes all may be new at once.
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
						      : frame_budget(config->rate_hz);
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

int sampler_load(struct sampler *sampler, const struct sampler_config *config,
		 ring_buffer_sample_fn on_record, char *reason, size_t reason_size)
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
		snprintf(reason, reason_size, "cannot %s: %s%s", step, log_reason(err),
			 err == -EPERM || err == -EACCES || err == -EMFILE ? ""
			 : is_old_kernel()		 ? "; this kernel is older than 5.15"
							 : "; -v shows the kernel's own words");
	return err;
}
