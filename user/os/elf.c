/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Headers are read when a file is opened, symbol tables when the first symbol is asked for. There may be up
 * to three tables, tried in turn: the one that PT_DYNAMIC names (what the dynamic linker uses, so it is there
 * even in stripped files), then .dynsym and .symtab by section headers. A symbol is searched linearly: a few
 * lookups per file do not pay for the hash tables, which serve only to count the symbols. Formats: elf(5),
 * and for DT_GNU_HASH elf/dl-lookup.c of glibc.
 */
#include "os/elf.h"

#include "base/util.h"

#include <elf.h>
#include <errno.h>
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
	MAX_DYNAMIC_BYTES = 65536,
	MAX_NAME_TABLE = 1 << 24, /* section names */
	MAX_TABLE = 1 << 28,	  /* bytes of one symbol or string table */
	MAX_SYMBOLS = MAX_TABLE / sizeof(Elf64_Sym),
};

/* Values of the dynamic section, 0 where absent: no table can be at address 0, where the ELF header is. */
struct dynamic {
	uint64_t symbols, strings, strings_len, hash, gnu_hash, soname;
};

enum table_source { FROM_DYNAMIC, FROM_DYNSYM, FROM_SYMTAB, TABLE_SOURCES };

struct symbol_table {
	bool loaded; /* tried at least */
	Elf64_Sym *symbols;
	size_t count;
	char *strings;
	size_t strings_len;
};

struct elf {
	int fd;
	uint64_t size;
	uint64_t page_mask;
	Elf64_Ehdr header;
	Elf64_Phdr *segments;
	size_t segments_cnt;
	Elf64_Shdr *sections;
	size_t sections_cnt;
	char *section_names;
	size_t section_names_len;
	struct dynamic dynamic;
	struct symbol_table
		*tables; /* TABLE_SOURCES of them; apart, since lookups on a const elf fill them */
	char soname[256];
};

/* ---- reading ---- */

/* Bytes read, from the front: fewer than len at the end of the file or after an error. */
static size_t read_some(const struct elf *elf, uint64_t offset, void *dest, size_t len)
{
	size_t got = 0;

	if (offset > INT64_MAX - len)
		return 0;
	while (got < len) {
		ssize_t n = pread(elf->fd, (char *)dest + got, len - got, offset + got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		got += n;
	}
	return got;
}

static bool read_whole(const struct elf *elf, uint64_t offset, void *dest, size_t len)
{
	return read_some(elf, offset, dest, len) == len;
}

/* A copy of a part of the file, all of it or NULL. The caller frees it. */
static void *load(const struct elf *elf, uint64_t offset, uint64_t len, uint64_t max_len)
{
	void *bytes;

	if (!len || len > max_len || len > elf->size || offset > elf->size - len)
		return NULL;
	bytes = malloc(len);
	if (bytes && !read_whole(elf, offset, bytes, len)) {
		free(bytes);
		return NULL;
	}
	return bytes;
}

/* File offset of a link-view address, by the PT_LOAD whose bytes in the file hold it. */
static bool offset_of_vaddr(const struct elf *elf, uint64_t vaddr, uint64_t *offset)
{
	for (size_t i = 0; i < elf->segments_cnt; i++) {
		const Elf64_Phdr *segment = &elf->segments[i];

		if (segment->p_type == PT_LOAD && vaddr >= segment->p_vaddr &&
		    vaddr - segment->p_vaddr < segment->p_filesz) {
			*offset = segment->p_offset + (vaddr - segment->p_vaddr);
			return true;
		}
	}
	return false;
}

static const Elf64_Phdr *find_segment(const struct elf *elf, uint32_t type)
{
	for (size_t i = 0; i < elf->segments_cnt; i++) {
		if (elf->segments[i].p_type == type)
			return &elf->segments[i];
	}
	return NULL;
}

static const Elf64_Shdr *find_section(const struct elf *elf, uint32_t type)
{
	for (size_t i = 0; i < elf->sections_cnt; i++) {
		if (elf->sections[i].sh_type == type)
			return &elf->sections[i];
	}
	return NULL;
}

/* Is the NUL-terminated string at `offset` of a string table `name`? */
static bool string_is(const char *strings, size_t strings_len, uint64_t offset, const char *name,
		      size_t name_len)
{
	return offset < strings_len && strings_len - offset > name_len &&
	       !memcmp(strings + offset, name, name_len + 1);
}

/* ---- opening ---- */

static bool is_ours(const Elf64_Ehdr *header)
{
	return !memcmp(header->e_ident, ELFMAG, SELFMAG) && header->e_ident[EI_CLASS] == ELFCLASS64 &&
	       header->e_ident[EI_DATA] == ELFDATA2LSB && header->e_machine == HOST_MACHINE &&
	       (header->e_type == ET_EXEC || header->e_type == ET_DYN);
}

static void load_segments(struct elf *elf)
{
	size_t count = elf->header.e_phnum;

	if (elf->header.e_phentsize != sizeof(Elf64_Phdr) || count > MAX_SEGMENTS)
		return;
	elf->segments = load(elf, elf->header.e_phoff, count * sizeof(Elf64_Phdr), UINT32_MAX);
	elf->segments_cnt = elf->segments ? count : 0;
}

/* No support for the extended numbering of more than 65,279 sections, which no linked program comes near. */
static void load_sections(struct elf *elf)
{
	const Elf64_Ehdr *header = &elf->header;
	const Elf64_Shdr *names;
	size_t count = header->e_shnum;

	if (header->e_shentsize != sizeof(Elf64_Shdr))
		return;
	elf->sections = load(elf, header->e_shoff, count * sizeof(Elf64_Shdr), UINT32_MAX);
	elf->sections_cnt = elf->sections ? count : 0;
	if (header->e_shstrndx >= elf->sections_cnt)
		return;
	names = &elf->sections[header->e_shstrndx];
	if (names->sh_type != SHT_STRTAB)
		return;
	elf->section_names = load(elf, names->sh_offset, names->sh_size, MAX_NAME_TABLE);
	elf->section_names_len = elf->section_names ? names->sh_size : 0;
}

static void take_dynamic_entry(struct dynamic *dynamic, const Elf64_Dyn *entry)
{
	uint64_t value = entry->d_un.d_val;

	switch (entry->d_tag) {
	case DT_SYMTAB:
		dynamic->symbols = value;
		break;
	case DT_STRTAB:
		dynamic->strings = value;
		break;
	case DT_STRSZ:
		dynamic->strings_len = value;
		break;
	case DT_HASH:
		dynamic->hash = value;
		break;
	case DT_GNU_HASH:
		dynamic->gnu_hash = value;
		break;
	case DT_SONAME:
		dynamic->soname = value;
		break;
	}
}

static void read_soname(struct elf *elf)
{
	uint64_t offset;
	size_t got;

	if (!elf->dynamic.soname || elf->dynamic.soname >= elf->dynamic.strings_len ||
	    !offset_of_vaddr(elf, elf->dynamic.strings, &offset))
		return;
	got = read_some(elf, offset + elf->dynamic.soname, elf->soname, sizeof(elf->soname) - 1);
	elf->soname[got] = '\0';
}

static void load_dynamic(struct elf *elf)
{
	const Elf64_Phdr *segment = find_segment(elf, PT_DYNAMIC);
	Elf64_Dyn *entries;
	size_t count;

	if (!segment)
		return;
	entries = load(elf, segment->p_offset, segment->p_filesz, MAX_DYNAMIC_BYTES);
	if (!entries)
		return;
	count = segment->p_filesz / sizeof(*entries);
	for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++)
		take_dynamic_entry(&elf->dynamic, &entries[i]);
	free(entries);
	read_soname(elf);
}

int elf__open(struct elf **out, int fd)
{
	struct elf *elf = calloc(1, sizeof(*elf));
	struct stat st;
	int err = 0;

	*out = NULL;
	if (elf)
		elf->tables = calloc(TABLE_SOURCES, sizeof(*elf->tables));
	if (!elf || !elf->tables) {
		err = -ENOMEM;
		goto out;
	}
	if (fstat(fd, &st)) {
		err = -errno;
		goto out;
	}
	elf->fd = fd;
	elf->size = st.st_size;
	elf->page_mask = sysconf(_SC_PAGESIZE) - 1;
	if (!read_whole(elf, 0, &elf->header, sizeof(elf->header)) || !is_ours(&elf->header)) {
		err = -ENOEXEC;
		goto out;
	}
	load_segments(elf);
	load_sections(elf);
	load_dynamic(elf);
	*out = elf;
out:
	if (err)
		elf__close(elf);
	return err;
}

void elf__close(struct elf *elf)
{
	if (!elf)
		return;
	for (size_t i = 0; elf->tables && i < TABLE_SOURCES; i++) {
		free(elf->tables[i].symbols);
		free(elf->tables[i].strings);
	}
	free(elf->tables);
	free(elf->section_names);
	free(elf->sections);
	free(elf->segments);
	free(elf);
}

/* ---- addresses ---- */

bool elf__is_fixed(const struct elf *elf)
{
	return elf->header.e_type == ET_EXEC;
}

uint64_t elf__link_base(const struct elf *elf)
{
	const Elf64_Phdr *first = NULL;

	for (size_t i = 0; i < elf->segments_cnt; i++) {
		const Elf64_Phdr *segment = &elf->segments[i];

		if (segment->p_type == PT_LOAD && (!first || segment->p_offset < first->p_offset))
			first = segment;
	}
	return first ? (first->p_vaddr - first->p_offset) & ~elf->page_mask : 0;
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
		/* The page where one segment ends and the next begins is mapped by both; a mapping that
		 * starts there is the next one's. */
		if (!found || start == offset)
			found = segment;
	}
	if (!found)
		return -ENOENT;
	*vaddr = found->p_vaddr - found->p_offset + offset;
	return 0;
}

int elf__tls(const struct elf *elf, uint64_t *memsz, uint64_t *align)
{
	const Elf64_Phdr *segment = find_segment(elf, PT_TLS);

	/* Callers round up to the alignment; 0 stands for none. */
	if (!segment || (segment->p_align & (segment->p_align - 1)))
		return -ENOENT;
	*memsz = segment->p_memsz;
	*align = segment->p_align ?: 1;
	return 0;
}

const char *elf__soname(const struct elf *elf)
{
	return elf->soname;
}

int elf__section(const struct elf *elf, const char *name, uint64_t *vaddr, uint64_t *size)
{
	size_t name_len = strlen(name);

	for (size_t i = 0; i < elf->sections_cnt; i++) {
		const Elf64_Shdr *section = &elf->sections[i];

		/* Sections that are not loaded have no address. */
		if ((section->sh_flags & SHF_ALLOC) &&
		    string_is(elf->section_names, elf->section_names_len, section->sh_name, name, name_len)) {
			*vaddr = section->sh_addr;
			*size = section->sh_size;
			return 0;
		}
	}
	return -ENOENT;
}

/* ---- symbols ---- */

struct gnu_hash_header {
	uint32_t buckets_cnt, first_symbol, bloom_words, bloom_shift;
};

static uint64_t max_bucket(const struct elf *elf, uint64_t offset, uint32_t buckets_cnt)
{
	uint32_t *buckets = load(elf, offset, (uint64_t)buckets_cnt * sizeof(*buckets), MAX_TABLE);
	uint64_t max = 0;

	for (uint32_t i = 0; buckets && i < buckets_cnt; i++)
		max = max_u64(max, buckets[i]);
	free(buckets);
	return max;
}

/*
 * DT_GNU_HASH does not say how many symbols there are. They are sorted by bucket, so the last one is at the
 * end of the chain of the bucket that starts last; bit 0 marks the end.
 */
static uint64_t count_by_gnu_hash(const struct elf *elf, uint64_t offset)
{
	struct gnu_hash_header header;
	uint64_t buckets, chains, last;
	uint32_t links[256];

	if (!read_whole(elf, offset, &header, sizeof(header)))
		return 0;
	buckets = offset + sizeof(header) + header.bloom_words * sizeof(uint64_t);
	chains = buckets + header.buckets_cnt * (uint64_t)sizeof(uint32_t);
	last = max_bucket(elf, buckets, header.buckets_cnt);
	if (last < header.first_symbol)
		return 0; /* every bucket is empty */

	while (last < MAX_SYMBOLS) {
		size_t got = read_some(elf, chains + (last - header.first_symbol) * sizeof(uint32_t), links,
				       sizeof(links)) /
			     sizeof(uint32_t);

		for (size_t i = 0; i < got; i++) {
			if (links[i] & 1)
				return last + i + 1;
		}
		if (got < ARRAY_SIZE(links))
			break;
		last += got;
	}
	return 0;
}

/* elf/dl-lookup.c, do_lookup_x: two bits of one word, chosen by the hash, are set for every symbol that is there. */
bool elf__may_export(const struct elf *elf, const char *name)
{
	struct gnu_hash_header header;
	uint32_t hash = 5381;
	uint64_t offset, word, bits;

	if (!elf->dynamic.gnu_hash || !offset_of_vaddr(elf, elf->dynamic.gnu_hash, &offset) ||
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

	if (elf->dynamic.hash && offset_of_vaddr(elf, elf->dynamic.hash, &offset) &&
	    read_whole(elf, offset, counts, sizeof(counts)))
		return counts[1];
	if (elf->dynamic.gnu_hash && offset_of_vaddr(elf, elf->dynamic.gnu_hash, &offset))
		return count_by_gnu_hash(elf, offset);
	return 0;
}

static void load_table_bytes(const struct elf *elf, struct symbol_table *table, uint64_t symbols,
			     uint64_t count, uint64_t strings, uint64_t strings_len)
{
	if (count > MAX_SYMBOLS)
		return;
	table->symbols = load(elf, symbols, count * sizeof(Elf64_Sym), MAX_TABLE);
	table->strings = load(elf, strings, strings_len, MAX_TABLE);
	if (!table->symbols || !table->strings)
		return;
	table->count = count;
	table->strings_len = strings_len;
}

static void load_from_dynamic(const struct elf *elf, struct symbol_table *table)
{
	uint64_t symbols, strings;

	if (offset_of_vaddr(elf, elf->dynamic.symbols, &symbols) &&
	    offset_of_vaddr(elf, elf->dynamic.strings, &strings))
		load_table_bytes(elf, table, symbols, count_dynamic_symbols(elf), strings,
				 elf->dynamic.strings_len);
}

static void load_from_section(const struct elf *elf, struct symbol_table *table, uint32_t type)
{
	const Elf64_Shdr *symbols = find_section(elf, type), *strings;

	if (!symbols || symbols->sh_link >= elf->sections_cnt)
		return;
	strings = &elf->sections[symbols->sh_link];
	if (strings->sh_type == SHT_STRTAB)
		load_table_bytes(elf, table, symbols->sh_offset, symbols->sh_size / sizeof(Elf64_Sym),
				 strings->sh_offset, strings->sh_size);
}

static const struct symbol_table *symbol_table(const struct elf *elf, enum table_source source)
{
	struct symbol_table *table = &elf->tables[source];

	if (!table->loaded) {
		table->loaded = true;
		if (source == FROM_DYNAMIC)
			load_from_dynamic(elf, table);
		else
			load_from_section(elf, table, source == FROM_DYNSYM ? SHT_DYNSYM : SHT_SYMTAB);
	}
	return table;
}

static bool find_symbol(const struct symbol_table *table, const char *name, struct elf_symbol *out)
{
	size_t name_len = strlen(name);

	for (size_t i = 0; i < table->count; i++) {
		const Elf64_Sym *symbol = &table->symbols[i];
		unsigned int type = ELF64_ST_TYPE(symbol->st_info);

		if (symbol->st_shndx == SHN_UNDEF || type == STT_FILE || type == STT_SECTION ||
		    !string_is(table->strings, table->strings_len, symbol->st_name, name, name_len))
			continue;
		*out = (struct elf_symbol){symbol->st_value, symbol->st_size};
		return true;
	}
	return false;
}

int elf__symbol(const struct elf *elf, const char *name, struct elf_symbol *out)
{
	for (int source = 0; *name && source < TABLE_SOURCES; source++) {
		if (find_symbol(symbol_table(elf, source), name, out))
			return 0;
	}
	return -ENOENT;
}
