/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * x86-64 machine code of an accessor that returns a thread-local variable -> how that variable is addressed.
 * Pure: bytes in, answer out; bytes are hostile. Covers the thread-local storage models of the psABI and what
 * linkers relax them to.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SLOT_CODE_MAX 64 /* bytes worth reading: the longest accessor known takes 36 */

enum slot_code_kind {
	SLOT_CODE_LOCAL_EXEC,	/* at fsbase + offset */
	SLOT_CODE_INITIAL_EXEC, /* at fsbase + *(u64 *)got + offset */
	SLOT_CODE_DYNAMIC,	/* {module, disp} at got: at dtv[module] + disp + offset */
	SLOT_CODE_DESCRIPTOR,	/* {resolver, argument} at got: at fsbase + argument + offset if the block is
				   static */
};

struct slot_code {
	enum slot_code_kind kind;
	uint64_t got; /* address in the target */
	int64_t offset;
};

/*
 * Decode a function that lies at `addr` and does nothing but load the variable into rax and return. 0;
 * -EINVAL for anything else, also when `len` ends before the return.
 */
int slot_code__decode(struct slot_code *out, const uint8_t *code, size_t len, uint64_t addr);
