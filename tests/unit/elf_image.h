/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A small ELF file: two segments that share a page, dynamic symbols by both kinds of hash table, sections,
 * thread-local storage; each part can be left out.
 */
#pragma once

#include "base/util.h"

#include <assert.h>
#include <elf.h>
#include <stdint.h>
#include <string.h>

enum {
	BASE = 0x400000,
	DATA_SHIFT = 0x2000
}; /* the data segment is linked 0x2000 further than it lies in the file */

enum part { NO_SECTIONS = 1, NO_DYNAMIC = 2, NO_HASH = 4, NO_GNU_HASH = 8 };

enum { SYMBOLS = 6, SECTIONS = 7 };

struct image {
	Elf64_Ehdr header;
	Elf64_Phdr segments[4];
	Elf64_Sym symbols[SYMBOLS];
	char strings[64];
	struct {
		uint32_t nbucket, nchain, bucket[2], chain[SYMBOLS];
	} hash;
	struct {
		uint32_t nbuckets, first_symbol, bloom_words, bloom_shift;
		uint64_t bloom;
		uint32_t buckets[3], chains[SYMBOLS - 2];
	} gnu_hash;
	char padding[0x1db8 - 0x400];
	/* Second segment, in the page where the first one ends. */
	Elf64_Dyn dynamic[8];
	char runtime[64];
	/* Not loaded. */
	Elf64_Sym symtab[4];
	char symtab_strings[32];
	char section_names[64];
	Elf64_Shdr sections[SECTIONS];
};

#define VADDR(field) (BASE + offsetof(struct image, field))

static inline uint32_t add_string(char *strings, size_t size, const char *s)
{
	size_t len = 1;

	while (strings[len])
		len += strlen(strings + len) + 1;
	assert(len + strlen(s) + 1 <= size);
	strcpy(strings + len, s);
	return len;
}

static inline void make_symbols(struct image *image)
{
	static const struct {
		const char *name;
		Elf64_Sym symbol;
	} symbols[SYMBOLS - 1] = {
		{"imported",
		 {.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = SHN_UNDEF, .st_value = 1}},
		{"function",
		 {.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1, .st_value = 0x400abc}},
		{"_Py", {.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), .st_shndx = 5, .st_value = 2}},
		{"_PyRuntime",
		 {.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
		  .st_shndx = 5,
		  .st_value = VADDR(runtime) + DATA_SHIFT,
		  .st_size = sizeof(image->runtime)}},
		{"last",
		 {.st_info = ELF64_ST_INFO(STB_WEAK, STT_OBJECT), .st_shndx = SHN_ABS, .st_value = 77}},
	};

	for (int i = 1; i < SYMBOLS; i++) {
		image->symbols[i] = symbols[i - 1].symbol;
		image->symbols[i].st_name =
			add_string(image->strings, sizeof(image->strings), symbols[i - 1].name);
	}
	image->hash.nbucket = 2;
	image->hash.nchain = SYMBOLS;
	/* Buckets of symbols 2 and 3, of none, and of 4 and 5. */
	image->gnu_hash.nbuckets = 3;
	image->gnu_hash.first_symbol = 2;
	image->gnu_hash.bloom_words = 1;
	image->gnu_hash.buckets[0] = 2;
	image->gnu_hash.buckets[2] = 4;
	image->gnu_hash.chains[0] = 0xabc0;
	image->gnu_hash.chains[1] = 0xabc1;
	image->gnu_hash.chains[2] = 0xdef0;
	image->gnu_hash.chains[3] = 0xdef1;
}

static inline void make_segments(struct image *image)
{
	uint64_t data = offsetof(struct image, dynamic), data_len = offsetof(struct image, symtab) - data;

	image->segments[0] =
		(Elf64_Phdr){.p_type = PT_LOAD, .p_vaddr = BASE, .p_filesz = data, .p_memsz = data};
	image->segments[1] = (Elf64_Phdr){.p_type = PT_LOAD,
					  .p_offset = data,
					  .p_vaddr = BASE + DATA_SHIFT + data,
					  .p_filesz = data_len,
					  .p_memsz = data_len + 0x5000};
	image->segments[2] = (Elf64_Phdr){.p_type = PT_DYNAMIC,
					  .p_offset = data,
					  .p_vaddr = BASE + DATA_SHIFT + data,
					  .p_filesz = sizeof(image->dynamic)};
	image->segments[3] = (Elf64_Phdr){.p_type = PT_TLS, .p_memsz = 25, .p_align = 8};
}

static inline void make_dynamic(struct image *image, unsigned int without)
{
	Elf64_Dyn *entry = image->dynamic;

	*entry++ =
		(Elf64_Dyn){DT_SONAME, {add_string(image->strings, sizeof(image->strings), "libmade.so.1")}};
	*entry++ = (Elf64_Dyn){DT_SYMTAB, {VADDR(symbols)}};
	*entry++ = (Elf64_Dyn){DT_STRTAB, {VADDR(strings)}};
	*entry++ = (Elf64_Dyn){DT_STRSZ, {sizeof(image->strings)}};
	if (!(without & NO_HASH))
		*entry++ = (Elf64_Dyn){DT_HASH, {VADDR(hash)}};
	if (!(without & NO_GNU_HASH))
		*entry++ = (Elf64_Dyn){DT_GNU_HASH, {VADDR(gnu_hash)}};
	if (without & NO_DYNAMIC)
		image->segments[2].p_type = PT_NULL;
}

static inline void make_section(struct image *image, int index, const char *name, Elf64_Shdr section)
{
	section.sh_name = add_string(image->section_names, sizeof(image->section_names), name);
	image->sections[index] = section;
}

#define FILE_PART(field)                                                                                     \
	.sh_offset = offsetof(struct image, field), .sh_size = sizeof(((struct image *)0)->field)

static inline void make_sections(struct image *image)
{
	image->symtab[1] = (Elf64_Sym){.st_info = ELF64_ST_INFO(STB_LOCAL, STT_FILE), .st_shndx = SHN_ABS};
	image->symtab[1].st_name = add_string(image->symtab_strings, sizeof(image->symtab_strings), "same");
	image->symtab[2] =
		(Elf64_Sym){.st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT), .st_shndx = 5, .st_value = 88};
	image->symtab[2].st_name = image->symtab[1].st_name;
	image->symtab[3] =
		(Elf64_Sym){.st_info = ELF64_ST_INFO(STB_LOCAL, STT_TLS), .st_shndx = 5, .st_value = 8};
	image->symtab[3].st_name = add_string(image->symtab_strings, sizeof(image->symtab_strings), "tls");

	make_section(
		image, 1, ".dynsym",
		(Elf64_Shdr){.sh_type = SHT_DYNSYM, .sh_link = 2, .sh_flags = SHF_ALLOC, FILE_PART(symbols)});
	make_section(image, 2, ".dynstr",
		     (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_flags = SHF_ALLOC, FILE_PART(strings)});
	make_section(image, 3, ".symtab",
		     (Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_link = 4, FILE_PART(symtab)});
	make_section(image, 4, ".strtab", (Elf64_Shdr){.sh_type = SHT_STRTAB, FILE_PART(symtab_strings)});
	make_section(image, 5, ".PyRuntime",
		     (Elf64_Shdr){.sh_type = SHT_PROGBITS,
				  .sh_flags = SHF_ALLOC | SHF_WRITE,
				  .sh_addr = VADDR(runtime) + DATA_SHIFT,
				  FILE_PART(runtime)});
	make_section(image, 6, ".shstrtab", (Elf64_Shdr){.sh_type = SHT_STRTAB, FILE_PART(section_names)});
}

static inline void make_image(struct image *image, unsigned int without)
{
	memset(image, 0, sizeof(*image));
	image->header = (Elf64_Ehdr)
	{
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT}, .e_type = ET_EXEC,
#if defined(__x86_64__)
		.e_machine = EM_X86_64,
#else
		.e_machine = EM_AARCH64,
#endif
		.e_phoff = offsetof(struct image, segments), .e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = ARRAY_SIZE(image->segments), .e_shoff = offsetof(struct image, sections),
		.e_shentsize = sizeof(Elf64_Shdr), .e_shnum = SECTIONS, .e_shstrndx = 6,
	};
	make_symbols(image);
	make_segments(image);
	make_dynamic(image, without);
	make_sections(image);
	if (without & NO_SECTIONS)
		image->header.e_shoff = image->header.e_shnum = image->header.e_shstrndx = 0;
}
