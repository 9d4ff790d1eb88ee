/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See process.h. The pidfd is what makes sure that a reused pid is not taken for the process.
 */
#include "run/process.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/utf8.h"
#include "base/util.h"
#include "os/proc.h"
#include "py/hint.h"
#include "run/permission.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SPARE_FDS	 64 /* no process gets one of the last */
#define TAIL_READERS_MAX 64
#define TAIL_BYTES_MAX	 (64u << 20)
#define START_TRIES	 200 /* looks at an interpreter that is starting up ... */
#define START_PAUSE_NS	 10000000 /* ... and between them */
#define YOUNG_NS	 300000000 /* what is younger may not have called exec yet */
#define HALTS_TOLD	 4
#define INNER_NAMED_MAX	 3
#define WITNESS_VERSIONS (1u << 16) /* set aside for each reader */

static size_t tail_bytes(const struct process *process)
{
	size_t sum = 0;

	for (size_t i = 0; i < process->tails.len; i++)
		sum += process->tails.items[i].bytes.cap;
	return sum;
}

static void free_tails(struct process *process)
{
	for (size_t i = 0; i < process->tails.len; i++)
		tail_reader__free(&process->tails.items[i]);
	process->tails.len = 0;
	hmap__clear(&process->tail_index);
}

static void set_command(struct process *process, const char *raw)
{
	struct buf text = {0};

	snprintf(process->raw_command, sizeof(process->raw_command), "%.*s",
		 (int)utf8_fit_bytes(raw, strlen(raw), sizeof(process->raw_command) - 1), raw);
	buf__add_escaped(&text, process->raw_command, NULL);
	process->renamed++;
	if (!text.err)
		snprintf(process->command, sizeof(process->command), "%.*s",
			 (int)utf8_fit_bytes(text.data ?: "", text.len, sizeof(process->command) - 1),
			 text.data ?: "");
	buf__free(&text);
}

void process__set_command(struct process *process, char *const *argv)
{
	char raw[sizeof(process->raw_command) + 1] = ""; /* with the byte that tells where to cut */
	size_t len = 0;

	for (; *argv && len < sizeof(raw); argv++)
		len += snprintf(raw + len, sizeof(raw) - len, "%s%s", len ? " " : "", *argv);
	set_command(process, raw);
}

/* One that is dying has none any more. */
void process__update_command(struct process *process)
{
	char raw[sizeof(process->raw_command) + 1] = "";
	uint64_t id;

	if (proc__cmdline(process->pid, raw, sizeof(raw)) || !*raw)
		return;
	if (*process->command && proc__exec_id(process->pid, &id) == -ESRCH)
		return;
	set_command(process, raw);
}

void process__look_for_name(struct process *process)
{
	char raw[sizeof(process->raw_command) + 1] = "";

	if (!process->inherited || process->exited || proc__cmdline(process->pid, raw, sizeof(raw)) ||
	    !strncmp(raw, process->raw_command, sizeof(process->raw_command) - 1) || !process__lives(process))
		return;
	process__update_command(process);
}

bool process__is_named_python(const struct process *process)
{
	size_t len = strcspn(process->raw_command, " ");
	const char *slash = memrchr(process->raw_command, '/', len), *name = slash ?: process->raw_command;
	char comm[64] = "";

	if (!process->exited)
		proc__task_comm(process->pid, process->pid, comm, sizeof(comm));
	return memmem(name, process->raw_command + len - name, "python", strlen("python")) ||
	       strstr(comm, "python");
}

/* Some are left for what is opened for a moment, or by the engine. */
static int open_pidfd(struct process *process)
{
	struct rlimit limit;
	struct proc_stat stat;
	int err;

	process->pidfd = syscall(SYS_pidfd_open, process->pid, 0);
	if (process->pidfd < 0 && errno != EMFILE && errno != ENFILE)
		return -errno;
	if (process->pidfd >= 0 && !getrlimit(RLIMIT_NOFILE, &limit) &&
	    (rlim_t)process->pidfd + SPARE_FDS > limit.rlim_cur) {
		close(process->pidfd);
		process->pidfd = -1;
	}
	if (process->pidfd >= 0)
		return 0;
	err = proc__stat(process->pid, &stat);
	process->start_ticks = err ? 0 : stat.start_ticks;
	return err;
}

int process__open(struct process *process, pid_t pid, struct strtab *strings)
{
	int err;

	*process = (struct process){.pid = pid, .pidfd = -1, .error = PY_ATTACH_GONE};
	code_cache__init(&process->codes, strings);
	err = open_pidfd(process);
	if (err)
		return err;
	process->inner_pid = pidns__inner_pid(pid);
	process__update_command(process);
	process__update_cpu(process);
	process->cpu_start_ns = process->cpu_end_ns;
	return 0;
}

void process__inherit(struct process *process, const struct process *parent, uint32_t epoch)
{
	struct proc_stat stat;

	process->no_slot = parent->no_slot;
	process->epoch = epoch;
	process->target = parent->target;
	process->target.pid = process->pid;
	process->target.layout.epoch = epoch;
	process->target.start_ticks = proc__stat(process->pid, &stat) ? 0 : stat.start_ticks;
	remote__init(&process->target.remote, process->pid);
	process->attached = process->python = process->inherited = true;
	process->codes.code_type = parent->codes.code_type;
	process->container = parent->container;
	if (!*process->command)
		set_command(process, parent->raw_command);
	/* The thread that called fork is its main thread now, or will be soon. */
	remote__read(&process->target.remote,
		     process->target.runtime + process->target.offsets.runtime_main_thread,
		     &process->target.main_thread, 8);
}

static void log_target(const struct process *process)
{
	char version[24];

	log_dbg("process", "%d: Python %s%s, _PyRuntime by %s, thread state: %s", process->pid,
		py_version_format(process->target.offsets.version, version, sizeof(version)),
		process->target.offsets.free_threaded ? "t" : "", process->target.how,
		process->target.slot_how);
}

static void disable_slot(struct py_target *target)
{
	target->layout.slot_kind = PBP_SLOT_NONE;
	snprintf(target->slot_how, sizeof(target->slot_how), "list of thread states (as asked for)");
}

bool process__lives(const struct process *process)
{
	struct pollfd end = {.fd = process->pidfd, .events = POLLIN};
	struct proc_stat stat;
	int err;

	if (process->pidfd >= 0)
		return !poll(&end, 1, 0);
	err = process->start_ticks ? proc__stat(process->pid, &stat) : -ESRCH;
	if (err)
		return err != -ESRCH; /* as for want of a descriptor: that says nothing about it */
	return stat.start_ticks == process->start_ticks && stat.state != 'Z' && stat.state != 'X';
}

bool process__ended_unknown(const struct process *process)
{
	return process->exited && !process->python && !process->samples && !process->excluded &&
	       (process->error == PY_ATTACH_OK || process->error == PY_ATTACH_STARTING ||
		process->error == PY_ATTACH_GONE);
}

/* It is not there any more, as far as /proc tells; or its number is still taken. */
static enum py_attach_error explain_gone(const struct process *process, char *reason, size_t reason_size)
{
	struct proc_stat stat;
	int err = proc__stat(process->pid, &stat);

	if (!err && stat.state == 'Z')
		snprintf(reason, reason_size,
			 "it has ended and is a zombie: process %d, its parent, has not waited for it",
			 stat.ppid);
	if (err != -ESRCH || !process__lives(process))
		return PY_ATTACH_GONE;
	snprintf(reason, reason_size,
		 "permission denied: it is there, but the /proc that is mounted here (with hidepid) does not "
		 "show it to this user");
	return PY_ATTACH_DENIED;
}

/* Nothing is found in its images since it is ending, and has none. A thread of the kernel never had any. */
static bool has_lost_memory(const struct process *process)
{
	struct proc_stat stat;
	uint64_t id;

	return proc__exec_id(process->pid, &id) == -ESRCH &&
	       (proc__stat(process->pid, &stat) || !stat.is_kernel);
}

enum py_attach_error process__attach(struct process *process, char *reason, size_t reason_size)
{
	enum py_attach_error result;

	process__forget(process);
	remote_stats__add(&process->past_reads, &process->target.remote.stats);
	result = py_target__open(&process->target, process->pid, reason, reason_size);
	if (result == PY_ATTACH_DENIED)
		permission__add_target_hint(process->pid, reason, reason_size);
	if (result == PY_ATTACH_GONE)
		result = explain_gone(process, reason, reason_size);
	if (result == PY_ATTACH_NOT_PYTHON && !process->asked_for && has_lost_memory(process))
		result = PY_ATTACH_GONE;
	process->attached = result == PY_ATTACH_OK;
	process->error = result;
	process->target.layout.epoch = process->epoch;
	if (process->attached) {
		process->python = true;
		process->inherited = false;
		if (process->no_slot)
			disable_slot(&process->target);
		log_target(process);
	}
	if (result == PY_ATTACH_OK || result == PY_ATTACH_DENIED || result == PY_ATTACH_UNSUPPORTED)
		process__update_command(process);
	return result;
}

/* "sh is not a Python process; its child 124 (python3) is: use -p 124" */
static void append(char *reason, size_t reason_size, struct buf *text)
{
	size_t len = strlen(reason);

	if (!text->err && text->len)
		snprintf(reason + len, reason_size - len, "%.*s", (int)text->len, text->data);
	buf__free(text);
}

static void add_hint(const struct process *process, char *reason, size_t reason_size)
{
	struct buf hint = {0};

	py_hint__descendants(process->pid, &hint);
	append(reason, reason_size, &hint);
}

static void add_halt(const struct process *process, char *reason, size_t reason_size)
{
	struct buf text = {0};
	struct halt halt;

	halt__look(&halt, process->pid);
	if (!halt.kind)
		return;
	buf__adds(&text, "; it is ");
	halt__describe(&halt, &text);
	append(reason, reason_size, &text);
}

/*
 * It runs the same program, with the same code, as at the last look, and has had the time for an exec: one
 * that was just forked is its parent's program still, and of one that has just called exec not all is mapped.
 */
static bool is_settled(const struct process *process, uint64_t *known)
{
	uint64_t program = 0, bytes = 0, before = *known;

	proc__start_id(process->pid, &program);
	proc__code_bytes(process->pid, &bytes);
	*known = hmap_mix(program) ^ bytes;
	return *known == before && proc__age_ns(process->pid) > YOUNG_NS;
}

enum py_attach_error process__attach_patiently(struct process *process, char *reason, size_t reason_size)
{
	enum py_attach_error error = PY_ATTACH_STARTING;
	uint64_t known = 0;

	for (int i = 0; i < START_TRIES && (error == PY_ATTACH_STARTING || (error == PY_ATTACH_NOT_PYTHON &&
									    !is_settled(process, &known)));
	     i++) {
		if (i)
			nanosleep(&(struct timespec){.tv_nsec = START_PAUSE_NS}, NULL);
		error = process__attach(process, reason, reason_size);
	}
	if (error == PY_ATTACH_NOT_PYTHON)
		add_hint(process, reason, reason_size);
	if (error == PY_ATTACH_STARTING)
		add_halt(process, reason, reason_size);
	return error;
}

/* It may be a number from inside of a container. */
static void add_outer(pid_t inner, char *reason, size_t reason_size)
{
	pid_t found[INNER_NAMED_MAX];
	size_t count = pidns__find_inner(inner, found, ARRAY_SIZE(found));
	struct buf text = {0};

	for (size_t i = 0; i < count; i++) {
		char command[128];

		if (proc__cmdline(found[i], command, sizeof(command)))
			continue;
		buf__addf(&text, "%s%d (",
			  text.len ? ", " : "; inside of a container it is the number of process ", found[i]);
		buf__add_escaped(&text, command, NULL);
		buf__adds(&text, ")");
	}
	append(reason, reason_size, &text);
}

void process__explain_missing(pid_t pid, int err, char *reason, size_t reason_size)
{
	pid_t process = proc__process_of(pid);

	if (process && process != pid) {
		snprintf(reason, reason_size, "it is a thread of process %d: use -p %d", process, process);
	} else if (err == -ESRCH) {
		snprintf(reason, reason_size, "there is no such process%s",
			 pidns__is_nested()
				 ? " in this pid namespace, in which only numbers of its own are known"
				 : "");
		add_outer(pid, reason, reason_size);
	} else {
		snprintf(reason, reason_size, "pidfd_open: %s", strerror(-err));
		permission__add_hint(reason, reason_size);
	}
}

const char *process__number(const struct process *process, char text[PIDNS_TEXT])
{
	return pidns__text(text, process->pid, process->inner_pid);
}

void process__forget(struct process *process)
{
	process->epoch++;
	process->target.layout.epoch = process->epoch;
	code_cache__clear(&process->codes);
	hmap__clear(&process->lines);
	py_gils__clear(&process->gils);
	process->had_gil = false;
	free_tails(process);
}

struct tail_reader *process__tail_reader(struct process *process, py_addr tstate)
{
	const uint64_t *index = hmap__get(&process->tail_index, tstate);
	struct tail_reader reader = {0};

	if (index)
		return &process->tails.items[*index];
	/* Threads come and go; readers of those that are gone must not pile up. */
	if (process->tails.len >= TAIL_READERS_MAX || tail_bytes(process) > TAIL_BYTES_MAX)
		free_tails(process);
	/*
	 * The kernel side may still hold witnesses of an earlier reader of this thread: versions never
	 * repeat.
	 */
	reader.witnesses.version = process->witness_versions += WITNESS_VERSIONS;
	if (vec__push(&process->tails, reader))
		return NULL;
	if (hmap__set(&process->tail_index, tstate, process->tails.len - 1)) {
		process->tails.len--;
		return NULL;
	}
	return &process->tails.items[process->tails.len - 1];
}

void process__drop_tail_reader(struct process *process, py_addr tstate)
{
	const uint64_t *index = hmap__get(&process->tail_index, tstate);

	if (!index || *index + 1 != process->tails.len)
		return;
	tail_reader__free(&process->tails.items[--process->tails.len]);
	hmap__del(&process->tail_index, tstate);
}

/* "Pid:" of a pidfd is -1 then. Signal 0 would tell it, too, but nothing is to be sent to a process. */
static bool is_reaped(const struct process *process)
{
	char path[64], line[64];
	int pid = 1;
	FILE *file;

	if (process->pidfd < 0 || process__lives(process))
		return false;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", process->pidfd);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file) && sscanf(line, "Pid: %d", &pid) != 1)
		;
	if (file)
		fclose(file);
	return pid < 0;
}

bool process__update_cpu(struct process *process)
{
	uint64_t cpu_ns;

	if (proc__cpu_ns(process->pid, &cpu_ns))
		return false;
	/* Until it is reaped its pid is nobody else's. */
	if (is_reaped(process))
		return false;
	process->cpu_end_ns = max_u64(process->cpu_end_ns, cpu_ns);
	return true;
}

static void tell_halt(struct process *process)
{
	const struct process_halts *halts = &process->halts;
	struct buf text = {0};

	halt__describe(&halts->last, &text);
	buf__addc(&text, '\0');
	if (halts->now && !text.err)
		log_warn("process %d (%s) is %s: there is nothing to sample until it goes on", process->pid,
			 process->command, text.data);
	else if (!text.err)
		log_info("process %d (%s) is no longer %s", process->pid, process->command, text.data);
	buf__free(&text);
}

void process__look_for_halt(struct process *process)
{
	struct process_halts *halts = &process->halts;
	bool runs = halts->looks && process->cpu_end_ns != halts->cpu_ns, before = halts->now;
	struct halt halt = {.kind = HALT_NONE};

	if (!runs)
		halt__look(&halt, process->pid);
	halts->cpu_ns = process->cpu_end_ns;
	halts->now = halt.kind;
	halts->looks++;
	halts->halted += halts->now;
	if (halts->now)
		halts->last = halt;
	if (halts->now != before && halts->told < HALTS_TOLD) {
		halts->told++;
		tell_halt(process);
	}
}

void process__add_reads(const struct process *process, struct remote_stats *sum)
{
	remote_stats__add(sum, &process->past_reads);
	remote_stats__add(sum, &process->target.remote.stats);
}

void process__close(struct process *process)
{
	if (process->pidfd >= 0)
		close(process->pidfd);
	process->pidfd = -1;
	code_cache__free(&process->codes);
	hmap__free(&process->lines);
	py_gils__free(&process->gils);
	free_tails(process);
	vec__free(&process->tails);
	hmap__free(&process->tail_index);
}
