/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptions of values: of objects as CPython lays them out, in the test's own memory, and of memory that
 * only pretends to be objects.
 */
#include "py/value.h"

#include "base/utf8.h"
#include "heap_objects.h"
#include "image.h"
#include "py/locals.h"
#include "py/thread_names.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>

#define each_version(minor) for (int minor = 13; minor <= 15; minor++)

static char text[4 * VALUE_BYTES_MAX];

static const char *describe(py_addr object)
{
	struct buf buf = {0};

	py_objects__forget(&heap.objects);
	py_value__add(&heap.objects, object, &buf);
	cr_assert(!buf.err && buf.len && buf.len <= VALUE_BYTES_MAX, "%zu bytes", buf.len);
	memcpy(text, buf.data, buf.len);
	text[buf.len] = '\0';
	for (size_t at = 0; at < buf.len;) {
		uint32_t code;
		size_t step = utf8_decode(text + at, buf.len - at, &code);

		cr_assert(step && !utf8_is_unsafe(code), "not safe to print");
		at += step;
	}
	buf__free(&buf);
	return text;
}

#define expect(object, words) cr_expect_str_eq(describe(object), words, "%s instead of %s", text, words)

static py_addr make_tuple(const py_addr *items, size_t count)
{
	const struct py_offsets *offsets = &heap.target.offsets;
	py_addr object = heap_object(&heap, heap_type(&heap, "tuple", FLAG_TUPLE), 64 + 8 * count);

	heap_put(object + offsets->tuple_size, count, 8);
	for (size_t i = 0; i < count; i++)
		heap_put(object + offsets->tuple_items + 8 * i, items[i], 8);
	return object;
}

static py_addr make_list(const py_addr *items, size_t count)
{
	const struct py_offsets *offsets = &heap.target.offsets;
	py_addr object = heap_object(&heap, heap_type(&heap, "list", FLAG_LIST), 64);

	heap_put(object + offsets->list_size, count, 8);
	heap_put(object + offsets->list_items, heap_bytes(&heap, items, 8 * count), 8);
	return object;
}

/* --- the pure parts --- */

static const char *int_text(const uint32_t *digits, size_t count, bool negative)
{
	struct buf buf = {0};

	py_value__add_int(digits, count, negative, &buf);
	buf__addc(&buf, '\0');
	snprintf(text, sizeof(text), "%s", buf.data);
	buf__free(&buf);
	return text;
}

Test(value, ints)
{
	static const uint32_t top = (1u << 30) - 1;
	uint32_t all[PY_INT_DIGITS_MAX];

	cr_expect_str_eq(int_text(&(uint32_t){0}, 1, false), "0");
	cr_expect_str_eq(int_text(&(uint32_t){7}, 1, true), "-7");
	cr_expect_str_eq(int_text((uint32_t[]){0, 1}, 2, false), "1073741824");
	cr_expect_str_eq(int_text((uint32_t[]){top, top}, 2, true), "-1152921504606846975");
	cr_expect_str_eq(int_text((uint32_t[]){1000000000, 0}, 2, false), "1000000000");
	cr_expect_str_eq(int_text((uint32_t[]){0, 0, 1}, 3, false), "1152921504606846976");
	for (size_t i = 0; i < PY_INT_DIGITS_MAX; i++)
		all[i] = top;
	/* 2 ** 480 - 1 */
	cr_expect_str_eq(
		int_text(all, PY_INT_DIGITS_MAX, false),
		"31217485503159922313815972297931663057485981426649711508591569596253717388197656201203"
		"06103063491971159826931121406622895447975679288285306290175");
}

Test(value, floats)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{0, "0.0"},	   {-0.0, "-0.0"},	{1, "1.0"},	    {0.1, "0.1"},
		{1e300, "1e+300"}, {-1.5, "-1.5"},	{5e-324, "5e-324"}, {1.0 / 3, "0.3333333333333333"},
		{INFINITY, "inf"}, {-INFINITY, "-inf"}, {NAN, "nan"},	    {123456789, "123456789.0"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buf buf = {0};

		py_value__add_float(cases[i].value, &buf);
		buf__addc(&buf, '\0');
		cr_expect_str_eq(buf.data, cases[i].text);
		buf__free(&buf);
	}
}

Test(value, texts)
{
	static const uint16_t two[] = {0x6f22, 0x202e, 0xd800, 0x2028, 'x'};
	static const uint32_t four[] = {0x1f680, 0x110000, 0xffffffff, 0};
	struct buf buf = {0};

	py_value__add_text(1, (const uint8_t *)"a'\\\n\t\r\x1b\x7f\x9b\xe9", 10, &buf);
	py_value__add_text(2, (const uint8_t *)two, 5, &buf);
	py_value__add_text(4, (const uint8_t *)four, 4, &buf);
	py_value__add_bytes((const uint8_t *)"a'\\\n\x00\xff\x7f", 7, &buf);
	buf__addc(&buf, '\0');
	cr_expect_str_eq(buf.data, "'a\\'\\\\\\n\\t\\r\\x1b\\x7f\\x9bé'"
				   "'漢\\u202e\\ud800\\u2028x'"
				   "'\xf0\x9f\x9a\x80\\U00110000\\Uffffffff\\x00'"
				   "b'a\\'\\\\\\n\\x00\\xff\\x7f'");
	buf__free(&buf);
}

/* --- objects --- */

Test(value, simple_objects)
{
	each_version(minor)
	{
		py_addr object;
		double value = 2.5;

		begin(minor);
		expect(make_int(0), "0");
		expect(make_int(-5), "-5");
		expect(make_int(1ll << 62), "4611686018427387904");
		expect(make_str("it's"), "'it\\'s'");
		expect(make_str(""), "''");
		object = make_int(1);
		heap_put(object + heap.target.offsets.object_type, heap_type(&heap, "bool", FLAG_INT), 8);
		expect(object, "True");
		object = make_int(3);
		heap_put(object + heap.target.offsets.object_type,
			 heap_type(&heap, "int", FLAG_INT | FLAG_HEAP_TYPE), 8);
		expect(object, "int(3)");
		object = heap_object(&heap, heap_type(&heap, "float", 0), 32);
		heap_put(object + heap.target.offsets.float_value, load_u64(&value), 8);
		expect(object, "2.5");
		expect(heap_object(&heap, heap_type(&heap, "NoneType", 0), 16), "None");
		expect(heap_object(&heap, heap_type(&heap, "ellipsis", 0), 16), "Ellipsis");
		object = heap_object(&heap, heap_type(&heap, "NoneType", FLAG_HEAP_TYPE), 16);
		cr_expect(!strncmp(describe(object), "<NoneType object at 0x", 22), "%s", text);
		object = heap_object(&heap, heap_type(&heap, "a.b\x1b[31m", 0), 16);
		cr_expect(!strncmp(describe(object), "<a.b\\x1b[31m object at 0x", 25), "%s", text);
		end();
	}
}

Test(value, containers)
{
	each_version(minor)
	{
		py_addr items[20], pairs[3][2], list;

		begin(minor);
		for (size_t i = 0; i < 20; i++)
			items[i] = make_int(i);
		expect(make_tuple(items, 0), "()");
		expect(make_tuple(items + 1, 1), "(1,)");
		expect(make_list(items, 3), "[0, 1, 2]");
		expect(make_list(items, 20), "[0, 1, 2, 3, 4, 5, 6, 7, ...] (20 items)");
		list = make_list(items, 2);
		heap_put(load_u64((void *)(uintptr_t)(list + heap.target.offsets.list_items)), list, 8);
		expect(list, "[[[..., ...], 1], 1]");
		for (size_t i = 0; i < 3; i++) {
			pairs[i][0] = make_str((const char *[]){"a", "b", "c"}[i]);
			pairs[i][1] = i == 1 ? 0 : items[i];
		}
		for (int kind = 0; kind <= 2; kind++)
			expect(make_dict(pairs, 3, kind), "{'a': 0, 'c': 2}");
		expect(make_dict(pairs, 0, 0), "{}");
		end();
	}
}

Test(value, sets)
{
	each_version(minor)
	{
		const struct py_offsets *offsets = &heap.target.offsets;
		py_addr table, set, frozen;

		begin(minor);
		table = heap_take(&heap, 8 * 16);
		set = heap_object(&heap, heap_type(&heap, "set", 0), 200);
		frozen = heap_object(&heap, heap_type(&heap, "frozenset", 0), 200);
		heap_put(set + offsets->set_mask, 7, 8);
		heap_put(set + offsets->set_table, table, 8);
		heap_put(frozen + offsets->set_mask, 7, 8);
		heap_put(frozen + offsets->set_table, table, 8);
		expect(set, "set()");
		expect(frozen, "frozenset()");
		heap_put(set + offsets->set_used, 2, 8);
		heap_put(frozen + offsets->set_used, 2, 8);
		heap_put(table + 16, make_int(1), 8);
		heap_put(table + 48, make_int(9), 8);
		heap_put(table + 56, -1, 8); /* deleted */
		heap_put(table + 80, make_int(2), 8);
		expect(set, "{1, 2}");
		expect(frozen, "frozenset({1, 2})");
		heap_put(set + offsets->set_mask, 6, 8);
		expect(set, "<unreadable>");
		end();
	}
}

/* What is left of dicts and sets when enough of them were looked at is told as not read. */
Test(value, no_entries_left)
{
	py_addr pairs[2][2], dict, found;

	begin(13);
	for (size_t i = 0; i < 2; i++) {
		pairs[i][0] = make_str(i ? "b" : "a");
		pairs[i][1] = make_int(i);
	}
	dict = make_dict(pairs, 2, 1);
	heap.objects.entries_left = 3;
	expect(dict, "{'a': 0, 'b': 1}");
	expect(dict, "{'a': 0...}");
	expect(dict, "<unreadable>");
	cr_expect_eq(py_dict__find(&heap.objects, dict, "a", &found), -E2BIG);
	end();
}

Test(value, classes_of_a_module)
{
	each_version(minor)
	{
		py_addr pairs[1][2], type, object;

		begin(minor);
		pairs[0][0] = make_str("__module__");
		pairs[0][1] = make_str("pkg.mod");
		type = heap_type(&heap, "Name", FLAG_HEAP_TYPE);
		heap_put(type + heap.target.offsets.type_dict, make_dict(pairs, 1, 1), 8);
		object = heap_object(&heap, type, 32);
		cr_expect(!strncmp(describe(object), "<pkg.mod.Name object at 0x", 26), "%s", text);
		heap_put(type + heap.target.offsets.object_type, heap_type(&heap, "type", FLAG_TYPE), 8);
		expect(type, "<class 'pkg.mod.Name'>");
		/* The key's type is the one whose module is looked for. */
		heap_put(pairs[0][0] + heap.target.offsets.object_type, type, 8);
		cr_expect(!strncmp(describe(object), "<Name object at 0x", 18), "%s", text);
		end();
	}
}

/* --- attributes and names of threads --- */

static void expect_name(py_addr active, uint64_t ident, const char *name)
{
	struct buf buf = {0};
	int err;

	py_objects__forget(&heap.objects);
	err = py_thread_names__one(&heap.objects, active, ident, &buf);

	buf__addc(&buf, '\0');
	cr_expect_eq(err, name ? 0 : -ENOENT);
	cr_expect_str_eq(buf.data, name ?: "");
	buf__free(&buf);
}

Test(value, names_of_threads)
{
	for (int version = IMAGE_FIRST_VERSION; version <= IMAGE_LAST_VERSION; version++) {
		py_addr threads[3][2], active[1][2], modules[1][2], module, interp, found;
		struct strtab *strings;
		struct hmap names = {0};

		begin(version);
		cr_assert_eq(strtab__new(&strings), 0);
		for (int i = 0; i < 3; i++) {
			threads[i][0] = make_int(0x7f0000000000 + i);
			threads[i][1] =
				i == 2 ? make_int(4) : make_thread((const char *[]){"first", "second"}[i], i);
		}
		active[0][0] = make_str("_active");
		active[0][1] = make_dict(threads, 3, 0);
		module = heap_object(&heap, heap_type(&heap, "module", 0), 64);
		heap_put(module + heap.target.offsets.var_object_size, make_dict(active, 1, 1), 8);
		modules[0][0] = make_str("threading");
		modules[0][1] = module;
		interp = heap_take(&heap, 16384);
		cr_expect_eq(py_thread_names__read(&heap.objects, interp, strings, &names), -ENOENT);
		heap_put(interp + heap.target.offsets.interp_imports_modules, make_dict(modules, 1, 0), 8);
		py_objects__forget(&heap.objects);
		cr_expect_eq(py_thread_names__read(&heap.objects, interp, strings, &names), 0);
		cr_assert_eq(names.len, 2);
		for (int i = 0; i < 2; i++) {
			const uint64_t *id = hmap__get(&names, 0x7f0000000000 + i);

			cr_assert(id);
			cr_expect_str_eq(strtab__get(strings, *id), i ? "second" : "first");
		}
		cr_expect_eq(py_thread_names__find(&heap.objects, interp, &found), 0);
		cr_expect_eq(found, active[0][1]);
		expect_name(found, 0x7f0000000000, "first");
		expect_name(found, 0x7f0000000001, "second");
		expect_name(found, 0x7f0000000003, NULL);
		expect_name(make_dict(active, 0, 1), 0x7f0000000000, NULL);
		cr_expect_eq(py_thread_names__one(&heap.objects, module, 0x7f0000000000, &(struct buf){0}),
			     -EINVAL, "no dict any more");
		hmap__free(&names);
		strtab__free(strings);
		end();
	}
}

/* --- variables --- */

Test(value, variables_of_a_frame)
{
	each_version(minor)
	{
		const struct py_offsets *offsets = &heap.target.offsets;
		static const char *const names[] = {"self",  "only",   "args", "cell",
						    "unset", "number", "free"};
		static const char *const values[] = {"11", "22", "()", "44", "-7"};
		static const uint8_t kinds[] = {0x20, 0x20, 0x20, 0x60, 0x20, 0x20, 0x80};
		py_addr items[7], code, frame, cell, kinds_at;
		struct pbp_frame raw;
		struct py_local out[LOCALS_MAX];
		struct py_locals locals;
		struct strtab *strings;
		uint64_t tag = minor >= 14;

		begin(minor);
		cr_assert_eq(strtab__new(&strings), 0);
		py_locals__init(&locals, &heap.objects, strings);
		for (size_t i = 0; i < 7; i++)
			items[i] = make_str(names[i]);
		code = heap_take(&heap, 512);
		kinds_at = heap_object(&heap, heap_type(&heap, "bytes", FLAG_BYTES), 64);
		heap_put(kinds_at + offsets->bytes_size, 7, 8);
		memcpy((void *)(uintptr_t)(kinds_at + offsets->bytes_data), kinds, 7);
		heap_put(code + offsets->code_localsplusnames, make_tuple(items, 7), 8);
		heap_put(code + offsets->code_localspluskinds, kinds_at, 8);
		heap_put(code + offsets->code_argcount - 4, 4, 4); /* *args */
		heap_put(code + offsets->code_argcount, 1, 4);
		heap_put(code + offsets->code_argcount + 8, 1, 4);
		frame = heap_take(&heap, 256);
		cell = heap_object(&heap, heap_type(&heap, "cell", 0), 32);
		heap_put(cell + 16, make_int(44), 8);
		heap_put(frame + offsets->frame_localsplus + 0, make_int(11), 8);
		heap_put(frame + offsets->frame_localsplus + 8, make_int(22) | tag, 8);
		heap_put(frame + offsets->frame_localsplus + 16, make_tuple(NULL, 0), 8);
		heap_put(frame + offsets->frame_localsplus + 24, cell | tag, 8);
		heap_put(frame + offsets->frame_localsplus + 32, tag, 8);
		heap_put(frame + offsets->frame_localsplus + 40, tag ? (uint64_t)-7 * 4 + 3 : make_int(-7),
			 8);
		heap_put(frame + offsets->frame_localsplus + 48,
			 heap_object(&heap, heap_type(&heap, "cell", 0), 32), 8);
		raw = (struct pbp_frame){.code = code, .ident = 5};
		cr_assert_eq(py_locals__read(&locals, frame, &raw, out), 5);
		for (size_t i = 0; i < 5; i++) {
			cr_expect_str_eq(strtab__get(strings, out[i].name), names[i < 4 ? i : 5]);
			cr_expect_str_eq(strtab__get(strings, out[i].value), values[i]);
			cr_expect_eq(out[i].argument, i < 3);
		}
		py_locals__free(&locals);
		strtab__free(strings);
		end();
	}
}

/* --- memory that only pretends --- */

Test(value, lengths_without_end)
{
	each_version(minor)
	{
		const struct py_offsets *offsets = &heap.target.offsets;
		static const uint64_t lengths[] = {1ull << 16, 1ull << 39, 1ull << 41, 1ull << 60,
						   UINT64_MAX};
		py_addr items[1], pairs[1][2], str, tuple, list, dict, number, bytes, keys;

		begin(minor);
		items[0] = make_int(1);
		pairs[0][0] = pairs[0][1] = items[0];
		str = make_str("abc");
		tuple = make_tuple(items, 1);
		list = make_list(items, 1);
		dict = make_dict(pairs, 1, 0);
		number = make_int(1);
		bytes = heap_object(&heap, heap_type(&heap, "bytes", FLAG_BYTES), 64);
		keys = load_u64((void *)(uintptr_t)(dict + offsets->dict_keys));
		for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
			heap_put(str + offsets->unicode_length, lengths[i], 8);
			describe(str);
			heap_put(tuple + offsets->tuple_size, lengths[i], 8);
			describe(tuple);
			heap_put(list + offsets->list_size, lengths[i], 8);
			describe(list);
			heap_put(keys + 24, lengths[i], 8);
			describe(dict);
			heap_put(number + offsets->long_tag, lengths[i], 8);
			describe(number);
			heap_put(bytes + offsets->bytes_size, lengths[i], 8);
			describe(bytes);
		}
		heap_put(keys + 9, 255, 1);
		expect(dict, "<unreadable>");
		heap_put(number + offsets->long_tag, 1 << 3, 8);
		heap_put(number + offsets->long_digits, UINT32_MAX, 4);
		expect(number, "<unreadable>");
		end();
	}
}

Test(value, no_objects)
{
	each_version(minor)
	{
		py_addr object;

		begin(minor);
		expect(0, "<unreadable>");
		expect(1, "<unreadable>");
		expect(UINT64_MAX & ~7ull, "<unreadable>");
		expect((uintptr_t)heap.memory + HEAP_BYTES - 8, "<unreadable>");
		expect(heap_take(&heap, 64), "<unreadable>");
		object = heap_object(&heap, 0x1000, 64);
		expect(object, "<unreadable>");
		heap_put(object + heap.target.offsets.object_type, object, 8); /* its own type */
		describe(object);
		end();
	}
}

/* What a version does not know is not there, and not garbage. */
Test(value, unknown_version)
{
	struct py_offsets offsets;
	struct py_locals locals;
	struct hmap names = {0};
	struct py_local out[LOCALS_MAX];

	image_offsets(&offsets, 14);
	offsets.version = 0x030800f0;
#define FORGET(name) offsets.name = 0;
	PY_VALUE_OFFSETS(FORGET)
#undef FORGET
	object_heap__init(&heap, &offsets);
	expect(heap_take(&heap, 64), "<unreadable>");
	py_locals__init(&locals, &heap.objects, NULL);
	cr_expect_eq(py_locals__read(&locals, heap_take(&heap, 64),
				     &(struct pbp_frame){.code = heap_take(&heap, 64)}, out),
		     -ENOTSUP);
	cr_expect_eq(py_thread_names__read(&heap.objects, heap_take(&heap, 64), NULL, &names), -ENOTSUP);
	end();
}

/* Words that are small numbers or addresses of each other. */
Test(value, random_memory)
{
	unsigned int seed = 1;

	for (int round = 0; round < 300; round++) {
		begin(13 + round % 3);
		for (size_t i = 0; i < 4096; i += 8) {
			uint64_t word = rand_r(&seed) % 4;
			uint64_t value = (uint64_t)rand_r(&seed) << 20 ^ rand_r(&seed);

			heap_put((uintptr_t)heap.memory + i,
				 word < 2    ? (uintptr_t)heap.memory + value % 512 * 8
				 : word == 2 ? value % 16
					     : value << 2,
				 8);
		}
		for (size_t i = 0; i < 512; i += 3)
			describe((uintptr_t)heap.memory + i * 8);
		end();
	}
}
