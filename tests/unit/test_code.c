/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Code objects read out of the test's own memory: how many system calls that takes, objects at the edge of
 * what is mapped, objects that are none or have gone, and what the kernel side sent of them.
 */
#include "fake_python.h"
#include "os/proc.h"
#include "py/code.h"
#include "py/layout.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

enum {
	CODES = 400,
	TABLE_AT = 32, /* bytes_object.ob_sval */
	ASCII_AT = 40,
	COMPACT_AT = 56,
	FIRST_LINE_AT = 68,
	VERSION_AT = 92,
	FILENAME_AT = 112,
	QUALNAME_AT = 128,
	LINETABLE_AT = 136,
	ADAPTIVE_AT = 208,
	ARENA_BYTES = 4 << 20,
};

static struct {
	struct py_target target;
	struct strtab *strings;
	struct code_cache cache;
	uint8_t *arena; /* objects are made here, with nothing mapped behind it */
	size_t used;
	struct fake_type code_type, other_type;
	struct fake_code codes[CODES];
	struct pbp_frame frames[CODES];
} python;

static void start(void)
{
	struct py_target *target = &python.target;

	target->pid = getpid();
	remote__init(&target->remote, target->pid);
	fake_offsets(&target->offsets);
	cr_assert_eq(py_layout__fill(&target->layout, &target->offsets, PBP_NONE), 0);
	cr_assert_eq(target->offsets.code_qualname, QUALNAME_AT);
	put_u64(&python.code_type, target->offsets.type_name, address_of("code"));
	put_u64(&python.other_type, target->offsets.type_name, address_of("dict"));
	python.arena =
		mmap(NULL, ARENA_BYTES + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(python.arena, MAP_FAILED);
	mprotect(python.arena + ARENA_BYTES, 4096, PROT_NONE);
	cr_assert_eq(strtab__new(&python.strings), 0);
	code_cache__init(&python.cache, python.strings);
}

static void stop(void)
{
	code_cache__free(&python.cache);
	strtab__free(python.strings);
	munmap(python.arena, ARENA_BYTES + 4096);
}

static uint8_t *allocate(size_t len)
{
	uint8_t *p = python.arena + python.used;

	python.used += (len + 15) & ~15ul;
	cr_assert_leq(python.used, ARENA_BYTES);
	return p;
}

/* An object of which the last byte is the last one before memory that is not mapped. */
static uint8_t *allocate_last(size_t len)
{
	return python.arena + ARENA_BYTES - len;
}

static uint64_t make_string_at(uint8_t *at, uint32_t kind, bool ascii, const void *data, size_t count)
{
	memset(at, 0, ascii ? ASCII_AT : COMPACT_AT);
	put_u64(at, 16, count);
	put_u32(at, 32, (kind << 2 | 1 << 5 | ascii << 6));
	memcpy(at + (ascii ? ASCII_AT : COMPACT_AT), data, count * kind);
	return address_of(at);
}

static uint64_t make_string(const char *text)
{
	return make_string_at(allocate(ASCII_AT + strlen(text) + 1), 1, true, text, strlen(text));
}

static uint64_t make_table_at(uint8_t *at, const uint8_t *table, size_t len)
{
	memset(at, 0, TABLE_AT);
	put_u64(at, 16, len);
	memcpy(at + TABLE_AT, table, len);
	return address_of(at);
}

static uint64_t make_table(const uint8_t *table, size_t len)
{
	return make_table_at(allocate(TABLE_AT + len), table, len);
}

/* One entry a unit: code 13 (no column), 1 unit, the line moves by one each. */
static const uint8_t steps[] = {0x80 | 13 << 3, 0x00, 0x80 | 13 << 3, 0x02, 0x80 | 13 << 3, 0x02};

static struct fake_code *make_code_of(uint32_t index, uint64_t name, uint64_t file, uint64_t table)
{
	struct fake_code *code = &python.codes[index];

	put_u64(code, 8, address_of(&python.code_type));
	put_u64(code, 16, ARRAY_SIZE(code->units));
	put_u32(code, FIRST_LINE_AT, 10 + index);
	put_u32(code, VERSION_AT, 100 + index);
	put_u64(code, QUALNAME_AT, name);
	put_u64(code, FILENAME_AT, file);
	put_u64(code, LINETABLE_AT, table);
	python.frames[index] = (struct pbp_frame){.code = address_of(code), .ident = 100 + index};
	return code;
}

/* The object that a code object has at this offset. */
static uint8_t *string_of(uint32_t index, size_t offset)
{
	return (uint8_t *)(uintptr_t)load_u64(python.codes[index].bytes + offset);
}

static struct fake_code *make_code(uint32_t index)
{
	char name[32];

	snprintf(name, sizeof(name), "function_%u", index);
	return make_code_of(index, make_string(name), make_string("module.py"),
			    make_table(steps, sizeof(steps)));
}

static void load(uint32_t first, uint32_t count)
{
	cr_assert_eq(code_cache__load(&python.cache, &python.target, python.frames + first, count, true), 0);
}

/* The entry of code object `index`, which must have been asked for. */
static const struct py_code *entry(uint32_t index)
{
	const struct pbp_frame *frame = &python.frames[index];
	uint32_t found = code_cache__find(&python.cache, frame->code, frame->ident);

	cr_assert_neq(found, PY_CODE_NONE, "code %u", index);
	return &python.cache.codes.items[found];
}

static const char *text_of(uint32_t id)
{
	return strtab__get(python.strings, id);
}

static uint32_t line_at(const struct py_code *code, uint32_t unit)
{
	const struct py_offsets *offsets = &python.target.offsets;

	return py_code__line(code, offsets,
			     py_code__lasti(code, offsets, code->address + ADAPTIVE_AT + 2 * unit));
}

static enum py_code_state load_one(uint32_t index)
{
	load(index, 1);
	return entry(index)->state;
}

Test(code, one, .init = start, .fini = stop)
{
	const struct py_code *code;

	make_code(0);
	cr_assert_eq(load_one(0), PY_CODE_OK);
	code = entry(0);
	cr_expect_str_eq(text_of(code->function), "function_0");
	cr_expect_str_eq(text_of(code->file), "module.py");
	cr_expect_eq(code->first_line, 10);
	cr_expect_eq(code->code_bytes, 32);
	cr_expect(line_at(code, 0) == 10 && line_at(code, 1) == 11 && line_at(code, 2) == 12);
	cr_expect_eq(line_at(code, 3), 0, "beyond the table");
	cr_expect_eq(line_at(code, -1), 10, "not started");
	cr_expect_eq(line_at(code, 16), 10, "beyond the bytecode");
	cr_expect_eq(code_cache__find(&python.cache, code->address, 1), PY_CODE_NONE);
	cr_expect_eq(code_cache__find(&python.cache, code->address + 8, code->ident), PY_CODE_NONE);
}

/* However many are new, and what is known costs nothing. */
Test(code, three_calls, .init = start, .fini = stop)
{
	static const uint32_t counts[] = {1, 2, 37};
	uint32_t next = 0;

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		uint64_t calls = python.target.remote.stats.calls;

		for (uint32_t k = 0; k < counts[i]; k++)
			make_code(next + k);
		load(next, counts[i]);
		cr_expect_leq(python.target.remote.stats.calls - calls, 3, "%u code objects", counts[i]);
		next += counts[i];
	}
	for (uint32_t i = 0; i < next; i++)
		cr_expect_eq(entry(i)->state, PY_CODE_OK);

	python.target.remote.stats.calls = 0;
	load(0, next);
	cr_expect_eq(python.target.remote.stats.calls, 0);
	cr_expect_eq(python.cache.codes.len, next, "no entry twice");
}

Test(code, three_calls_for_a_full_round, .init = start, .fini = stop)
{
	for (uint32_t i = 0; i < CODES; i++)
		make_code(i);
	load(0, 340);
	cr_expect_leq(python.target.remote.stats.calls, 3);
	load(0, CODES);
	cr_expect_leq(python.target.remote.stats.calls, 6);
	for (uint32_t i = 0; i < CODES; i++) {
		char name[32];

		snprintf(name, sizeof(name), "function_%u", i);
		cr_expect(entry(i)->state == PY_CODE_OK && !strcmp(text_of(entry(i)->function), name));
	}
}

/* Recursion: one entry, one read. */
Test(code, the_same_many_times, .init = start, .fini = stop)
{
	make_code(0);
	for (uint32_t i = 1; i < 300; i++)
		python.frames[i] = python.frames[0];
	load(0, 300);
	cr_expect_eq(python.cache.codes.len, 1);
	cr_expect_leq(python.target.remote.stats.segments, 3 * 4 + 2);
}

/* Strings and tables longer than a first part; the longest ones take no fourth call. */
Test(code, long_parts, .init = start, .fini = stop)
{
	static char name[70000];
	static uint8_t table[60000];
	const struct py_code *code;

	memset(name, 'n', 5000);
	for (size_t i = 0; i < sizeof(table); i += 2) {
		table[i] = 0x80 | 13 << 3;
		table[i + 1] = 0x02;
	}
	make_code_of(0, make_string(name), make_string("long.py"), make_table(table, sizeof(table)));
	put_u64(&python.codes[0], 16, 1 << 20);
	for (size_t len = 200; len <= 230; len++) { /* 216 is the longest that the first part holds */
		name[len] = '\0';
		make_code_of(len, make_string(name), make_string(name),
			     make_table(table, 500 - 30 + len - 200));
		name[len] = 'n';
	}
	load(200, 31);
	cr_assert_eq(load_one(0), PY_CODE_OK);
	cr_expect_leq(python.target.remote.stats.calls, 6);
	code = entry(0);
	cr_expect_eq(strlen(text_of(code->function)), 5000);
	cr_expect_eq(code->table_len, sizeof(table));
	cr_expect_eq(line_at(code, 29999), 10 + 30000);
	for (size_t len = 200; len <= 230; len++)
		cr_expect(entry(len)->state == PY_CODE_OK && strlen(text_of(entry(len)->function)) == len &&
				  strlen(text_of(entry(len)->file)) == len &&
				  entry(len)->table_len == 500 - 30 + len - 200,
			  "%zu", len);

	/* No name is longer than that. */
	memset(name, 'n', sizeof(name) - 1);
	make_code_of(1, make_string(name), make_string("long.py"), make_table(steps, sizeof(steps)));
	cr_expect_eq(load_one(1), PY_CODE_INVALID);
}

/* Latin-1, UCS-2 and UCS-4. */
Test(code, wide_names, .init = start, .fini = stop)
{
	static const uint8_t latin[] = {'f', 0xfc, 'r'};
	static const uint16_t greek[] = {0x3bb, 0x3c0};
	static const uint32_t emoji[] = {'x', 0x1f40d};
	uint64_t table = make_table(steps, sizeof(steps));

	make_code_of(0, make_string_at(allocate(100), 1, false, latin, 3), make_string("a.py"), table);
	make_code_of(1, make_string_at(allocate(100), 2, false, greek, 2), make_string("a.py"), table);
	make_code_of(2, make_string_at(allocate(100), 4, false, emoji, 2), make_string("a.py"), table);
	load(0, 3);
	cr_expect_str_eq(text_of(entry(0)->function), "f\xc3\xbcr");
	cr_expect_str_eq(text_of(entry(1)->function), "\xce\xbb\xcf\x80");
	cr_expect_str_eq(text_of(entry(2)->function), "x\xf0\x9f\x90\x8d");
}

/* An object may end with the last byte that is mapped, wherever that makes it begin. */
Test(code, objects_at_the_end_of_memory, .init = start, .fini = stop)
{
	char name[300];

	for (uint32_t len = 40; len < 300; len += 13) {
		memset(name, 'e', len);
		name[len] = '\0';
		make_code_of(len, make_string_at(allocate_last(ASCII_AT + len), 1, true, name, len),
			     make_string("a.py"), make_table(steps, sizeof(steps)));
		python.target.remote.stats.calls = 0;
		cr_expect_eq(load_one(len), PY_CODE_OK, "%u", len);
		cr_expect_leq(python.target.remote.stats.calls, 3);
		cr_expect_str_eq(text_of(entry(len)->function), name);
	}
	/* ... across a page border in the middle of the object's header. */
	for (uint32_t before = 8; before < 100; before += 8) {
		python.used = 8192 - before;
		make_code_of(before + 300, make_string_at(allocate(200), 1, true, "border", 6),
			     make_string("a.py"), make_table(steps, sizeof(steps)));
		cr_expect_eq(load_one(before + 300), PY_CODE_OK);
		cr_expect_str_eq(text_of(entry(before + 300)->function), "border");
	}
}

/* A name shorter than what is read of any object in any case. */
Test(code, short_object_at_the_end_of_memory, .init = start, .fini = stop)
{
	make_code_of(0, make_string_at(allocate_last(ASCII_AT + 1), 1, true, "f", 1), make_string("a.py"),
		     make_table(steps, sizeof(steps)));
	make_code(1);
	load(0, 2);
	cr_expect_eq(entry(0)->state, PY_CODE_OK);
	cr_expect_str_eq(text_of(entry(0)->function), "f");
	cr_expect_eq(entry(1)->state, PY_CODE_OK, "and what is read after it");
}

/* Another identity lies there now: the one that was sampled has been freed. */
Test(code, recycled, .init = start, .fini = stop)
{
	make_code(0);
	python.frames[0].ident = 7;
	cr_expect_eq(load_one(0), PY_CODE_GONE);
	cr_expect_eq(entry(0)->function, 0);
	python.frames[0].ident = 100;
	cr_expect_eq(load_one(0), PY_CODE_OK, "the one that is there");
	python.target.remote.stats.calls = 0;
	python.frames[0].ident = 7;
	cr_expect_eq(load_one(0), PY_CODE_GONE);
	cr_expect_eq(python.target.remote.stats.calls, 0, "gone for good");
}

Test(code, no_code_objects, .init = start, .fini = stop)
{
	make_code(0);
	make_code(1);
	put_u64(&python.codes[1], 8, address_of(&python.other_type));
	make_code(2);
	make_code(3);
	put_u64(&python.codes[3], LINETABLE_AT, 0);
	make_code(4);
	put_u64(&python.codes[4], QUALNAME_AT, 0xdead0000);
	make_code(5);
	put_u64(&python.codes[5], FILENAME_AT, address_of(&python.codes[5])); /* no string */
	make_code(6);
	put_u32(string_of(6, QUALNAME_AT), 32, 1 << 2); /* not compact: the characters are elsewhere */
	make_code(7);
	put_u64(&python.codes[7], FILENAME_AT,
		make_string_at(allocate_last(ASCII_AT + 50), 1, true, &python, 50));
	put_u64(string_of(7, FILENAME_AT), 16, 5000); /* more than is mapped */
	make_code(8);
	put_u64(&python.codes[8], QUALNAME_AT, address_of(string_of(7, FILENAME_AT)));
	make_code(9);
	load(0, 10);
	cr_expect(entry(0)->state == PY_CODE_OK && entry(2)->state == PY_CODE_OK &&
		  entry(9)->state == PY_CODE_OK);
	for (uint32_t i = 1; i <= 8; i += 1 + (i == 1))
		cr_expect_eq(entry(i)->state, PY_CODE_INVALID, "%u", i);
	python.frames[10] = (struct pbp_frame){.code = 0xdead0000, .ident = 1};
	cr_expect_eq(load_one(10), PY_CODE_GONE);
	python.frames[11] = (struct pbp_frame){0};
	cr_expect_eq(load_one(11), PY_CODE_GONE);
}

/* The very first object is no code object: the type is learned from the others, or next time. */
Test(code, first_is_a_stray, .init = start, .fini = stop)
{
	make_code(0);
	put_u64(&python.codes[0], 8, address_of(&python.other_type));
	cr_expect_eq(load_one(0), PY_CODE_INVALID);
	cr_expect_eq(python.cache.code_type, 0);
	make_code(1);
	put_u64(&python.codes[1], 8, address_of(&python.other_type));
	make_code(2);
	make_code(3);
	load(1, 3);
	cr_expect_eq(python.cache.code_type, address_of(&python.code_type));
	cr_expect(entry(1)->state == PY_CODE_INVALID && entry(2)->state == PY_CODE_OK &&
		  entry(3)->state == PY_CODE_OK);
}

Test(code, shims, .init = start, .fini = stop)
{
	uint64_t table = make_table(steps, sizeof(steps));

	make_code_of(0, make_string("__init__"), make_string("__init__"), table);
	make_code_of(1, make_string("<interpreter trampoline>"), make_string("<shim>"), table);
	make_code_of(2, make_string("__init__"), make_string("a.py"), table);
	make_code_of(3, make_string("<shim>"), make_string("<shim>"), table);
	load(0, 4);
	cr_expect(entry(0)->state == PY_CODE_SHIM && entry(1)->state == PY_CODE_SHIM);
	cr_expect(entry(2)->state == PY_CODE_OK && entry(3)->state == PY_CODE_OK);
}

/* Lengths that lie cost neither memory nor time. */
Test(code, hostile_lengths, .init = start, .fini = stop)
{
	static const uint64_t lengths[] = {UINT64_MAX,	    1ull << 63, 1ull << 40,
					   (64u << 20) + 1, 65536,	ARENA_BYTES};

	alarm(20);
	for (uint32_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		make_code(3 * i);
		put_u64(string_of(3 * i, LINETABLE_AT), 16, lengths[i]);
		make_code(3 * i + 1);
		put_u64(string_of(3 * i + 1, QUALNAME_AT), 16, lengths[i] == 65536 ? 65537 : lengths[i]);
		make_code(3 * i + 2);
		put_u64(&python.codes[3 * i + 2], 16, lengths[i]); /* co_code */
	}
	load(0, 3 * ARRAY_SIZE(lengths));
	for (uint32_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		cr_expect_eq(entry(3 * i)->state, lengths[i] == 65536 ? PY_CODE_OK : PY_CODE_INVALID,
			     "table %u", i);
		cr_expect_eq(entry(3 * i + 1)->state, PY_CODE_INVALID, "name %u", i);
		cr_expect_eq(entry(3 * i + 2)->state, PY_CODE_OK, "bytecode %u", i);
		cr_expect_eq(entry(3 * i + 2)->code_bytes, lengths[i] < 1u << 30 ? 2 * lengths[i] : 0,
			     "bytecode %u", i);
	}
}

/* Any number of code objects may share one object, however large: that is not a copy for each. */
Test(code, one_huge_table_for_all, .init = start, .fini = stop)
{
	static const size_t size = 60 << 20;
	uint64_t before = proc__own_rss();
	uint32_t taken = 0;
	uint8_t *table = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(table, MAP_FAILED);
	put_u64(table, 16, size - TABLE_AT);
	for (uint32_t i = 0; i < 20; i++) {
		make_code(i);
		put_u64(&python.codes[i], LINETABLE_AT, address_of(table));
	}
	make_code(20);
	load(0, 21);
	for (uint32_t i = 0; i < 20; i++)
		taken += entry(i)->state == PY_CODE_OK;
	cr_expect_eq(taken, 1);
	cr_expect_eq(entry(20)->state, PY_CODE_OK, "the others are read all the same");
	cr_expect_lt(proc__own_rss(), before + (200 << 20));
	munmap(table, size);
}

/* Bytes that a program can put anywhere. */
Test(code, random_bytes, .init = start, .fini = stop)
{
	unsigned int seed = 3;

	for (int round = 0; round < 300; round++) {
		python.used = 0;
		for (uint32_t i = 0; i < 20; i++)
			make_code(i);
		for (int i = 0; i < 60; i++)
			python.arena[rand_r(&seed) % python.used] = rand_r(&seed) >> 7;
		for (int i = 0; i < 20; i++)
			python.codes[rand_r(&seed) % 20]
				.bytes[rand_r(&seed) % sizeof(python.codes[0].bytes)] = rand_r(&seed) >> 7;
		code_cache__clear(&python.cache);
		load(0, 20);
		for (uint32_t i = 0; i < 20; i++)
			for (uint32_t unit = 0; unit < 5; unit++)
				line_at(entry(i), unit);
	}
}

/* ---- what the kernel side sent ---- */

static struct pbp_code offer_of(uint32_t index)
{
	const struct pbp_target *layout = &python.target.layout;
	const struct fake_code *code = &python.codes[index];
	struct pbp_code record = {
		.type = PBP_CODE, .code = address_of(code), .ident = python.frames[index].ident};

	memcpy(record.header, code, layout->co_bytes);
	memcpy(record.name, (void *)(uintptr_t)load_u64(code->bytes + QUALNAME_AT), PBP_NAME_BYTES);
	memcpy(record.file, (void *)(uintptr_t)load_u64(code->bytes + FILENAME_AT), PBP_FILE_BYTES);
	memcpy(record.table, (void *)(uintptr_t)load_u64(code->bytes + LINETABLE_AT), PBP_TABLE_BYTES);
	record.lens[0] = layout->co_bytes;
	record.lens[1] = PBP_NAME_BYTES;
	record.lens[2] = PBP_FILE_BYTES;
	record.lens[3] = PBP_TABLE_BYTES;
	return record;
}

/* Freed right after the sample: only the record knows it, and nothing but the type's name is read. */
Test(code, offered, .init = start, .fini = stop)
{
	struct pbp_code record;

	make_code(0);
	record = offer_of(0);
	memset(&python.codes[0], 0xdb, sizeof(python.codes[0]));
	memset(python.arena, 0xdb, python.used);
	cr_assert_eq(code_cache__offer(&python.cache, &record), 0);
	cr_expect_eq(load_one(0), PY_CODE_OK);
	cr_expect_str_eq(text_of(entry(0)->function), "function_0");
	cr_expect_str_eq(text_of(entry(0)->file), "module.py");
	cr_expect_eq(line_at(entry(0), 2), 12);
	cr_expect_leq(python.target.remote.stats.calls, 2);

	/* The process is gone as well. */
	make_code(1);
	record = offer_of(1);
	cr_assert_eq(code_cache__offer(&python.cache, &record), 0);
	python.target.remote.stats.calls = 0;
	cr_assert_eq(code_cache__load(&python.cache, &python.target, &python.frames[1], 1, false), 0);
	cr_expect_eq(entry(1)->state, PY_CODE_OK);
	make_code(2);
	cr_assert_eq(code_cache__load(&python.cache, &python.target, &python.frames[2], 1, false), 0);
	cr_expect_eq(entry(2)->state, PY_CODE_GONE, "not offered");
	cr_expect_eq(python.target.remote.stats.calls, 0);
}

/* What is longer than its part of the record is read, if it is still there; else a cut line table does. */
Test(code, offered_in_part, .init = start, .fini = stop)
{
	static uint8_t table[2000];
	struct pbp_code record;
	char name[1000];

	for (size_t i = 0; i < sizeof(table); i += 2) {
		table[i] = 0x80 | 13 << 3;
		table[i + 1] = 0x02;
	}
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (uint32_t i = 0; i < 4; i++) {
		make_code_of(i, make_string(i & 1 ? name : "short"), make_string("a.py"),
			     make_table(table, sizeof(table)));
		put_u64(&python.codes[i], 16, 5000);
		record = offer_of(i);
		cr_assert_eq(code_cache__offer(&python.cache, &record), 0);
		if (i & 2) /* freed, and the memory has been used again */
			put_u32(&python.codes[i], VERSION_AT, 7);
	}
	load(0, 4);
	cr_expect_eq(entry(0)->state, PY_CODE_OK);
	cr_expect_eq(line_at(entry(0), 999), 10 + 1000);
	cr_expect(entry(1)->state == PY_CODE_OK && !strcmp(text_of(entry(1)->function), name));
	cr_expect_eq(entry(2)->state, PY_CODE_OK);
	cr_expect_str_eq(text_of(entry(2)->function), "short");
	cr_expect_eq(line_at(entry(2), 100), 12 + 101);
	cr_expect_eq(line_at(entry(2), 999), 0, "cut off");
	cr_expect_eq(entry(3)->state, PY_CODE_GONE, "half a name is none");
}

/* Records are not trusted any more than memory is. */
Test(code, hostile_records, .init = start, .fini = stop)
{
	unsigned int seed = 5;

	for (int round = 0; round < 3000; round++) {
		struct pbp_code record;

		python.used = 0;
		make_code(0);
		record = offer_of(0);
		for (int i = rand_r(&seed) % 6; i--;)
			((uint8_t *)&record)[rand_r(&seed) % sizeof(record)] = rand_r(&seed) >> 7;
		record.lens[rand_r(&seed) % 4] = rand_r(&seed);
		code_cache__clear(&python.cache);
		cr_assert_eq(code_cache__offer(&python.cache, &record), 0);
		cr_assert_eq(code_cache__load(&python.cache, &python.target, python.frames, 1, round % 2), 0);
	}
}

/* What the kernel side has sent outlives the process. */
Test(code, process_gone, .init = start, .fini = stop)
{
	struct pbp_code record;

	make_code(0);
	make_code(1);
	record = offer_of(1);
	remote__init(&python.target.remote, INT32_MAX - 1);
	python.target.code_type = address_of(&python.code_type); /* seen at attach */
	cr_assert_eq(code_cache__offer(&python.cache, &record), 0);
	cr_expect_eq(code_cache__load(&python.cache, &python.target, python.frames, 2, true), 0);
	cr_expect_eq(entry(0)->state, PY_CODE_GONE);
	cr_expect_eq(entry(1)->state, PY_CODE_OK);
	cr_expect_str_eq(text_of(entry(1)->function), "function_1");
}
