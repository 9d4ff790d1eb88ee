/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks read from memory that holds anything: every other word of the input is made an address into that memory,
 * so that chains, chunks and code objects lead somewhere. What comes out is bounded, and the reader ends.
 */
#include "fuzz.h"
#include "py/layout.h"
#include "py/unwind.h"
#include "unit/debug_offsets.h"

#include <sys/mman.h>
#include <unistd.h>

enum { WORDS = 8192, TSTATE = 64, RUNTIME = 4096 };

static uint64_t *memory;

static uint64_t at(size_t word)
{
	return (uintptr_t)(memory + word % WORDS);
}

static void decode(struct py_offsets *out, int which)
{
	static const struct table_word *const tables[] = {table_3_13, table_3_14, table_3_15};
	static const size_t words[] = {ARRAY_SIZE(table_3_13), ARRAY_SIZE(table_3_14), ARRAY_SIZE(table_3_15)};
	uint8_t table[1024];
	char reason[256];

	for (size_t i = 0; i < words[which]; i++)
		memcpy(table + i * 8, &tables[which][i].value, 8);
	check(!py_offsets__decode(out, table, words[which] * 8, reason, sizeof(reason)));
}

static void put(uint64_t address, uint64_t value)
{
	memcpy((void *)(uintptr_t)address, &value, sizeof(value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct py_target target = {.pid = getpid()};
	struct thread_stack stack, *stacks[] = {&stack};
	struct py_thread thread;
	struct unwinder unwinder;
	uint8_t which = 0;

	if (!memory)
		memory = mmap(NULL, WORDS * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fuzz_take(&data, &len, &which, 1);
	for (size_t i = 0; i < WORDS; i++) {
		uint16_t word = 0;

		if (len >= 2)
			memcpy(&word, data + i * 2 % (len - 1), 2);
		memory[i] = word & 1 ? at(word >> 2) + (word & 2) : word >> 8;
	}
	decode(&target.offsets, which % 3);
	remote__init(&target.remote, target.pid);
	check(!py_layout__fill(&target.layout, &target.offsets, which % 3 == 2 ? 888 : PBP_NONE));
	target.runtime = at(RUNTIME);
	target.code_type = at(which);
	thread = (struct py_thread){.tstate = at(TSTATE), .interp = at(512), .thread_id = at(0)};
	put(thread.tstate + target.offsets.thread_interp, thread.interp);
	put(thread.tstate + target.offsets.thread_thread_id, thread.thread_id);

	check(!unwinder__init(&unwinder, &target));
	thread_stack__init(&stack, &thread);
	check(!unwinder__find_interpreters(&unwinder));
	for (int i = 0; i < 4; i++) {
		check(!unwinder__read(&unwinder, stacks, 1));
		check(stack.frames.len <= UNWIND_FRAMES_MAX && stack.frames.len == stack.addresses.len);
		check((stack.result == UNWIND_OK) == (stack.frames.len > 0) || stack.result == UNWIND_OK);
		memory[which * 16 % WORDS] ^= 8;
	}
	check(target.remote.stats.calls < 200000);
	thread_stack__free(&stack);
	unwinder__free(&unwinder);
	return 0;
}
