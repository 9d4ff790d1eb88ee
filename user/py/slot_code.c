/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs the function symbolically: rax and rdi hold one of a few forms of address, each known instruction
 * moves from form to form, and the load of the variable fixes the answer. Any instruction that is not in the
 * list ends it. The sequences are those of the psABI (ELF Handling For Thread-Local Storage, 4.4 and 5.5) as
 * gcc 10 to 16 and clang emit them; which binaries have which is noted in tests/unit/test_slot.c.
 */
#include "py/slot_code.h"

#include "base/util.h"

#include <errno.h>
#include <stdbool.h>

/* What rax holds. */
enum form {
	UNKNOWN,
	CONSTANT,	/* offset */
	THREAD_POINTER, /* fsbase + offset */
	GOT_WORD,	/* *(u64 *)got */
	THREAD_GOT,	/* fsbase + *(u64 *)got + offset */
	GOT_ADDRESS,	/* got: the argument of a call to come */
	BLOCK,		/* what __tls_get_addr(got) returned, + offset */
	DESCRIPTOR,	/* what the resolver at got returned: an offset from fsbase */
	LOADED,		/* the variable: out is set */
};

struct machine {
	struct slot_code *out;
	uint64_t next; /* address of the next instruction, for rip-relative operands */
	enum form rax;
	uint64_t got;
	int64_t offset;
	uint64_t rdi; /* address in rdi, 0 = none */
	bool done;
};

static int32_t displacement(const uint8_t *operand)
{
	return (int32_t)load_u32(operand);
}

static void set(struct machine *machine, enum form form, uint64_t got, int64_t offset)
{
	machine->rax = form;
	machine->got = got;
	machine->offset = offset;
}

static void answer(struct machine *machine, enum slot_code_kind kind, int64_t offset)
{
	*machine->out = (struct slot_code){kind, machine->got, offset};
	machine->rax = LOADED;
}

static void skip(struct machine *machine, const uint8_t *operand) {}

static void finish(struct machine *machine, const uint8_t *operand)
{
	machine->done = true;
}

/* mov fs:imm32, %rax: a variable, or at 0 the thread pointer itself (the self pointer of the TCB). */
static void load_fs(struct machine *machine, const uint8_t *operand)
{
	int32_t at = displacement(operand);

	machine->got = 0;
	if (at)
		answer(machine, SLOT_CODE_LOCAL_EXEC, at);
	else
		set(machine, THREAD_POINTER, 0, 0);
}

/* mov $imm32, %rax */
static void set_constant(struct machine *machine, const uint8_t *operand)
{
	set(machine, CONSTANT, 0, displacement(operand));
}

/* mov disp(%rip), %rax */
static void load_got(struct machine *machine, const uint8_t *operand)
{
	set(machine, GOT_WORD, machine->next + displacement(operand), 0);
}

/* add disp(%rip), %rax */
static void add_got(struct machine *machine, const uint8_t *operand)
{
	if (machine->rax == THREAD_POINTER)
		set(machine, THREAD_GOT, machine->next + displacement(operand), machine->offset);
	else
		machine->rax = UNKNOWN;
}

/* add fs:0, %rax */
static void add_thread_pointer(struct machine *machine, const uint8_t *operand)
{
	if (machine->rax == GOT_WORD || machine->rax == DESCRIPTOR)
		machine->rax = machine->rax == GOT_WORD ? THREAD_GOT : DESCRIPTOR;
	else if (machine->rax == CONSTANT)
		machine->rax = THREAD_POINTER;
	else
		machine->rax = UNKNOWN;
}

/* lea disp(%rip), %rdi and its padded form: the argument of __tls_get_addr */
static void set_argument(struct machine *machine, const uint8_t *operand)
{
	machine->rdi = machine->next + displacement(operand);
}

/* call to what can only be __tls_get_addr; whether it is, the caller verifies by the outcome. */
static void call(struct machine *machine, const uint8_t *operand)
{
	if (machine->rdi)
		set(machine, BLOCK, machine->rdi, 0);
	else
		machine->rax = UNKNOWN;
}

/* lea disp(%rip), %rax: the argument of a descriptor's resolver */
static void set_descriptor(struct machine *machine, const uint8_t *operand)
{
	set(machine, GOT_ADDRESS, machine->next + displacement(operand), 0);
}

/* call *(%rax) */
static void call_descriptor(struct machine *machine, const uint8_t *operand)
{
	machine->rax = machine->rax == GOT_ADDRESS ? DESCRIPTOR : UNKNOWN;
}

static void add(struct machine *machine, int64_t value)
{
	machine->offset += value;
	if (machine->rax != THREAD_POINTER && machine->rax != THREAD_GOT && machine->rax != BLOCK)
		machine->rax = UNKNOWN;
}

static void add_disp32(struct machine *machine, const uint8_t *operand)
{
	add(machine, displacement(operand));
}

static void add_disp8(struct machine *machine, const uint8_t *operand)
{
	add(machine, (int8_t)operand[0]);
}

/* mov disp(%rax), %rax */
static void load(struct machine *machine, int64_t disp)
{
	int64_t offset = machine->offset + disp;

	switch (machine->rax) {
	case THREAD_POINTER:
		answer(machine, SLOT_CODE_LOCAL_EXEC, offset);
		break;
	case THREAD_GOT:
		answer(machine, SLOT_CODE_INITIAL_EXEC, offset);
		break;
	case BLOCK:
		answer(machine, SLOT_CODE_DYNAMIC, offset);
		break;
	default:
		machine->rax = UNKNOWN;
	}
}

static void load_disp0(struct machine *machine, const uint8_t *operand)
{
	load(machine, 0);
}

static void load_disp8(struct machine *machine, const uint8_t *operand)
{
	load(machine, (int8_t)operand[0]);
}

static void load_disp32(struct machine *machine, const uint8_t *operand)
{
	load(machine, displacement(operand));
}

/* mov fs:(%rax), %rax and mov fs:disp32(%rax), %rax */
static void load_thread(struct machine *machine, int64_t disp)
{
	if (machine->rax == CONSTANT)
		answer(machine, SLOT_CODE_LOCAL_EXEC, machine->offset + disp);
	else if (machine->rax == GOT_WORD)
		answer(machine, SLOT_CODE_INITIAL_EXEC, disp);
	else if (machine->rax == DESCRIPTOR)
		answer(machine, SLOT_CODE_DESCRIPTOR, disp);
	else
		machine->rax = UNKNOWN;
}

static void load_thread_disp0(struct machine *machine, const uint8_t *operand)
{
	load_thread(machine, 0);
}

static void load_thread_disp32(struct machine *machine, const uint8_t *operand)
{
	load_thread(machine, displacement(operand));
}

struct instruction {
	uint8_t opcode[9];
	uint8_t opcode_len;
	uint8_t operand_len;
	bool keeps_answer; /* may stand between the load and the return */
	void (*run)(struct machine *machine, const uint8_t *operand);
};

/* clang-format off */
static const struct instruction instructions[] = {
	/* prologue and epilogue */
	{{0xf3, 0x0f, 0x1e, 0xfa}, 4, 0, false, skip},                 /* endbr64 */
	{{0x55}, 1, 0, false, skip},                                   /* push %rbp */
	{{0x48, 0x89, 0xe5}, 3, 0, false, skip},                       /* mov %rsp, %rbp */
	{{0x48, 0x83, 0xec}, 3, 1, false, skip},                       /* sub $imm8, %rsp */
	{{0x48, 0x83, 0xc4}, 3, 1, true, skip},                        /* add $imm8, %rsp */
	{{0x5d}, 1, 0, true, skip},                                    /* pop %rbp */
	{{0x5a}, 1, 0, true, skip},                                    /* pop %rdx: drops 8 bytes of stack */
	{{0x59}, 1, 0, true, skip},                                    /* pop %rcx: the same */
	{{0x50}, 1, 0, false, skip},                                   /* push %rax: makes 8 bytes of stack */
	{{0xc9}, 1, 0, true, skip},                                    /* leave */
	{{0xf3, 0xc3}, 2, 0, true, finish},                            /* rep ret */
	{{0xc3}, 1, 0, true, finish},                                  /* ret */
	/* local-exec, and what the linker relaxes other models to */
	{{0x64, 0x48, 0x8b, 0x04, 0x25}, 5, 4, false, load_fs},        /* mov %fs:disp32, %rax */
	{{0x66, 0x66, 0x66, 0x64, 0x48, 0x8b, 0x04, 0x25}, 8, 4, false, load_fs},
	{{0x66, 0x66, 0x64, 0x48, 0x8b, 0x04, 0x25}, 7, 4, false, load_fs},
	{{0x48, 0xc7, 0xc0}, 3, 4, false, set_constant},               /* mov $imm32, %rax */
	/* initial-exec */
	{{0x48, 0x8b, 0x05}, 3, 4, false, load_got},                   /* mov disp(%rip), %rax */
	{{0x48, 0x03, 0x05}, 3, 4, false, add_got},                    /* add disp(%rip), %rax */
	{{0x64, 0x48, 0x03, 0x04, 0x25, 0, 0, 0, 0}, 9, 0, false, add_thread_pointer}, /* add %fs:0, %rax */
	/* general-dynamic and local-dynamic */
	{{0x66, 0x48, 0x8d, 0x3d}, 4, 4, false, set_argument},         /* data16 lea disp(%rip), %rdi */
	{{0x48, 0x8d, 0x3d}, 3, 4, false, set_argument},               /* lea disp(%rip), %rdi */
	{{0x66, 0x66, 0x48, 0xe8}, 4, 4, false, call},                 /* data16 data16 rex.W call */
	{{0x66, 0x48, 0xff, 0x15}, 4, 4, false, call},                 /* data16 rex.W call *disp(%rip) (-fno-plt) */
	{{0xff, 0x15}, 2, 4, false, call},                             /* call *disp(%rip) */
	{{0x67, 0xe8}, 2, 4, false, call},                             /* addr32 call */
	{{0xe8}, 1, 4, false, call},
	/* descriptors (-mtls-dialect=gnu2) */
	{{0x48, 0x8d, 0x05}, 3, 4, false, set_descriptor},             /* lea disp(%rip), %rax */
	{{0xff, 0x10}, 2, 0, false, call_descriptor},                  /* call *(%rax) */
	/* address arithmetic */
	{{0x48, 0x05}, 2, 4, false, add_disp32},                       /* add $imm32, %rax */
	{{0x48, 0x83, 0xc0}, 3, 1, false, add_disp8},                  /* add $imm8, %rax */
	{{0x48, 0x8d, 0x80}, 3, 4, false, add_disp32},                 /* lea disp32(%rax), %rax */
	{{0x48, 0x8d, 0x40}, 3, 1, false, add_disp8},                  /* lea disp8(%rax), %rax */
	/* the load of the variable */
	{{0x64, 0x48, 0x8b, 0x80}, 4, 4, false, load_thread_disp32},   /* mov %fs:disp32(%rax), %rax */
	{{0x64, 0x48, 0x8b, 0x00}, 4, 0, false, load_thread_disp0},    /* mov %fs:(%rax), %rax */
	{{0x48, 0x8b, 0x80}, 3, 4, false, load_disp32},                /* mov disp32(%rax), %rax */
	{{0x48, 0x8b, 0x40}, 3, 1, false, load_disp8},                 /* mov disp8(%rax), %rax */
	{{0x48, 0x8b, 0x00}, 3, 0, false, load_disp0},                 /* mov (%rax), %rax */
};
/* clang-format on */

static const struct instruction *recognise(const uint8_t *code, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(instructions); i++) {
		const struct instruction *instruction = &instructions[i];

		if (len >= (size_t)instruction->opcode_len + instruction->operand_len &&
		    !memcmp(code, instruction->opcode, instruction->opcode_len))
			return instruction;
	}
	return NULL;
}

int slot_code__decode(struct slot_code *out, const uint8_t *code, size_t len, uint64_t addr)
{
	struct machine machine = {.out = out};
	size_t at = 0;

	while (!machine.done) {
		const struct instruction *instruction = recognise(code + at, len - at);

		if (!instruction || (machine.rax == LOADED && !instruction->keeps_answer))
			return -EINVAL;
		at += instruction->opcode_len;
		machine.next = addr + at + instruction->operand_len;
		instruction->run(&machine, code + at);
		at += instruction->operand_len;
	}
	return machine.rax == LOADED ? 0 : -EINVAL;
}
