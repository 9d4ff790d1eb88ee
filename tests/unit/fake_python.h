/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A Python 3.14 made of nothing but the structs that are read at attach, in the test's own memory: the test
 * is target and reader at once. Sizes and offsets are those of table_3_14 (debug_offsets.h).
 */
#pragma once

#include "base/util.h"
#include "debug_offsets.h"
#include "os/remote.h"
#include "py/target.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

enum {
	FAKE_RUNTIME_BYTES = 4096,
	FAKE_HEAD = 808,
	FAKE_MAIN_THREAD = 832,
	FAKE_INTERP_NEXT = 7272,
	FAKE_INTERP_ID = 7280,
	FAKE_THREADS_HEAD = 7344,
	FAKE_PREV = 0,
	FAKE_NEXT = 8,
	FAKE_INTERP = 16,
	FAKE_CURRENT_FRAME = 72,
	FAKE_THREAD_ID = 152,
	FAKE_NATIVE_ID = 160,
	FAKE_CHUNK = 232,
	FAKE_CHUNK_TOP = 240,
	FAKE_CODE_BYTES = 208,
};

struct fake_interp {
	uint8_t bytes[8192];
};

struct fake_tstate {
	uint8_t bytes[832];
};

struct fake_frame {
	uint64_t executable, previous;
	uint8_t rest[72];
};

struct fake_code {
	uint8_t bytes[FAKE_CODE_BYTES];
	uint16_t units[16];
};

struct fake_type {
	uint8_t bytes[416];
};

struct fake_object {
	uint64_t refcount;
	uint64_t type;
	uint8_t rest[48];
};

static inline uint64_t address_of(const void *p)
{
	return (uintptr_t)p;
}

static inline void put_u64(void *base, size_t offset, uint64_t value)
{
	memcpy((uint8_t *)base + offset, &value, sizeof(value));
}

static inline void put_u32(void *base, size_t offset, uint32_t value)
{
	memcpy((uint8_t *)base + offset, &value, sizeof(value));
}

/* The table as in memory, at the start of a runtime. */
static inline void fake_table(void *runtime)
{
	for (size_t i = 0; i < ARRAY_SIZE(table_3_14); i++)
		put_u64(runtime, i * 8, table_3_14[i].value);
}

static inline void fake_offsets(struct py_offsets *out)
{
	uint8_t table[ARRAY_SIZE(table_3_14) * 8];
	char reason[256];

	fake_table(table);
	cr_assert_eq(py_offsets__decode(out, table, sizeof(table), reason, sizeof(reason)), 0, "%s", reason);
}

static inline void fake_interp(struct fake_interp *interp, int64_t id, const struct fake_interp *next,
			       const struct fake_tstate *head)
{
	put_u64(interp->bytes, FAKE_INTERP_ID, id);
	put_u64(interp->bytes, FAKE_INTERP_NEXT, address_of(next));
	put_u64(interp->bytes, FAKE_THREADS_HEAD, address_of(head));
}

static inline void fake_tstate(struct fake_tstate *tstate, const struct fake_interp *interp,
			       const struct fake_tstate *prev, const struct fake_tstate *next,
			       uint64_t thread_id)
{
	put_u64(tstate->bytes, FAKE_PREV, address_of(prev));
	put_u64(tstate->bytes, FAKE_NEXT, address_of(next));
	put_u64(tstate->bytes, FAKE_INTERP, address_of(interp));
	put_u64(tstate->bytes, FAKE_THREAD_ID, thread_id);
	put_u64(tstate->bytes, FAKE_NATIVE_ID, 1000 + address_of(tstate) % 1000);
}
