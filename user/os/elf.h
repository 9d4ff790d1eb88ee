/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The little of an ELF file that is needed: where a section or a symbol lies in memory. Files without (or
 * with broken) section headers are served through PT_DYNAMIC. The file is hostile and may change while it is
 * read: nothing is mapped, so a truncation cannot kill us, and what libelf is asked to load is limited first.
 */
#pragma once

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

struct elf_symbol {
	uint64_t vaddr; /* st_value */
	uint64_t size;  /* st_size; 0 when unknown */
};

struct elf;

/*
 * fd stays the caller's and must stay open until elf__close. 0; -ENOEXEC for a file that is not a 64-bit
 * little-endian ELF of this machine; -errno.
 */
int elf__open(struct elf **out, int fd);
void elf__close(struct elf *elf);

/* Is e_type ET_EXEC (fixed address)? */
bool elf__is_fixed(const struct elf *elf);
/* vaddr of the first byte of a mapping at this file offset: the PT_LOAD that contains it. 0 or -ENOENT. */
int elf__vaddr_of_offset(const struct elf *elf, uint64_t offset, uint64_t *vaddr);

/*
 * Address and size of a loaded section by name. 0 or -ENOENT (also when the section table is absent or
 * broken).
 */
int elf__section(const struct elf *elf, const char *name, uint64_t *vaddr, uint64_t *size);
/*
 * A defined symbol from the dynamic symbols (by PT_DYNAMIC + DT_HASH/DT_GNU_HASH or by section headers), else
 * .symtab. Local symbols and thread-local ones (vaddr is their offset in the TLS block) are found too. 0 or
 * -ENOENT.
 */
int elf__symbol(const struct elf *elf, const char *name, struct elf_symbol *out);
/*
 * Could the file export this symbol? Asks DT_GNU_HASH's Bloom filter only, in two short reads: false is
 * certain, true is true or one time in many not. For looking through hundreds of libraries.
 */
bool elf__may_export(const struct elf *elf, const char *name);
/* DT_SONAME, or "" ; borrowed until close. */
const char *elf__soname(const struct elf *elf);
