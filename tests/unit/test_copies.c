/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Copies of the bytecode that belong to threads, in the test's own memory: which of them an instruction lies in, arrays
 * that are long, empty or garbage, and lines of frames that run in a copy.
 */
#include "image.h"
#include "py/code.h"
#include "py/copies.h"

#include <errno.h>

enum { MANY = 200, UNITS = 16, BYTES = 2 * UNITS };

static struct image image;
static struct py_copies copies;
static uint64_t array[1 + MANY];
static uint8_t bytecode[MANY][64];

static void start(void)
{
	image__init(&image, IMAGE_FREE_THREADED + 1); /* 3.14t */
}

static void stop(void)
{
	py_copies__free(&copies);
	image__free(&image);
}

TestSuite(copies, .init = start, .fini = stop);

static uint64_t address(const void *p)
{
	return (uintptr_t)p;
}

static int read_copies(void)
{
	return py_copies__read(&copies, &image.target.remote, &image.target.offsets, image__code(&image, 5));
}

static void list_copies(uint64_t at, uint64_t size)
{
	image__put(image__code(&image, 5) + image.target.offsets.code_co_tlbc, at, 8);
	array[0] = size;
	for (uint32_t i = 0; i < MANY; i++)
		array[1 + i] = i % 3 == 1 ? 0 : address(bytecode[i]);
}

Test(copies, of_as_many_threads_as_there_are)
{
	for (uint32_t size = 0; size <= MANY; size++) {
		list_copies(address(array), size);
		cr_assert_eq(read_copies(), 0);
		cr_assert_eq(copies.starts.len, size - (size + 1) / 3, "%u", size);
		for (uint32_t i = 0; i < MANY; i++)
			cr_assert_eq(py_copies__lasti(&copies, BYTES, address(bytecode[i]) + 6),
				     i < size && i % 3 != 1 ? 6 : -1, "%u of %u", i, size);
	}
}

Test(copies, borders)
{
	list_copies(address(array), 1);
	cr_assert_eq(read_copies(), 0);
	cr_expect_eq(py_copies__lasti(&copies, BYTES, address(bytecode[0])), 0);
	cr_expect_eq(py_copies__lasti(&copies, BYTES, address(bytecode[0]) + BYTES - 2), BYTES - 2);
	cr_expect_eq(py_copies__lasti(&copies, BYTES, address(bytecode[0]) + BYTES), -1);
	cr_expect_eq(py_copies__lasti(&copies, BYTES, address(bytecode[0]) - 2), -1);
	cr_expect_eq(py_copies__lasti(&copies, 0, address(bytecode[0])), -1);
	cr_expect_eq(py_copies__lasti(&copies, BYTES, UINT64_MAX), -1);
}

Test(copies, garbage)
{
	static const uint64_t addresses[] = {8, 1ull << 47, 1ull << 63, UINT64_MAX - 7};

	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
		list_copies(addresses[i], 3);
		cr_expect_eq(read_copies(), -EFAULT);
		cr_expect_eq(copies.starts.len, 0);
	}
	list_copies(address(array), UINT64_MAX);
	cr_expect_eq(read_copies(), -EFAULT, "an absurd size");
	list_copies(image__chunk(&image, 0) + IMAGE_CHUNK - 16, 3);
	image__put(image__chunk(&image, 0) + IMAGE_CHUNK - 16, 3, 8);
	cr_expect_eq(read_copies(), -EFAULT, "the end of what is mapped");
	list_copies(0, 3);
	cr_expect_eq(read_copies(), 0, "none yet");
	cr_expect_eq(copies.starts.len, 0);
}

/* From what was known there is something left when the process is gone, but not when the array has gone. */
Test(copies, of_a_process_that_has_ended)
{
	list_copies(address(array), 3);
	cr_assert_eq(read_copies(), 0);
	cr_assert_eq(copies.starts.len, 2);
	cr_expect_eq(py_copies__read(&copies, &image.target.remote, &image.target.offsets, 16), -EFAULT);
	cr_expect_eq(copies.starts.len, 2);
}

Test(copies, generation)
{
	const struct py_offsets *offsets = &image.target.offsets;
	uint64_t interp = image__at(&image, IMAGE_INTERP), second = image__at(&image, IMAGE_INTERP_2) + 65536;
	uint64_t before = py_copies__generation(&image.target.remote, offsets, image.target.runtime), after;

	cr_expect_eq(py_copies__generation(&image.target.remote, offsets, image.target.runtime), before);
	image__put(interp + offsets->interp_tlbc_generation, 7, 4);
	after = py_copies__generation(&image.target.remote, offsets, image.target.runtime);
	cr_expect_neq(after, before);
	image__put(interp + offsets->interp_next, second, 8);
	before = py_copies__generation(&image.target.remote, offsets, image.target.runtime);
	cr_expect_neq(after, before, "another interpreter");
	image__put(second + offsets->interp_tlbc_generation, 1, 4);
	cr_expect_neq(py_copies__generation(&image.target.remote, offsets, image.target.runtime), before);
	image__put(second + offsets->interp_next, interp, 8);
	py_copies__generation(&image.target.remote, offsets, image.target.runtime); /* a circle ends */
}

/* ---- lines ---- */

static struct strtab *strings;
static struct code_cache cache;
static uint8_t line_table[128];

/* A line a unit, from 10 on. */
static void load_code(void)
{
	const struct py_offsets *offsets = &image.target.offsets;
	uint64_t code = image__code(&image, 5), type = image.target.code_type, table = address(line_table);
	struct pbp_frame frame = {.code = code, .ident = 1005};

	image__put(type + offsets->type_name, address("code"), 8);
	image__put(code + offsets->code_firstlineno, 10, 4);
	image__put(code + offsets->var_object_size, UNITS, 8);
	image__put(code + offsets->code_linetable, table, 8);
	image__put(table + offsets->bytes_size, 2 * UNITS, 8);
	for (int i = 0; i < UNITS; i++)
		image__put(table + offsets->bytes_data + 2 * i, (0x80 | 13 << 3) | (i ? 2 : 0) << 8, 2);
	cr_assert_eq(strtab__new(&strings), 0);
	code_cache__init(&cache, strings);
	cr_assert_eq(code_cache__load(&cache, &image.target, &frame, 1, true), 0);
	cr_assert_eq(cache.codes.items[0].state, PY_CODE_OK);
	cr_assert_eq(cache.codes.items[0].code_bytes, BYTES);
}

static uint32_t line_at(uint64_t instr, bool readable)
{
	const struct py_offsets *offsets = &image.target.offsets;

	return py_code__line(&cache.codes.items[0], offsets,
			     code_cache__lasti(&cache, &image.target, 0, instr, readable));
}

static uint64_t calls(void)
{
	return image.target.remote.stats.calls;
}

static void stop_lines(void)
{
	code_cache__free(&cache);
	strtab__free(strings);
	stop();
}

Test(copies, lines, .fini = stop_lines)
{
	uint64_t own, before;

	list_copies(address(array), 3);
	load_code();
	own = image__code(&image, 5) + image.target.offsets.code_adaptive;
	before = calls();
	cr_expect_eq(line_at(own + 6, true), 13, "the code object's own bytecode");
	cr_expect_eq(calls(), before, "which needs no look at the copies");
	for (int i = 0; i < UNITS; i++)
		cr_expect_eq(line_at(address(bytecode[2]) + 2 * i, true), 10u + i);
	cr_expect_leq(calls() - before, 6, "read once: %lu", calls() - before);
	cr_expect_eq(line_at(address(bytecode[3]), true), 0, "no copy: somewhere in the function");
	cr_expect_eq(line_at(UINT64_MAX, true), 0);
}

/* A thread calls the function for the first time; threads end, and their copies are freed. */
Test(copies, that_come_and_go, .fini = stop_lines)
{
	const struct py_offsets *offsets = &image.target.offsets;
	uint64_t generation = image__at(&image, IMAGE_INTERP) + offsets->interp_tlbc_generation, before;

	list_copies(address(array), 3);
	load_code();
	cr_assert_eq(line_at(address(bytecode[2]) + 4, true), 12);
	array[0] = 4;
	cr_expect_eq(line_at(address(bytecode[3]) + 4, true), 0, "looked at already");
	before = calls();
	line_at(address(bytecode[3]) + 4, true);
	cr_expect_eq(calls(), before, "garbage costs nothing more");
	code_cache__begin_batch(&cache, &image.target, true);
	cr_expect_eq(line_at(address(bytecode[3]) + 4, true), 12, "looked at again");

	array[3] = 0;
	code_cache__begin_batch(&cache, &image.target, true);
	cr_expect_eq(line_at(address(bytecode[2]) + 4, true), 12, "as long as no thread has ended");
	image__put(generation, 1, 4);
	code_cache__begin_batch(&cache, &image.target, true);
	cr_expect_eq(line_at(address(bytecode[2]) + 4, true), 0);
	cr_expect_eq(line_at(address(bytecode[3]) + 4, true), 12);
	image__put(generation, 2, 4);
	code_cache__begin_batch(&cache, &image.target, false);
	cr_expect_eq(line_at(address(bytecode[3]) + 4, false), 12, "of a process that has ended");
}

/* Another code object lies there by now: its copies are not those of the one that was sampled. */
Test(copies, of_another_code_object, .fini = stop_lines)
{
	list_copies(address(array), 3);
	load_code();
	image__set_version(&image, 5, 77);
	cr_expect_eq(line_at(address(bytecode[2]) + 4, true), 0);
}
