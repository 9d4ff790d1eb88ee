/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See thread_namer.h. A sample has the address of its thread state, which may belong to another thread by the
 * time that it is looked at: a name counts only if the C library, or the thread state itself, has the number
 * of the sample's thread.
 */
#include "run/thread_namer.h"

#include "base/utf8.h"
#include "base/util.h"
#include "os/pidns.h"
#include "os/proc.h"
#include "py/thread_names.h"
#include "py/threads.h"

#include <errno.h>
#include <string.h>

#define THREADS_MAX 16384 /* that are kept */
#define ACTIVES_MAX 4096
/* Between two looks at a thread, and the more threads the longer: a look takes some 20 us. */
#define LOOK_NS	       100000000ull
#define LOOK_NS_THREAD 1000000ull
#define LOOK_NS_NEW    10000000ull /* where Python has none (yet): its first lines give it one */
/* Looks into a process take one part in so many of a CPU; what is due to them in so long may come at once. */
#define LOOK_SHARE     20
#define LOOK_BURST_NS  10000000000ull
#define NAME_BYTES_MAX (64u << 20) /* of all names; then new ones are not kept */

void thread_namer__init(struct thread_namer *namer, struct strtab *strings,
			const struct thread_filter *filter)
{
	*namer = (struct thread_namer){.strings = strings,
				       .filter = filter && thread_filter__is_set(filter) ? filter : NULL};
	py_objects__init(&namer->objects, NULL); /* see look_into */
}

void thread_namer__begin(struct thread_namer *namer)
{
	namer->serial = UINT32_MAX;
}

void thread_namer__forget(struct thread_namer *namer)
{
	namer->threads.len = 0;
	hmap__clear(&namer->index);
	namer->name_bytes = 0;
}

void thread_namer__free(struct thread_namer *namer)
{
	py_objects__free(&namer->objects);
	vec__free(&namer->threads);
	hmap__free(&namer->index);
	hmap__free(&namer->actives);
	hmap__free(&namer->paid);
}

static uint64_t key_of(const struct process *process, uint64_t value)
{
	return hmap_mix(hmap_mix(((uint64_t)process->serial << 32 | process->epoch) ^ hmap_seed()) ^ value);
}

/* --- Python's name --- */

static void look_into(struct thread_namer *namer, struct process *process)
{
	namer->objects.target = &process->target;
	if (namer->serial == process->serial && namer->epoch == process->epoch)
		return;
	py_objects__forget(&namer->objects);
	namer->serial = process->serial;
	namer->epoch = process->epoch;
}

/* {interpreter, pthread_self()} of the thread state, if it is that of the sample's thread. */
static bool read_state(struct process *process, const struct pbp_sample *sample, py_addr *interp,
		       uint64_t *ident)
{
	const struct py_offsets *offsets = &process->target.offsets;
	pid_t tid = sample->tid;
	uint64_t native = 0, inner = process->inner_pid ? pidns__inner_tid(process->pid, tid) : tid;
	struct remote_segment segments[] = {
		{.addr = sample->tstate + offsets->thread_interp, .dest = interp, .len = 8},
		{.addr = sample->tstate + offsets->thread_thread_id, .dest = ident, .len = 8},
		{.addr = sample->tstate + offsets->thread_native_thread_id, .dest = &native, .len = 8},
	};
	size_t count = ARRAY_SIZE(segments) - (offsets->thread_native_thread_id == PY_ABSENT);

	if (!sample->tstate || !inner || remote__read_batch(&process->target.remote, segments, count))
		return false;
	for (size_t i = 0; i < count; i++)
		if (segments[i].got < segments[i].len)
			return false;
	return *ident && (py_threads__native_id(&process->target.remote, *ident) == inner || native == inner);
}

static int read_name_in(struct thread_namer *namer, struct process *process, py_addr interp, uint64_t ident,
			struct buf *out)
{
	uint64_t key = key_of(process, interp);
	const uint64_t *known = hmap__get(&namer->actives, key);
	py_addr active = known ? *known : 0;
	int err = active ? py_thread_names__one(&namer->objects, active, ident, out) : -EINVAL;

	/* Anew, unless it was there and has no such thread. */
	if (!err || err == -ENOENT)
		return err;
	err = py_thread_names__find(&namer->objects, interp, &active);
	if (err)
		return err;
	if (namer->actives.len >= ACTIVES_MAX)
		hmap__clear(&namer->actives);
	hmap__set(&namer->actives, key, active);
	return py_thread_names__one(&namer->objects, active, ident, out);
}

/* The main interpreter's name for it goes before that of another one which it has entered. */
static bool read_name_of(struct thread_namer *namer, struct process *process, const struct pbp_sample *sample,
			 struct buf *out)
{
	py_addr interp = 0, main_interp = process->target.layout.main_interp;
	uint64_t ident = 0;

	if (!read_state(process, sample, &interp, &ident))
		return false;
	look_into(namer, process);
	if (main_interp && !read_name_in(namer, process, main_interp, ident, out) && out->len)
		return true;
	return interp != main_interp && !read_name_in(namer, process, interp, ident, out) && out->len;
}

/* How long that takes is up to the process. */
static bool read_name(struct thread_namer *namer, struct process *process, const struct pbp_sample *sample,
		      struct buf *out)
{
	const uint64_t *known = hmap__get(&namer->paid, process->serial);
	uint64_t paid_ns = known ? max_u64(*known, sample->time_ns) : sample->time_ns;
	uint64_t began_ns = proc__own_cpu_ns();
	bool found;

	if (!process->attached || process->exited || paid_ns > sample->time_ns + LOOK_BURST_NS)
		return false;
	found = read_name_of(namer, process, sample, out);
	paid_ns += (proc__own_cpu_ns() - began_ns) * LOOK_SHARE;
	if (namer->paid.len >= ACTIVES_MAX)
		hmap__clear(&namer->paid);
	hmap__set(&namer->paid, process->serial, paid_ns);
	return found;
}

/* --- threads --- */

/* 0, if there is no room. */
static uint32_t keep_name(struct thread_namer *namer, const char *name)
{
	uint32_t count = strtab__count(namer->strings), id;
	size_t len = strlen(name);

	if (namer->name_bytes < NAME_BYTES_MAX)
		id = strtab__add(namer->strings, name, len);
	else
		id = strtab__find(namer->strings, name, len);
	namer->name_bytes += strtab__count(namer->strings) > count ? len + 1 : 0;
	return id == UINT32_MAX ? 0 : id;
}

static void set_name(struct thread_namer *namer, const struct process *process, struct named_thread *thread,
		     const char *name)
{
	thread->wanted = !namer->filter ||
			 thread_filter__wants(namer->filter, name, thread->tid, thread->tid == process->pid);
	thread->name = thread->wanted || namer->name_all ? keep_name(namer, name) : 0;
}

/*
 * As when it was looked up, so far as samples tell: a wait that was not walked says little. One that has lost
 * its thread state is about to end.
 */
static bool seems_same(const struct named_thread *thread, const struct pbp_sample *sample)
{
	return thread->look_ns && (!sample->tstate || thread->tstate == sample->tstate) &&
	       (!*sample->comm || !memcmp(thread->comm, sample->comm, sizeof(thread->comm)));
}

static void kernel_name(const struct process *process, const struct pbp_sample *sample, char *name,
			size_t size)
{
	memcpy(name, sample->comm, sizeof(sample->comm));
	name[sizeof(sample->comm)] = '\0';
	if (!*name && proc__task_comm(process->pid, sample->tid, name, size))
		*name = '\0';
	utf8_repair(name);
}

static void look(struct thread_namer *namer, struct process *process, const struct pbp_sample *sample,
		 struct named_thread *thread)
{
	struct buf text = {0};
	char comm[64];
	bool found = read_name(namer, process, sample, &text);
	/* One that is ending, or has ended since, is called as before. */
	bool keeps = !found && thread->is_python && seems_same(thread, sample);

	buf__addc(&text, '\0');
	found &= !text.err;
	kernel_name(process, sample, comm, sizeof(comm));
	if (!keeps)
		set_name(namer, process, thread, found ? text.data : comm);
	thread->is_python = found || keeps;
	thread->look_ns = sample->time_ns + max_u64(LOOK_NS, namer->threads.len * LOOK_NS_THREAD);
	if (!thread->is_python && sample->tstate)
		thread->look_ns = sample->time_ns + LOOK_NS_NEW;
	if (sample->tstate || !seems_same(thread, sample))
		thread->tstate = sample->tstate;
	if (*sample->comm || !keeps)
		memcpy(thread->comm, sample->comm, sizeof(thread->comm));
	buf__free(&text);
}

const struct named_thread *thread_namer__of(struct thread_namer *namer, struct process *process,
					    const struct pbp_sample *sample)
{
	struct named_thread fresh = {.serial = process->serial, .epoch = process->epoch, .tid = sample->tid};
	uint64_t key = key_of(process, sample->tid);
	const uint64_t *known = hmap__get(&namer->index, key);
	struct named_thread *thread = known ? &namer->threads.items[*known] : NULL;

	if (thread &&
	    (thread->serial != fresh.serial || thread->epoch != fresh.epoch || thread->tid != fresh.tid))
		thread = NULL;
	if (!thread) {
		if (namer->threads.len >= THREADS_MAX) {
			namer->threads.len = 0;
			hmap__clear(&namer->index);
		}
		if (vec__push(&namer->threads, fresh))
			return NULL;
		hmap__set(&namer->index, key, namer->threads.len - 1);
		thread = &namer->threads.items[namer->threads.len - 1];
	}
	if (sample->time_ns >= thread->look_ns || !seems_same(thread, sample))
		look(namer, process, sample, thread);
	return thread;
}
