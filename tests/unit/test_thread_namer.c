/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What threads are called, by memory that is laid out as that of each version, and by memory that only
 * pretends to be.
 */
#include "run/thread_namer.h"

#include "heap_objects.h"
#include "py/dict.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define PTHREAD_TID 0x2d0 /* as in py/threads.c */
#define SECOND	    1000000000ull

enum { TID = 4712 };

static struct process process;
static struct strtab *strings;
static struct thread_namer namer;
static struct pbp_sample sample;
static py_addr pthread, interp;

static void open_namer(int version)
{
	uint64_t idents[2];

	begin(version);
	cr_assert_eq(strtab__new(&strings), 0);
	thread_namer__init(&namer, strings, NULL);
	process = (struct process){.pid = TID - 1, .serial = 1, .attached = true, .target = heap.target};
	pthread = heap_take(&heap, 1024);
	heap_put(pthread + PTHREAD_TID, TID, 4);
	idents[0] = 0x7f0000000000;
	idents[1] = pthread;
	interp = make_interp(make_active(idents, (const char *[]){"other", "worker-1"}, 2));
	sample = (struct pbp_sample){.tgid = TID - 1, .tid = TID, .comm = "python3", .time_ns = SECOND};
	sample.tstate = heap_take(&heap, 1024);
	heap_put(sample.tstate + heap.target.offsets.thread_interp, interp, 8);
	heap_put(sample.tstate + heap.target.offsets.thread_thread_id, pthread, 8);
}

static void close_namer(void)
{
	thread_namer__free(&namer);
	strtab__free(strings);
	end();
}

static const char *name(void)
{
	const struct named_thread *thread;

	thread_namer__begin(&namer);
	thread = thread_namer__of(&namer, &process, &sample);
	cr_assert(thread);
	return strtab__get(strings, thread->name);
}

static void rename_to(const char *text)
{
	heap_put(interp + heap.target.offsets.interp_imports_modules,
		 load_u64((void *)(uintptr_t)(make_interp(make_active((uint64_t[]){pthread}, &text, 1)) +
					      heap.target.offsets.interp_imports_modules)),
		 8);
	hmap__clear(&namer.actives);
}

Test(thread_namer, of_every_version)
{
	for (int version = IMAGE_FIRST_VERSION; version <= IMAGE_LAST_VERSION; version++) {
		open_namer(version);
		cr_expect_str_eq(name(), "worker-1", "version %d: %s", version, name());
		process.target.layout.main_interp = interp;
		sample.time_ns += SECOND;
		cr_expect_str_eq(name(), "worker-1");
		close_namer();
	}
}

/* ... is asked for now and then, and at once if the kernel's name changes. */
Test(thread_namer, that_changes)
{
	open_namer(13);
	name();
	rename_to("worker-2");
	cr_expect_str_eq(name(), "worker-1", "known");
	sample.time_ns += SECOND;
	cr_expect_str_eq(name(), "worker-2");
	rename_to("worker-3");
	strcpy(sample.comm, "worker-3");
	cr_expect_str_eq(name(), "worker-3");
	close_namer();
}

/* The kernel's, until it has one; kept to its end. */
Test(thread_namer, at_its_beginning_and_end)
{
	open_namer(12);
	rename_to("worker-1");
	heap_put(pthread + PTHREAD_TID, TID + 1, 4);
	cr_expect_str_eq(name(), "python3", "the thread state is another thread's");
	heap_put(pthread + PTHREAD_TID, TID, 4);
	sample.time_ns += SECOND / 50;
	cr_expect_str_eq(name(), "worker-1");
	heap_put(pthread + PTHREAD_TID, 0, 4);
	sample.time_ns += SECOND;
	cr_expect_str_eq(name(), "worker-1", "it has ended");
	sample.tstate = 0;
	sample.time_ns += SECOND;
	cr_expect_str_eq(name(), "worker-1", "without a thread state");
	sample.tstate = 0x1000;
	cr_expect_str_eq(name(), "python3", "another thread");
	process.exited = true;
	sample.tid++;
	cr_expect_str_eq(name(), "python3", "of a process that is over");
	close_namer();
}

/* Number and all. */
Test(thread_namer, native_number)
{
	open_namer(11);
	heap_put(pthread + PTHREAD_TID, 0, 4);
	heap_put(sample.tstate + heap.target.offsets.thread_native_thread_id, TID, 8);
	cr_expect_str_eq(name(), "worker-1", "another C library");
	close_namer();
}

Test(thread_namer, chosen)
{
	struct thread_filter filter = {0};
	uint32_t before;

	open_namer(15);
	cr_assert_eq(vec__push(&filter.names, "worker-*"), 0);
	namer.filter = &filter;
	thread_namer__begin(&namer);
	cr_expect(thread_namer__of(&namer, &process, &sample)->wanted);
	rename_to("something else");
	before = strtab__count(strings);
	sample.time_ns += SECOND;
	thread_namer__begin(&namer);
	cr_expect(!thread_namer__of(&namer, &process, &sample)->wanted);
	cr_expect_eq(strtab__count(strings), before, "names of others are not kept");
	thread_filter__free(&filter);
	close_namer();
}

/* --- hostile --- */

Test(thread_namer, long_and_odd_names)
{
	char text[10001];

	open_namer(14);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	rename_to(text);
	cr_expect_eq(strlen(name()), 200);
	rename_to("\x1b[2J\n");
	sample.time_ns += SECOND;
	cr_expect_str_eq(name(), "\x1b[2J\n", "writers escape it");
	rename_to("");
	sample.time_ns += SECOND;
	cr_expect_str_eq(name(), "\x1b[2J\n", "no name, so it is called as before");
	sample.tid++;
	heap_put(pthread + PTHREAD_TID, TID + 1, 4);
	cr_expect_str_eq(name(), "python3");
	memcpy(sample.comm, "\xff\xfe sixteen bytes", 16);
	cr_expect_str_eq(name(), "?? sixteen bytes");
	close_namer();
}

/* Without an end; those that are known stay. */
Test(thread_namer, more_names_than_are_kept)
{
	open_namer(14);
	cr_expect_str_eq(name(), "worker-1");
	namer.name_bytes = 64u << 20;
	rename_to("worker-2");
	sample.time_ns += SECOND;
	cr_expect_str_eq(name(), "");
	rename_to("worker-1");
	sample.time_ns += SECOND;
	cr_expect_str_eq(name(), "worker-1");
	close_namer();
}

static uint64_t word(py_addr at)
{
	return load_u64((void *)(uintptr_t)at);
}

/* How long one takes is up to the process: so many at once, then now and then. */
Test(thread_namer, looks_are_paid_for)
{
	uint64_t calls;

	open_namer(14);
	name();
	cr_assert(hmap__get(&namer.paid, process.serial));
	cr_expect_gt(*hmap__get(&namer.paid, process.serial), SECOND);
	cr_assert_eq(hmap__set(&namer.paid, process.serial, 13 * SECOND), 0);
	rename_to("worker-2");
	calls = process.target.remote.stats.calls;
	sample.time_ns = 2 * SECOND;
	cr_expect_str_eq(name(), "worker-1");
	cr_expect_eq(process.target.remote.stats.calls, calls);
	sample.time_ns = 4 * SECOND;
	cr_expect_str_eq(name(), "worker-2");
	close_namer();
}

/* A dict of itself, and counts beyond all memory. */
Test(thread_namer, dicts_without_end)
{
	for (int version = IMAGE_FIRST_VERSION; version <= IMAGE_LAST_VERSION; version++) {
		bool old = image_minor(version) <= 10;
		py_addr modules, keys, entry;

		open_namer(version);
		modules = word(interp + heap.target.offsets.interp_imports_modules);
		keys = word(modules + heap.target.offsets.dict_keys);
		entry = keys + (old ? PY_OLD_KEYS_BYTES : PY_KEYS_BYTES) + 8;
		/* threading, and what is in it, is sys.modules itself. */
		heap_put(entry + 16, modules, 8);
		heap_put(modules + heap.target.offsets.var_object_size, modules, 8);
		cr_expect_str_eq(name(), "python3");
		heap_put(keys + (old ? 32 : 24), 1ull << 39, 8);
		sample.time_ns += SECOND;
		cr_expect_str_eq(name(), "python3");
		heap_put(modules + heap.target.offsets.dict_keys, modules, 8);
		sample.time_ns += SECOND;
		cr_expect_str_eq(name(), "python3");
		close_namer();
	}
}
