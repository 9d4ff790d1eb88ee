/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A table of what was written, static since a signal handler has no argument to find it by.
 */
#include "py/marker.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#define MARKERS_MAX 4096

static struct marker_place markers[MARKERS_MAX];
static atomic_size_t marker_count; /* slots in use or free again (field 0) */

static int write_field(const struct marker_place *place, py_addr frame)
{
	struct iovec local = {&frame, sizeof(frame)}, far = {(void *)(uintptr_t)place->field, sizeof(frame)};

	return process_vm_writev(place->pid, &local, 1, &far, 1, 0) == sizeof(frame) ? 0 : -errno;
}

/* A thread state that was freed holds something else by now, which must not be written to. */
static void clear_field(const struct marker_place *place)
{
	uint64_t id = 0;
	struct iovec local = {&id, sizeof(id)}, far = {(void *)(uintptr_t)place->id_field, sizeof(id)};

	if (process_vm_readv(place->pid, &local, 1, &far, 1, 0) == sizeof(id) && id == place->id)
		write_field(place, 0);
}

static size_t find_slot(py_addr field, pid_t pid)
{
	size_t i = 0;

	while (i < marker_count && (markers[i].field != field || markers[i].pid != pid))
		i++;
	return i;
}

int marker__set(const struct marker_place *place, py_addr frame)
{
	size_t slot = find_slot(place->field, place->pid);

	/* Noted before it is written, so that no way out misses it. */
	if (slot == marker_count) {
		slot = find_slot(0, 0);
		if (slot == MARKERS_MAX)
			return -ENOSPC;
	}
	markers[slot] = *place;
	if (slot == marker_count)
		marker_count++;
	return write_field(place, frame);
}

void marker__clear(const struct marker_place *place)
{
	size_t slot = find_slot(place->field, place->pid);

	if (slot == marker_count)
		return;
	clear_field(&markers[slot]);
	markers[slot] = (struct marker_place){0};
}

void marker__clear_all(void)
{
	for (size_t i = 0; i < marker_count; i++)
		if (markers[i].field)
			clear_field(&markers[i]);
}

static void clear_and_die(int signal_number)
{
	marker__clear_all();
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

void marker__catch_crashes(void)
{
	static const int crashes[] = {SIGSEGV, SIGBUS,	SIGFPE,	 SIGILL, SIGABRT,
				      SIGQUIT, SIGALRM, SIGPIPE, SIGXCPU};

	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++) {
		struct sigaction old;

		if (!sigaction(crashes[i], NULL, &old) && old.sa_handler == SIG_DFL)
			signal(crashes[i], clear_and_die);
	}
	atexit(marker__clear_all);
}
