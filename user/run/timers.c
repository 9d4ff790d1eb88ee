/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See timers.h.
 */
#include "run/timers.h"

#include "base/log.h"
#include "base/util.h"
#include "os/cgroup.h"
#include "os/cpus.h"
#include "os/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CPUS_MAX 65536

int timers__init(struct timers *timers, uint64_t period_ns, size_t cpus)
{
	*timers = (struct timers){.program_fd = -1, .period_ns = period_ns};
	timers->cpus_end = max_u64(min_u64(cpus__end(), CPUS_MAX), cpus);
	timers->watched = calloc(2 * timers->cpus_end, sizeof(*timers->watched));
	timers->online_now = timers->watched + timers->cpus_end;
	return timers->watched ? 0 : -ENOMEM;
}

void timers__free(struct timers *timers)
{
	timers__stop(timers);
	vec__free(&timers->events);
	free(timers->watched);
}

/* A timer on a thread (cpu -1), or on a CPU: for all (tid -1), or with the flag for a cgroup, by its
 * descriptor. */
static int open_event(struct timers *timers, int tid, int cpu, unsigned long flags)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = timers->period_ns,
		.exclude_idle = 1,
		.disabled = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC | flags);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, timers->program_fd) ||
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		err = -errno;
	err = err ?: vec__push(&timers->events, fd);
	if (err)
		close(fd);
	return err;
}

/* Close the timers from `first` to before `end`. */
static void close_events(struct timers *timers, size_t first, size_t end)
{
	size_t behind = timers->events.len - end;

	for (size_t i = first; i < end; i++)
		close(timers->events.items[i]);
	if (behind)
		memmove(timers->events.items + first, timers->events.items + end,
			behind * sizeof(*timers->events.items));
	timers->events.len = first + behind;
}

/* -ENOENT for a timer may mean that, or that its hierarchy is not that of perf_event. */
static bool is_removed(int cgroup)
{
	return faccessat(cgroup, "cgroup.procs", F_OK, 0) && errno == ENOENT;
}

/* Where threads of one process may be in several cgroups, those in one are not all. */
static int may_watch(int cgroup)
{
	return cgroup__is_threaded(cgroup) ? -EOPNOTSUPP : 0;
}

/* One for each cgroup, so that nobody else is interrupted. All of them or none. */
static int open_cpu_event(struct timers *timers, int cpu)
{
	size_t before = timers->events.len;
	int err = 0;

	if (!timers->cgroup_count)
		return open_event(timers, -1, cpu, 0);
	for (size_t i = 0; i < timers->cgroup_count && !err; i++) {
		err = may_watch(timers->cgroups[i])
			      ?: open_event(timers, timers->cgroups[i], cpu, PERF_FLAG_PID_CGROUP);
		if (err == -ENOENT && is_removed(timers->cgroups[i]))
			err = 0;
	}
	if (err)
		close_events(timers, before, timers->events.len);
	return err;
}

/* Timers on the CPUs that are online and have none. 0 or -errno. */
static int open_cpu_events(struct timers *timers)
{
	bool *online = timers->online_now, *watched = timers->watched;
	int err = cpus__online(online, timers->cpus_end);

	for (size_t cpu = 0; cpu < timers->cpus_end && !err; cpu++) {
		if (online[cpu] && !watched[cpu])
			err = open_cpu_event(timers, cpu);
		if (err == -ENODEV) /* it has just gone */
			err = online[cpu] = 0;
		watched[cpu] = online[cpu] && !err;
	}
	return err;
}

void timers__stop(struct timers *timers)
{
	close_events(timers, 0, timers->events.len);
}

int timers__try(struct timers *timers)
{
	/* On a thread it would take patches of the kernel's code. */
	int err = timers->program_fd < 0 ? 0 : open_event(timers, -1, sched_getcpu(), 0);

	timers__stop(timers);
	return err;
}

int timers__watch_cpus(struct timers *timers, uint32_t *cpu_ticks)
{
	size_t on_threads = timers->events.len;
	int err;

	if (timers->on_cpus || timers->program_fd < 0)
		return 0;
	memset(timers->watched, 0, timers->cpus_end);
	err = open_cpu_events(timers);
	if (err) {
		close_events(timers, on_threads, timers->events.len);
		return err;
	}
	timers->on_cpus = true;
	__atomic_store_n(cpu_ticks, 1, __ATOMIC_SEQ_CST);
	close_events(timers, 0, on_threads);
	return 0;
}

int timers__watch_cgroups(struct timers *timers, const int *fds, size_t count, uint32_t *cpu_ticks)
{
	int err;

	timers__stop(timers);
	timers->on_cpus = false;
	timers->cgroups = fds;
	timers->cgroup_count = count;
	err = timers__watch_cpus(timers, cpu_ticks);
	if (!err || !count)
		return err;
	/* Their hierarchy is not that of perf_event, or they are too many. */
	log_dbg("timers", "for whoever runs, since there can be none for the cgroups: %s", strerror(-err));
	timers->cgroup_count = 0;
	return timers__watch_cpus(timers, cpu_ticks);
}

int timers__refresh(struct timers *timers)
{
	return timers->on_cpus ? open_cpu_events(timers) : 0;
}

/* Does the process have one thread, and which? 0 or -errno; *tid is 0 if there are several. */
static int only_thread(pid_t pid, pid_t *tid)
{
	struct proc_tasks tasks = {0};
	int err = proc__tasks(pid, &tasks);

	*tid = !err && tasks.tids.len == 1 ? tasks.tids.items[0] : 0;
	vec__free(&tasks.tids);
	return err;
}

int timers__attach(struct timers *timers, pid_t pid, uint32_t *cpu_ticks)
{
	pid_t tid, again;
	int err = only_thread(pid, &tid);

	if (timers->program_fd < 0)
		return err;
	if (err || !tid || timers->on_cpus)
		return err ?: timers__watch_cpus(timers, cpu_ticks);
	/* Looked at again, since a thread that it starts from now on is told by the kernel side. */
	err = open_event(timers, tid, -1, 0) ?: only_thread(pid, &again);
	return err || again == tid ? err : timers__watch_cpus(timers, cpu_ticks);
}
