/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects of any content, of any layout: the input is memory of the target, in words of two bytes, of which
 * the upper half stand for addresses in it. What comes out is short, valid UTF-8 and safe to print. Any
 * object may be a dict of threads.
 */
#include "base/utf8.h"
#include "fuzz.h"
#include "py/offsets.h"
#include "py/thread_names.h"
#include "py/value.h"
#include "unit/debug_offsets.h"
#include "unit/object_heap.h"

static struct object_heap heap;
static struct py_offsets layouts[4];

static void open_heap(void)
{
	static const uint32_t old[] = {0x030800f0, 0x030b00f0, 0x030c00f0};
	uint8_t table[PY_DEBUG_OFFSETS_MAX] = {0};
	char reason[256];

	for (size_t i = 0; i < ARRAY_SIZE(old); i++)
		check(!py_offsets__of_version(&layouts[i], old[i], reason, sizeof(reason)));
	for (size_t i = 0; i < ARRAY_SIZE(table_3_15); i++)
		memcpy(table + 8 * i, &table_3_15[i].value, 8);
	check(!py_offsets__decode(&layouts[3], table, 8 * ARRAY_SIZE(table_3_15), reason, sizeof(reason)));
	object_heap__init(&heap, &layouts[3]);
}

static void name_thread(py_addr dict)
{
	struct buf text = {0};
	uint64_t ident = (uintptr_t)heap.memory; /* as a word of the input may be */

	if (!py_thread_names__one(&heap.objects, dict, ident, &text))
		check(!text.err && text.len <= 10 * 200);
	buf__free(&text);
}

static void describe(py_addr object)
{
	struct buf text = {0};

	py_value__add(&heap.objects, object, &text);
	check(!text.err && text.len && text.len <= VALUE_BYTES_MAX);
	for (size_t at = 0; at < text.len;) {
		uint32_t code;
		size_t step = utf8_decode(text.data + at, text.len - at, &code);

		check(step && !utf8_is_unsafe(code));
		at += step;
	}
	buf__free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	size_t words = min_u64(len / 2, 2048);

	if (!heap.memory)
		open_heap();
	heap.target.offsets = layouts[len % ARRAY_SIZE(layouts)];
	for (size_t i = 0; i < words; i++) {
		uint64_t value = load_u16(data + 2 * i);

		if (value & 0x8000)
			value = (uintptr_t)heap.memory + value % 2048 * 8;
		else if (value & 0x4000) /* flags of types and the like, in the upper bits */
			value <<= 18;
		memcpy(heap.memory + 8 * i, &value, 8);
	}
	py_objects__forget(&heap.objects);
	for (size_t i = 0; i < words && i < 64; i++) {
		describe((uintptr_t)heap.memory + 8 * i);
		name_thread((uintptr_t)heap.memory + 8 * i);
	}
	memset(heap.memory, 0, 8 * words);
	return 0;
}
