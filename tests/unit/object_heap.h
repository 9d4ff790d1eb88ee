/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Python objects made in the test's own memory, which is the target's at the same time.
 */
#pragma once

#include "base/util.h"
#include "py/object.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEAP_BYTES (256 * 1024)
#define HEAP_GUARD 4096 /* behind it, without access: else there may be objects of others */

struct object_heap {
	struct py_target target;
	struct py_objects objects;
	uint8_t *memory;
	size_t used;
};

/* offsets: of the version. */
static inline void object_heap__init(struct object_heap *heap, const struct py_offsets *offsets)
{
	*heap = (struct object_heap){.target = {.pid = getpid(), .offsets = *offsets}};
	heap->memory = mmap(NULL, HEAP_BYTES + HEAP_GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(heap->memory + HEAP_BYTES, HEAP_GUARD, PROT_NONE);
	remote__init(&heap->target.remote, heap->target.pid);
	py_objects__init(&heap->objects, &heap->target);
}

static inline void object_heap__free(struct object_heap *heap)
{
	py_objects__free(&heap->objects);
	munmap(heap->memory, HEAP_BYTES + HEAP_GUARD);
}

/* Zeroed, aligned. Before the address there is room for what lies before an object. */
static inline py_addr heap_take(struct object_heap *heap, size_t bytes)
{
	heap->used += 64;
	if (heap->used + bytes > HEAP_BYTES)
		abort();
	heap->used = (heap->used + bytes + 15) & ~(size_t)15;
	return (uintptr_t)heap->memory + ((heap->used - bytes) & ~(size_t)15);
}

static inline void heap_put(py_addr at, uint64_t value, size_t bytes)
{
	memcpy((void *)(uintptr_t)at, &value, bytes);
}

static inline py_addr heap_bytes(struct object_heap *heap, const void *bytes, size_t len)
{
	py_addr at = heap_take(heap, len + 1);

	memcpy((void *)(uintptr_t)at, bytes, len);
	return at;
}

static inline py_addr heap_type(struct object_heap *heap, const char *name, uint64_t flags)
{
	const struct py_offsets *offsets = &heap->target.offsets;
	py_addr type = heap_take(heap, 1024);

	heap_put(type + offsets->type_name, heap_bytes(heap, name, strlen(name)), 8);
	heap_put(type + offsets->type_flags, flags, 8);
	return type;
}

static inline py_addr heap_object(struct object_heap *heap, py_addr type, size_t bytes)
{
	py_addr object = heap_take(heap, bytes);

	heap_put(object + heap->target.offsets.object_type, type, 8);
	return object;
}
