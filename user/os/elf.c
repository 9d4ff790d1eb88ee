/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading is libelf's, by ELF_C_READ, which copies with pread; a file cut off while it is mapped
 * (ELF_C_READ_MMAP) would kill the reader. Added here: limits, since libelf allocates whatever a header says
 * as long as the file is that large, and a sparse file is as large as you like; symbol tables by way of
 * PT_DYNAMIC, as the dynamic linker finds them when section headers are stripped or lie; the hash tables of
 * that view. Formats: elf(5), and for DT_GNU_HASH elf/dl-lookup.c of glibc. A symbol is searched linearly: a
 * few lookups per file pay for no index.
 */
#include "os/elf.h"

#include "base/util.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
#else
#error "unknown ELF machine"
#endif

enum {
	MAX_SEGMENTS = 4096,
	MAX_TABLE = 1 << 28, /* bytes of one symbol or string table */
	MAX_CHAIN = 4096,    /* symbols of one hash bucket */
};

struct elf {
	int fd;
	Elf *file;
	uint64_t page_mask;
	const Elf64_Ehdr *header; /* this and the segments are libelf's */
	const Elf64_Phdr *segments;
	size_t segments_cnt, sections_cnt;
	uint64_t dynamic[DT_NUM]; /* value of each tag, 0 = absent: nothing is at 0, where the header is */
	uint64_t gnu_hash;
	char soname[256];
};

/* ---- reading ---- */

/*
 * A copy of a part of the file, whole or NULL; libelf keeps it, and gives it again, until the file is closed.
 */
static Elf_Data *load(const struct elf *elf, uint64_t offset, uint64_t len, Elf_Type type)
{
	return len && len <= MAX_TABLE ? elf_getdata_rawchunk(elf->file, offset, len, type) : NULL;
}

static bool read_whole(const struct elf *elf, uint64_t offset, void *dest, size_t len)
{
	return offset <= INT64_MAX - len && pread(elf->fd, dest, len, offset) == (ssize_t)len;
}

static const Elf64_Phdr *find_segment(const struct elf *elf, uint32_t type)
{
	for (size_t i = 0; i < elf->segments_cnt; i++) {
		if (elf->segments[i].p_type == type)
			return &elf->segments[i];
	}
	return NULL;
}

static const Elf64_Shdr *section(const struct elf *elf, size_t index)
{
	return index < elf->sections_cnt ? elf64_getshdr(elf_getscn(elf->file, index)) : NULL;
}

/* File offset of a link-view address, by the PT_LOAD whose bytes in the file hold it. */
static bool offset_of_vaddr(const struct elf *elf, uint64_t vaddr, uint64_t *offset)
{
	for (size_t i = 0; vaddr && i < elf->segments_cnt; i++) {
		const Elf64_Phdr *segment = &elf->segments[i];

		if (segment->p_type == PT_LOAD && vaddr - segment->p_vaddr < segment->p_filesz) {
			*offset = segment->p_offset + (vaddr - segment->p_vaddr);
			return true;
		}
	}
	return false;
}

/* Is the NUL-terminated string at `offset` of a string table `name`? */
static bool string_is(const Elf_Data *strings, uint64_t offset, const char *name)
{
	size_t name_len = strlen(name);

	return offset < strings->d_size && strings->d_size - offset > name_len &&
	       !memcmp((const char *)strings->d_buf + offset, name, name_len + 1);
}

/* ---- opening ---- */

/*
 * A file with section headers and e_shnum 0 says "see the first of them" (more than 65,279 sections, which no
 * linked program comes near). elf_begin would allocate and fill up to 2^32 descriptors for it.
 */
static bool is_ours(const Elf64_Ehdr *header)
{
	return !memcmp(header->e_ident, ELFMAG, SELFMAG) && header->e_ident[EI_CLASS] == ELFCLASS64 &&
	       header->e_ident[EI_DATA] == ELFDATA2LSB && header->e_machine == HOST_MACHINE &&
	       (header->e_type == ET_EXEC || header->e_type == ET_DYN) &&
	       (header->e_shnum || !header->e_shoff);
}

static int open_file(struct elf *elf)
{
	Elf64_Ehdr header;
	struct stat st;

	if (fstat(elf->fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || !read_whole(elf, 0, &header, sizeof(header)) || !is_ours(&header))
		return -ENOEXEC;
	elf_version(EV_CURRENT);
	elf->file = elf_begin(elf->fd, ELF_C_READ, NULL);
	elf->header = elf64_getehdr(elf->file);
	/* libelf has read the header once more; from here on its copy counts. */
	return elf->header && is_ours(elf->header) ? 0 : -ENOEXEC;
}

/* libelf does not look at the sizes of entries. */
static void load_headers(struct elf *elf)
{
	if (elf->header->e_phentsize == sizeof(Elf64_Phdr) && elf->header->e_phnum <= MAX_SEGMENTS)
		elf->segments = elf64_getphdr(elf->file);
	elf->segments_cnt = elf->segments ? elf->header->e_phnum : 0;
	if (elf->header->e_shentsize == sizeof(Elf64_Shdr))
		elf_getshdrnum(elf->file, &elf->sections_cnt);
}

static void load_dynamic(struct elf *elf)
{
	const Elf64_Phdr *segment = find_segment(elf, PT_DYNAMIC);
	Elf_Data *entries;
	uint64_t offset;
	GElf_Dyn entry;

	if (!segment)
		return;
	entries = load(elf, segment->p_offset, segment->p_filesz, ELF_T_DYN);
	for (int i = 0; gelf_getdyn(entries, i, &entry) && entry.d_tag != DT_NULL; i++) {
		if (entry.d_tag == DT_GNU_HASH)
			elf->gnu_hash = entry.d_un.d_val;
		else if (entry.d_tag > 0 && entry.d_tag < DT_NUM)
			elf->dynamic[entry.d_tag] = entry.d_un.d_val;
	}
	if (elf->dynamic[DT_SONAME] && elf->dynamic[DT_SONAME] < elf->dynamic[DT_STRSZ] &&
	    offset_of_vaddr(elf, elf->dynamic[DT_STRTAB], &offset))
		pread(elf->fd, elf->soname, sizeof(elf->soname) - 1, offset + elf->dynamic[DT_SONAME]);
}

int elf__open(struct elf **out, int fd)
{
	struct elf *elf = calloc(1, sizeof(*elf));
	int err;

	*out = NULL;
	if (!elf)
		return -ENOMEM;
	elf->fd = fd;
	elf->page_mask = sysconf(_SC_PAGESIZE) - 1;
	err = open_file(elf);
	if (err) {
		elf__close(elf);
		return err;
	}
	load_headers(elf);
	load_dynamic(elf);
	*out = elf;
	return 0;
}

void elf__close(struct elf *elf)
{
	if (elf)
		elf_end(elf->file);
	free(elf);
}

/* ---- addresses ---- */

bool elf__is_fixed(const struct elf *elf)
{
	return elf->header->e_type == ET_EXEC;
}

int elf__vaddr_of_offset(const struct elf *elf, uint64_t offset, uint64_t *vaddr)
{
	const Elf64_Phdr *found = NULL;

	for (size_t i = 0; i < elf->segments_cnt; i++) {
		const Elf64_Phdr *segment = &elf->segments[i];
		uint64_t start = segment->p_offset & ~elf->page_mask;

		if (segment->p_type != PT_LOAD || !segment->p_filesz || offset < start ||
		    (offset > segment->p_offset && offset - segment->p_offset >= segment->p_filesz))
			continue;
		/*
		 * The page where one segment ends and the next begins is mapped by both; a mapping that
		 * starts there is the next one's.
		 */
		if (!found || start == offset)
			found = segment;
	}
	if (!found)
		return -ENOENT;
	*vaddr = found->p_vaddr - found->p_offset + offset;
	return 0;
}

const char *elf__soname(const struct elf *elf)
{
	return elf->soname;
}

int elf__section(const struct elf *elf, const char *name, uint64_t *vaddr, uint64_t *size)
{
	const Elf64_Shdr *table = section(elf, elf->header->e_shstrndx), *found;
	Elf_Data *names = NULL;

	if (table && table->sh_type == SHT_STRTAB)
		names = load(elf, table->sh_offset, table->sh_size, ELF_T_BYTE);
	for (size_t i = 1; names && (found = section(elf, i)); i++) {
		/* Sections that are not loaded have no address. */
		if ((found->sh_flags & SHF_ALLOC) && string_is(names, found->sh_name, name)) {
			*vaddr = found->sh_addr;
			*size = found->sh_size;
			return 0;
		}
	}
	return -ENOENT;
}

/* ---- symbols ---- */

struct gnu_hash_header {
	uint32_t buckets_cnt, first_symbol, bloom_words, bloom_shift;
};

/*
 * DT_GNU_HASH does not say how many symbols there are. They are sorted by bucket, so the last one is at the
 * end of the chain of the bucket that starts last; bit 0 marks the end.
 */
static uint64_t count_by_gnu_hash(const struct elf *elf, uint64_t offset)
{
	struct gnu_hash_header header;
	uint32_t last = 0, link;
	Elf_Data *buckets;

	if (!read_whole(elf, offset, &header, sizeof(header)))
		return 0;
	offset += sizeof(header) + header.bloom_words * sizeof(uint64_t);
	buckets = load(elf, offset, header.buckets_cnt * sizeof(uint32_t), ELF_T_WORD);
	for (size_t i = 0; buckets && i < header.buckets_cnt; i++)
		last = max_u64(last, ((const uint32_t *)buckets->d_buf)[i]);
	if (last < header.first_symbol)
		return 0; /* every bucket is empty */
	offset += (header.buckets_cnt + (uint64_t)last - header.first_symbol) * sizeof(link);
	for (uint64_t i = 0; i < MAX_CHAIN && read_whole(elf, offset + i * sizeof(link), &link, sizeof(link));
	     i++) {
		if (link & 1)
			return last + i + 1;
	}
	return 0;
}

/*
 * elf/dl-lookup.c, do_lookup_x: two bits of one word, chosen by the hash, are set for every symbol that is
 * there.
 */
bool elf__may_export(const struct elf *elf, const char *name)
{
	struct gnu_hash_header header;
	uint32_t hash = 5381;
	uint64_t offset, word, bits;

	if (!offset_of_vaddr(elf, elf->gnu_hash, &offset) ||
	    !read_whole(elf, offset, &header, sizeof(header)) || !header.bloom_words)
		return true;
	while (*name)
		hash = hash * 33 + (unsigned char)*name++;
	offset += sizeof(header) + hash / 64 % header.bloom_words * sizeof(word);
	if (!read_whole(elf, offset, &word, sizeof(word)))
		return true;
	bits = 1ull << hash % 64 | 1ull << (hash >> header.bloom_shift % 32) % 64;
	return (word & bits) == bits;
}

static uint64_t count_dynamic_symbols(const struct elf *elf)
{
	uint32_t counts[2]; /* nbucket, nchain = number of symbols */
	uint64_t offset;

	if (offset_of_vaddr(elf, elf->dynamic[DT_HASH], &offset) &&
	    read_whole(elf, offset, counts, sizeof(counts)))
		return counts[1];
	return offset_of_vaddr(elf, elf->gnu_hash, &offset) ? count_by_gnu_hash(elf, offset) : 0;
}

static bool find_symbol(Elf_Data *symbols, Elf_Data *strings, const char *name, struct elf_symbol *out)
{
	GElf_Sym symbol;

	for (int i = 0; strings && gelf_getsym(symbols, i, &symbol); i++) {
		unsigned int type = GELF_ST_TYPE(symbol.st_info);

		if (symbol.st_shndx == SHN_UNDEF || type == STT_FILE || type == STT_SECTION ||
		    !string_is(strings, symbol.st_name, name))
			continue;
		*out = (struct elf_symbol){symbol.st_value, symbol.st_size};
		return true;
	}
	return false;
}

static bool find_in_dynamic(const struct elf *elf, const char *name, struct elf_symbol *out)
{
	uint64_t symbols, strings, len = count_dynamic_symbols(elf) * sizeof(Elf64_Sym);

	return offset_of_vaddr(elf, elf->dynamic[DT_SYMTAB], &symbols) &&
	       offset_of_vaddr(elf, elf->dynamic[DT_STRTAB], &strings) &&
	       find_symbol(load(elf, symbols, len, ELF_T_SYM),
			   load(elf, strings, elf->dynamic[DT_STRSZ], ELF_T_BYTE), name, out);
}

static bool find_in_section(const struct elf *elf, uint32_t type, const char *name, struct elf_symbol *out)
{
	const Elf64_Shdr *symbols, *strings;

	for (size_t i = 1; (symbols = section(elf, i)); i++) {
		strings = symbols->sh_type == type ? section(elf, symbols->sh_link) : NULL;
		if (strings && strings->sh_type == SHT_STRTAB)
			return find_symbol(load(elf, symbols->sh_offset, symbols->sh_size, ELF_T_SYM),
					   load(elf, strings->sh_offset, strings->sh_size, ELF_T_BYTE), name,
					   out);
	}
	return false;
}

int elf__symbol(const struct elf *elf, const char *name, struct elf_symbol *out)
{
	bool found =
		*name && (find_in_dynamic(elf, name, out) || find_in_section(elf, SHT_DYNSYM, name, out) ||
			  find_in_section(elf, SHT_SYMTAB, name, out));

	return found ? 0 : -ENOENT;
}
