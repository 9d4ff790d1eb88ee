/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Accessors of thread-local variables as compilers emit them, and as they are damaged; then slots in the
 * memory of this very process, which is a glibc program like any target.
 */
#include "py/slot.h"
#include "py/slot_code.h"

#include "base/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define AT 0x3ca570 /* address of the function; rip-relative operands count from it */

struct sample {
	const char *name;
	uint8_t code[48];
	size_t len; /* up to and with the return */
	struct slot_code expected;
};

/* clang-format off */
static const struct sample samples[] = {
	{"Debian python3.15, PyGILState_GetThisThreadState",
	 {0xf3, 0x0f, 0x1e, 0xfa, 0x64, 0x48, 0x8b, 0x04, 0x25, 0xd8, 0xff, 0xff, 0xff, 0xc3}, 14,
	 {SLOT_CODE_LOCAL_EXEC, 0, -40}},
	{"Debian python3.15d",
	 {0xf3, 0x0f, 0x1e, 0xfa, 0x64, 0x48, 0x8b, 0x04, 0x25, 0xe8, 0xff, 0xff, 0xff, 0xc3}, 14,
	 {SLOT_CODE_LOCAL_EXEC, 0, -24}},
	{"local-exec, not optimised: mov $-8, %rax; mov %fs:(%rax), %rax",
	 {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x48, 0xc7, 0xc0, 0xf8, 0xff, 0xff, 0xff,
	  0x64, 0x48, 0x8b, 0x00, 0x5d, 0xc3}, 21,
	 {SLOT_CODE_LOCAL_EXEC, 0, -8}},
	{"local-exec through the self pointer: mov %fs:0, %rax; mov -40(%rax), %rax",
	 {0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0x48, 0x8b, 0x80, 0xd8, 0xff, 0xff, 0xff, 0xc3}, 17,
	 {SLOT_CODE_LOCAL_EXEC, 0, -40}},
	{"general-dynamic relaxed by the linker: mov %fs:0, %rax; lea -40(%rax), %rax; mov (%rax), %rax",
	 {0x48, 0x83, 0xec, 0x08, 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0x48, 0x8d, 0x80, 0xd8, 0xff,
	  0xff, 0xff, 0x48, 0x8b, 0x00, 0x48, 0x83, 0xc4, 0x08, 0xc3}, 28,
	 {SLOT_CODE_LOCAL_EXEC, 0, -40}},
	{"local-dynamic relaxed by the linker: padded mov %fs:0, %rax; mov -40(%rax), %rax",
	 {0x66, 0x66, 0x66, 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0x48, 0x8b, 0x40, 0xd8, 0xc3}, 17,
	 {SLOT_CODE_LOCAL_EXEC, 0, -40}},
	{"Debian libpython3.15, local-dynamic",
	 {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x48, 0x8d, 0x3d, 0x31, 0x52, 0x4a, 0x00,
	  0xe8, 0x0c, 0xe9, 0xcf, 0xff, 0x5d, 0x48, 0x8b, 0x80, 0x28, 0x00, 0x00, 0x00, 0xc3}, 29,
	 {SLOT_CODE_DYNAMIC, 0x86f7b0, 40}},
	{"Debian libpython3.15d: the epilogue behind the load",
	 {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x48, 0x8d, 0x3d, 0x31, 0x52, 0x4a, 0x00,
	  0xe8, 0xaa, 0x16, 0xc6, 0xff, 0x48, 0x8b, 0x80, 0x18, 0x00, 0x00, 0x00, 0x5d, 0xc3}, 29,
	 {SLOT_CODE_DYNAMIC, 0x86f7b0, 24}},
	{"pyenv libpython3.13, general-dynamic with padding",
	 {0x48, 0x83, 0xec, 0x08, 0x66, 0x48, 0x8d, 0x3d, 0x14, 0x7b, 0x25, 0x00, 0x66, 0x66, 0x48, 0xe8,
	  0x7c, 0x4f, 0xdf, 0xff, 0x48, 0x8b, 0x00, 0x48, 0x83, 0xc4, 0x08, 0xc3}, 28,
	 {SLOT_CODE_DYNAMIC, AT + 12 + 0x257b14, 0}},
	{"general-dynamic, -fno-plt",
	 {0x50, 0x66, 0x48, 0x8d, 0x3d, 0x14, 0x7b, 0x25, 0x00, 0x66, 0x48, 0xff, 0x15, 0x10, 0x20, 0x30,
	  0x00, 0x48, 0x8b, 0x00, 0x5a, 0xc3}, 22,
	 {SLOT_CODE_DYNAMIC, AT + 9 + 0x257b14, 0}},
	{"local-dynamic, not optimised: add $0x28, %rax; mov (%rax), %rax",
	 {0x55, 0x48, 0x89, 0xe5, 0x48, 0x8d, 0x3d, 0x00, 0x01, 0x00, 0x00, 0xe8, 0, 0, 0, 0,
	  0x48, 0x05, 0x28, 0x00, 0x00, 0x00, 0x48, 0x8b, 0x00, 0xc9, 0xc3}, 27,
	 {SLOT_CODE_DYNAMIC, AT + 11 + 0x100, 40}},
	{"initial-exec: mov got(%rip), %rax; mov %fs:(%rax), %rax",
	 {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8b, 0x05, 0x00, 0x10, 0x00, 0x00, 0x64, 0x48, 0x8b, 0x00, 0xc3}, 16,
	 {SLOT_CODE_INITIAL_EXEC, AT + 11 + 0x1000, 0}},
	{"initial-exec by linker: mov %fs:0, %rax; add got(%rip), %rax; mov (%rax), %rax",
	 {0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0x48, 0x03, 0x05, 0xf0, 0xff, 0xff, 0xff,
	  0x48, 0x8b, 0x00, 0xc3}, 20,
	 {SLOT_CODE_INITIAL_EXEC, AT + 16 - 16, 0}},
	{"initial-exec, the other order: mov got(%rip), %rax; add %fs:0, %rax; mov 8(%rax), %rax",
	 {0x48, 0x8b, 0x05, 0x00, 0x10, 0x00, 0x00, 0x64, 0x48, 0x03, 0x04, 0x25, 0, 0, 0, 0,
	  0x48, 0x8b, 0x40, 0x08, 0xf3, 0xc3}, 22,
	 {SLOT_CODE_INITIAL_EXEC, AT + 7 + 0x1000, 8}},
	{"descriptor: lea x@TLSDESC(%rip), %rax; call *(%rax); mov %fs:8(%rax), %rax",
	 {0x50, 0x48, 0x8d, 0x05, 0x00, 0x10, 0x00, 0x00, 0xff, 0x10, 0x64, 0x48, 0x8b, 0x80, 0x08, 0, 0, 0,
	  0x5a, 0xc3}, 20,
	 {SLOT_CODE_DESCRIPTOR, AT + 8 + 0x1000, 8}},
};

/* Not accessors of one thread-local variable. */
static const struct sample others[] = {
	{"3.13 libpython, PyGILState_GetThisThreadState: through the pthread key",
	 {0x48, 0x8b, 0x05, 0xe9, 0x6b, 0x25, 0x00, 0x53, 0x48, 0x8d, 0x98, 0x70, 0x08, 0x00, 0x00, 0xc3}, 16, {}},
	{"3.14 exe, the same",
	 {0xf3, 0x0f, 0x1e, 0xfa, 0x83, 0x3d, 0x59, 0x90, 0x76, 0x00, 0x00, 0x74, 0x0a, 0xc3}, 14, {}},
	{"3.11: a global", {0x48, 0x8b, 0x05, 0x10, 0, 0, 0, 0x48, 0x8b, 0x80, 0x40, 0x02, 0, 0, 0xc3}, 15, {}},
	{"nothing but a return", {0xc3}, 1, {}},
	{"a constant", {0x48, 0xc7, 0xc0, 0xf8, 0xff, 0xff, 0xff, 0xc3}, 8, {}},
	{"the thread pointer itself", {0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0xc3}, 10, {}},
	{"a call without argument", {0xe8, 0, 0, 0, 0, 0x48, 0x8b, 0x00, 0xc3}, 9, {}},
	{"the variable's address", {0x48, 0x8d, 0x3d, 0, 1, 0, 0, 0xe8, 0, 0, 0, 0, 0xc3}, 13, {}},
	{"what the variable points to",
	 {0x64, 0x48, 0x8b, 0x04, 0x25, 0xd8, 0xff, 0xff, 0xff, 0x48, 0x8b, 0x40, 0x10, 0xc3}, 14, {}},
	{"the variable, changed", {0x64, 0x48, 0x8b, 0x04, 0x25, 0xd8, 0xff, 0xff, 0xff, 0x48, 0x83, 0xc0, 0x08, 0xc3}, 14, {}},
	{"a test of the variable (PyThreadState_Get)",
	 {0x64, 0x48, 0x8b, 0x04, 0x25, 0xe8, 0xff, 0xff, 0xff, 0x48, 0x85, 0xc0, 0x74, 0x01, 0xc3}, 15, {}},
};
/* clang-format on */

/* From a copy of exactly that length, so that the sanitizer sees a read beyond it. */
static int decode(struct slot_code *out, const uint8_t *code, size_t len)
{
	uint8_t *copy = malloc(len ?: 1);
	int err;

	memcpy(copy, code, len);
	err = slot_code__decode(out, copy, len, AT);
	free(copy);
	return err;
}

Test(slot_code, accessors_of_all_models)
{
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		struct slot_code code;

		cr_assert_eq(decode(&code, samples[i].code, samples[i].len), 0, "%s", samples[i].name);
		cr_assert_eq(code.kind, samples[i].expected.kind, "%s: %d", samples[i].name, code.kind);
		cr_assert_eq(code.got, samples[i].expected.got, "%s: 0x%lx", samples[i].name, code.got);
		cr_assert_eq(code.offset, samples[i].expected.offset, "%s: %ld", samples[i].name,
			     code.offset);
	}
}

Test(slot_code, what_follows_the_return_does_not_matter)
{
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		uint8_t bytes[SLOT_CODE_MAX];
		struct slot_code code;

		memset(bytes, 0xcc, sizeof(bytes));
		memcpy(bytes, samples[i].code, samples[i].len);
		cr_assert_eq(decode(&code, bytes, sizeof(bytes)), 0, "%s", samples[i].name);
		cr_assert_eq(code.offset, samples[i].expected.offset);
	}
}

Test(slot_code, truncated_accessors_are_refused)
{
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		for (size_t len = 0; len < samples[i].len; len++) {
			struct slot_code code;

			cr_assert_eq(decode(&code, samples[i].code, len), -EINVAL, "%s, %zu bytes",
				     samples[i].name, len);
		}
	}
}

Test(slot_code, other_functions_are_refused)
{
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		struct slot_code code;

		cr_assert_eq(decode(&code, others[i].code, others[i].len), -EINVAL, "%s", others[i].name);
	}
}

static uint64_t random_u64(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

Test(slot_code, damaged_accessors_do_no_harm)
{
	uint64_t state = 0x9e3779b97f4a7c15;

	for (int round = 0; round < 300000; round++) {
		const struct sample *sample = &samples[round % ARRAY_SIZE(samples)];
		uint8_t bytes[sizeof(sample->code)];
		struct slot_code code;
		int changes = random_u64(&state) % 4;

		memcpy(bytes, sample->code, sizeof(bytes));
		for (int i = 0; i < changes; i++)
			bytes[random_u64(&state) % sample->len] = random_u64(&state);
		decode(&code, bytes, random_u64(&state) % (sizeof(bytes) + 1));
	}
}

/* Pieces of accessors in any order: every pair of states and instructions comes up. */
Test(slot_code, shuffled_accessors_do_no_harm)
{
	uint64_t state = 0x853c49e6748fea9b;

	for (int round = 0; round < 300000; round++) {
		uint8_t bytes[SLOT_CODE_MAX] = {};
		struct slot_code code;
		size_t len = 0;

		while (len < sizeof(bytes)) {
			const struct sample *sample = &samples[random_u64(&state) % ARRAY_SIZE(samples)];
			size_t from = random_u64(&state) % sample->len;
			size_t count = min_u64(1 + random_u64(&state) % 9, sample->len - from);

			count = min_u64(count, sizeof(bytes) - len);
			memcpy(bytes + len, sample->code + from, count);
			len += count;
		}
		decode(&code, bytes, len);
	}
}

/* ---- slots in this process ---- */

#define THREAD_ID 152 /* as in 3.14 */
#define KEY	  2336

struct fake_tstate {
	uint8_t before[THREAD_ID];
	uint64_t thread_id;
};

/* A runtime that is nothing but its key. */
static uint8_t runtime_bytes[KEY + 8];
static struct fake_tstate tstates[4];
static struct py_thread threads[4];
static struct remote self;
static struct py_runtime runtime;
static pthread_barrier_t barrier;
static pthread_key_t key;

static void *run_thread(void *arg)
{
	struct fake_tstate *tstate = arg;

	tstate->thread_id = pthread_self();
	pthread_setspecific(key, tstate);
	pthread_barrier_wait(&barrier);
	pause();
	return NULL;
}

static void set_key(int32_t is_initialized, uint32_t value)
{
	memcpy(runtime_bytes + KEY, &is_initialized, 4);
	memcpy(runtime_bytes + KEY + 4, &value, 4);
}

/* Four threads, whose "thread state" is in a key; `keys` others are made before. */
static void start_threads(int keys)
{
	pthread_t thread;

	remote__init(&self, getpid());
	for (int i = 0; i <= keys; i++)
		cr_assert_eq(pthread_key_create(&key, NULL), 0);
	pthread_barrier_init(&barrier, NULL, ARRAY_SIZE(tstates) + 1);
	for (size_t i = 0; i < ARRAY_SIZE(tstates); i++)
		cr_assert_eq(pthread_create(&thread, NULL, run_thread, &tstates[i]), 0);
	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < ARRAY_SIZE(tstates); i++) {
		threads[i].tstate = (uintptr_t)&tstates[i];
		threads[i].thread_id = tstates[i].thread_id;
	}
	runtime = (struct py_runtime){.addr = (uintptr_t)runtime_bytes, .file.fd = -1};
	runtime.offsets.runtime_auto_tss_key = KEY;
	runtime.offsets.thread_thread_id = THREAD_ID;
	set_key(1, key);
}

static bool find_slot(struct pbp_target *layout, char *how, size_t size, size_t count)
{
	*layout = (struct pbp_target){.slot_kind = 99};
	return py_slot__find(layout, how, size, &self, &runtime, threads, count);
}

Test(slot, pthread_key)
{
	struct pbp_target layout;
	char how[96];

	start_threads(3);
	cr_assert(find_slot(&layout, how, sizeof(how), 4), "%s", how);
	cr_assert_eq(layout.slot_kind, PBP_SLOT_FSBASE);
	cr_assert_eq(layout.slot_offset, 0x310 + 16 * key + 8);
	cr_assert(strstr(how, "pthread key") && strstr(how, "4 threads"), "%s", how);
}

Test(slot, pthread_key_of_the_second_level)
{
	struct pbp_target layout;
	char how[96];

	start_threads(75);
	cr_assert_geq(key, 64);
	cr_assert(find_slot(&layout, how, sizeof(how), 4), "%s", how);
	cr_assert_eq(layout.slot_kind, PBP_SLOT_KEY2);
	cr_assert_eq(layout.slot_offset, 0x510 + key / 32 * 8);
	cr_assert_eq(layout.slot_offset2, key % 32 * 16 + 8);
}

Test(slot, a_key_that_gives_nothing_or_wrong_answers_is_not_used)
{
	struct pbp_target layout;
	char how[96];

	start_threads(3);
	for (int32_t wrong = 0; wrong < 1100; wrong += 7) {
		if (wrong == (int32_t)key)
			continue;
		set_key(1, wrong);
		cr_assert_not(find_slot(&layout, how, sizeof(how), 4), "%d", wrong);
		cr_assert_eq(layout.slot_kind, PBP_SLOT_NONE);
		cr_assert(strstr(how, "list"), "%s", how);
	}
	set_key(1, UINT32_MAX);
	cr_assert_not(find_slot(&layout, how, sizeof(how), 4));
	set_key(0, key);
	cr_assert_not(find_slot(&layout, how, sizeof(how), 4), "the key is not made yet");
	set_key(1, key);
	for (size_t i = 0; i < 4; i++)
		tstates[i].thread_id = threads[i].thread_id = 0x1000; /* of nobody */
	cr_assert_not(find_slot(&layout, how, sizeof(how), 4));
}

Test(slot, thread_states_without_thread_do_not_count)
{
	struct pbp_target layout;
	char how[96];

	start_threads(3);
	cr_assert_not(find_slot(&layout, how, sizeof(how), 0));
	threads[0].thread_id = threads[1].thread_id = 0;
	cr_assert(find_slot(&layout, how, sizeof(how), 4), "%s", how);
	cr_assert(strstr(how, "2 threads"), "%s", how);
}

/* One thread of many ends just then: its memory is gone or somebody else's. */
Test(slot, one_wrong_answer_among_many_is_forgiven)
{
	struct pbp_target layout;
	struct py_thread many[6];
	char how[96];

	start_threads(3);
	for (size_t i = 0; i < 5; i++)
		many[i] = threads[i % 4];
	many[5] = (struct py_thread){.tstate = 1, .thread_id = 0x1000};
	layout = (struct pbp_target){};
	cr_assert(py_slot__find(&layout, how, sizeof(how), &self, &runtime, many, 6), "%s", how);
	many[4] = many[3] = many[5];
	cr_assert_not(py_slot__find(&layout, how, sizeof(how), &self, &runtime, many, 6), "%s", how);
}
