/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ELF files: this program and its libc, whose addresses are known; Debian's Pythons where they are installed;
 * and a small image made here, whole, with parts missing, cut off, with wrong sizes and with random bits
 * turned.
 */
#include "os/elf.h"

#include "base/util.h"
#include "elf_image.h"
#include "entry_at.h"
#include "os/maps.h"
#include "os/proc.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- real files ---- */

/* The ELF file mapped at an address of ours; `fd` is left open for it. */
static struct elf *open_mapped(const void *address, int *fd, uint64_t *bias, struct map_entry *at)
{
	const struct map_entry *entry;
	struct elf *elf = NULL;
	struct maps maps;
	uint64_t base = 0, linked;

	cr_assert_eq(maps__read(&maps, getpid()), 0);
	entry = entry_at(&maps, (uintptr_t)address);
	cr_assert(entry && entry->inode);
	*fd = maps__open_file(getpid(), entry);
	cr_assert_geq(*fd, 0);
	cr_assert_eq(elf__open(&elf, *fd), 0);

	for (size_t i = 0; i < maps.entries.len && !base; i++) {
		if (maps.entries.items[i].inode == entry->inode && !maps.entries.items[i].offset)
			base = maps.entries.items[i].start;
	}
	cr_assert_eq(elf__vaddr_of_offset(elf, 0, &linked), 0);
	*bias = base - linked;
	*at = *entry;
	maps__free(&maps);
	return elf;
}

Test(elf, this_program)
{
	struct elf_symbol symbol;
	uint64_t bias, vaddr, size;
	struct map_entry entry;
	int fd;
	struct elf *elf = open_mapped(elf__open, &fd, &bias, &entry);

	cr_assert_eq(elf__symbol(elf, "elf__open", &symbol), 0, "in .symtab");
	cr_expect_eq(bias + symbol.vaddr, (uintptr_t)elf__open);
	cr_expect_gt(symbol.size, 16);
	cr_expect_eq(elf__symbol(elf, "elf__", &symbol), -ENOENT, "part of a name");
	cr_expect_eq(elf__symbol(elf, "", &symbol), -ENOENT);
	cr_expect_eq(elf__symbol(elf, "process_vm_readv", &symbol), -ENOENT, "imported, not defined");

	cr_assert_eq(elf__section(elf, ".text", &vaddr, &size), 0);
	cr_expect((uintptr_t)elf__open - bias - vaddr < size);
	cr_expect_eq(elf__section(elf, ".tex", &vaddr, &size), -ENOENT);
	cr_expect_eq(elf__section(elf, ".symtab", &vaddr, &size), -ENOENT, "not loaded");

	cr_assert_eq(elf__vaddr_of_offset(elf, entry.offset, &vaddr), 0);
	cr_expect_eq(vaddr + bias, entry.start);
	elf__close(elf);
	close(fd);
}

Test(elf, libc)
{
	static const char *const names[] = {"getppid", "qsort", "process_vm_readv"};
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	struct map_entry entry;
	struct elf_symbol symbol;
	struct elf *elf;
	uint64_t bias;
	int fd;

	if (!libc)
		cr_skip_test("another libc");
	elf = open_mapped(dlsym(libc, "getppid"), &fd, &bias, &entry);
	cr_expect(!elf__is_fixed(elf));
	cr_expect_str_eq(elf__soname(elf), "libc.so.6");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		cr_assert_eq(elf__symbol(elf, names[i], &symbol), 0, "%s", names[i]);
		cr_expect_eq(bias + symbol.vaddr, (uintptr_t)dlsym(libc, names[i]), "%s", names[i]);
	}
	elf__close(elf);
	close(fd);
	dlclose(libc);
}

/*
 * The linked address is not the file offset, the section is the symbol, and the data begins with the cookie.
 */
Test(elf, debian_pythons)
{
	int tried = 0;

	for (int minor = 13; minor <= 15; minor++) {
		uint64_t vaddr, size, first_vaddr, offset = 0;
		struct elf_symbol symbol;
		struct elf *elf;
		char path[128], cookie[9] = "";
		int fd;

		snprintf(path, sizeof(path), "/var/cache/pybpfprof/forky/usr/bin/python3.%d", minor);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		tried++;
		cr_assert_eq(elf__open(&elf, fd), 0);
		cr_expect(elf__is_fixed(elf));
		cr_expect(!elf__vaddr_of_offset(elf, 0, &first_vaddr) && first_vaddr == 0x400000);
		cr_assert_eq(elf__section(elf, ".PyRuntime", &vaddr, &size), 0);
		cr_assert_eq(elf__symbol(elf, "_PyRuntime", &symbol), 0);
		cr_expect_eq(vaddr, symbol.vaddr);
		cr_expect_eq(size, symbol.size);
		while (elf__vaddr_of_offset(elf, offset, &first_vaddr) || first_vaddr + 4096 <= vaddr)
			offset += 4096;
		cr_expect_eq(pread(fd, cookie, 8, offset + (vaddr - first_vaddr)), 8);
		cr_expect_str_eq(cookie, "xdebugpy");
		elf__close(elf);
		close(fd);
	}
	if (!tried)
		cr_skip_test("no Debian Pythons here");
}

/* ---- made files ---- */

static int file_of(const void *bytes, size_t len)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, bytes, len), (ssize_t)len);
	return fd;
}

static struct elf *open_image(const struct image *image, int *fd)
{
	struct elf *elf = NULL;

	*fd = file_of(image, sizeof(*image));
	cr_assert_eq(elf__open(&elf, *fd), 0);
	return elf;
}

/* st_value of a symbol of an image; 0 when it is not found. */
static uint64_t lookup(const struct image *image, const char *name)
{
	struct elf_symbol symbol = {};
	int fd, err;
	struct elf *elf = open_image(image, &fd);

	err = elf__symbol(elf, name, &symbol);
	cr_expect_eq(err, symbol.vaddr ? 0 : -ENOENT);
	elf__close(elf);
	close(fd);
	return symbol.vaddr;
}

Test(elf, dynamic_symbols_by_every_way)
{
	static const unsigned int ways[] = {
		0,	    NO_SECTIONS,	   NO_SECTIONS | NO_HASH, NO_SECTIONS | NO_GNU_HASH,
		NO_DYNAMIC, NO_HASH | NO_GNU_HASH,
	};

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct image image;

		make_image(&image, ways[i]);
		cr_expect_eq(lookup(&image, "_PyRuntime"), VADDR(runtime) + DATA_SHIFT, "way %zu", i);
		cr_expect_eq(lookup(&image, "function"), 0x400abc, "way %zu", i);
		cr_expect_eq(lookup(&image, "last"), 77, "way %zu", i);
		cr_expect_eq(lookup(&image, "imported"), 0, "way %zu", i);
		cr_expect_eq(lookup(&image, "_PyRuntim"), 0, "way %zu", i);
		cr_expect_eq(lookup(&image, "PyRuntime"), 0, "way %zu", i);
		cr_expect_eq(lookup(&image, "_PyRuntime2"), 0, "way %zu", i);
		cr_expect_eq(lookup(&image, "same"), ways[i] & NO_SECTIONS ? 0 : 88, "way %zu: not the file",
			     i);
		cr_expect_eq(lookup(&image, "tls"), ways[i] & NO_SECTIONS ? 0 : 8, "way %zu", i);
	}
}

/* Section headers that lie do not hide what the dynamic linker sees. */
Test(elf, broken_sections)
{
	struct image image;

	make_image(&image, 0);
	image.sections[1].sh_offset = UINT64_MAX - 10;
	cr_expect_eq(lookup(&image, "function"), 0x400abc);
	make_image(&image, 0);
	image.header.e_shnum = 0xfff0;
	cr_expect_eq(lookup(&image, "function"), 0x400abc);
	make_image(&image, 0);
	image.header.e_shoff = UINT64_MAX - 63;
	cr_expect_eq(lookup(&image, "function"), 0x400abc);
	make_image(&image, 0);
	image.header.e_shentsize = 63;
	cr_expect_eq(lookup(&image, "same"), 0);
}

Test(elf, addresses)
{
	struct image image;
	uint64_t vaddr, size;
	int fd;
	struct elf *elf;

	make_image(&image, 0);
	elf = open_image(&image, &fd);
	cr_expect(elf__is_fixed(elf));
	cr_expect_str_eq(elf__soname(elf), "libmade.so.1");
	cr_assert_eq(elf__section(elf, ".PyRuntime", &vaddr, &size), 0);
	cr_expect(vaddr == VADDR(runtime) + DATA_SHIFT && size == sizeof(image.runtime));
	cr_expect_eq(elf__section(elf, "PyRuntime", &vaddr, &size), -ENOENT);
	cr_expect_eq(elf__section(elf, ".strtab", &vaddr, &size), -ENOENT);
	cr_expect_eq(elf__section(elf, "", &vaddr, &size), -ENOENT);

	cr_expect(!elf__vaddr_of_offset(elf, 0, &vaddr) && vaddr == BASE);
	cr_expect(!elf__vaddr_of_offset(elf, 0xfff, &vaddr) && vaddr == BASE + 0xfff);
	/* Both segments have bytes in this page, but a mapping that begins with it is the second's. */
	cr_expect(!elf__vaddr_of_offset(elf, 0x1000, &vaddr) && vaddr == BASE + DATA_SHIFT + 0x1000);
	cr_expect_eq(elf__vaddr_of_offset(elf, 0x3000, &vaddr), -ENOENT);
	cr_expect_eq(elf__vaddr_of_offset(elf, UINT64_MAX, &vaddr), -ENOENT);
	elf__close(elf);
	elf__close(NULL);
	close(fd);
}

Test(elf, missing_parts)
{
	struct image image;
	uint64_t vaddr, size;
	int fd;
	struct elf *elf;

	make_image(&image, NO_SECTIONS | NO_DYNAMIC);
	image.header.e_type = ET_DYN;
	image.segments[0].p_type = image.segments[1].p_type = image.segments[3].p_type = PT_NULL;
	elf = open_image(&image, &fd);
	cr_expect(!elf__is_fixed(elf));
	cr_expect_str_eq(elf__soname(elf), "");
	cr_expect_eq(elf__section(elf, ".PyRuntime", &vaddr, &size), -ENOENT);
	cr_expect_eq(elf__vaddr_of_offset(elf, 0, &vaddr), -ENOENT);
	elf__close(elf);
	close(fd);
}

Test(elf, not_for_us)
{
	static const struct {
		size_t offset;
		uint8_t value;
	} changes[] = {
		{0, 'E'},     {EI_CLASS, ELFCLASS32}, {EI_DATA, ELFDATA2MSB},
		{18, EM_386}, {16, ET_REL},	      {16, ET_CORE},
	};
	struct elf *elf = (struct elf *)1;
	int fd, pipe_fds[2];

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct image image;

		make_image(&image, 0);
		((uint8_t *)&image)[changes[i].offset] = changes[i].value;
		fd = file_of(&image, sizeof(image));
		cr_expect_eq(elf__open(&elf, fd), -ENOEXEC, "change %zu", i);
		cr_expect_eq(elf, NULL);
		close(fd);
	}
	fd = file_of("", 0);
	cr_expect_eq(elf__open(&elf, fd), -ENOEXEC);
	close(fd);
	cr_assert_eq(pipe(pipe_fds), 0);
	cr_expect_eq(elf__open(&elf, pipe_fds[0]), -ENOEXEC, "would wait for ever");
	fd = open("/tmp", O_RDONLY | O_CLOEXEC);
	cr_expect_eq(elf__open(&elf, fd), -ENOEXEC);
	close(fd);
	cr_expect_eq(elf__open(&elf, -1), -EBADF);
}

/* Everything that can be asked, of a file that may hold anything. */
static void ask_all(int fd)
{
	static const char *const names[] = {"_PyRuntime", "same", "no such name", ".PyRuntime"};
	struct elf_symbol symbol;
	uint64_t a, b;
	struct elf *elf;

	if (elf__open(&elf, fd)) {
		cr_assert_eq(elf, NULL);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		elf__symbol(elf, names[i], &symbol);
		elf__section(elf, names[i], &a, &b);
	}
	elf__vaddr_of_offset(elf, 0, &a);
	elf__vaddr_of_offset(elf, UINT64_MAX, &a);
	cr_assert_lt(strlen(elf__soname(elf)), 256);
	elf__close(elf);
}

Test(elf, truncated_at_every_length)
{
	static const unsigned int ways[] = {0, NO_HASH, NO_DYNAMIC};

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct image image;
		int fd;

		make_image(&image, ways[i]);
		fd = file_of(&image, sizeof(image));
		for (size_t len = sizeof(image); len--;) {
			cr_assert_eq(ftruncate(fd, len), 0);
			ask_all(fd);
		}
		close(fd);
	}
}

/* The file shrinks while it is open: answers get lost, nothing else. */
Test(elf, truncated_after_open)
{
	struct elf_symbol symbol;
	struct image image;
	int fd;
	struct elf *elf;

	make_image(&image, 0);
	elf = open_image(&image, &fd);
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_expect_eq(elf__symbol(elf, "_PyRuntime", &symbol), -ENOENT);
	cr_expect_str_eq(elf__soname(elf), "libmade.so.1");
	elf__close(elf);
	close(fd);
}

Test(elf, hostile_counts)
{
	struct image image;

	make_image(&image, NO_SECTIONS | NO_GNU_HASH);
	image.hash.nchain = UINT32_MAX;
	cr_expect_eq(lookup(&image, "function"), 0);
	image.hash.nchain = 0;
	cr_expect_eq(lookup(&image, "function"), 0);

	make_image(&image, NO_SECTIONS | NO_HASH);
	image.gnu_hash.buckets[1] = UINT32_MAX;
	cr_expect_eq(lookup(&image, "function"), 0);
	make_image(&image, NO_SECTIONS | NO_HASH);
	image.gnu_hash.nbuckets = image.gnu_hash.bloom_words = UINT32_MAX;
	cr_expect_eq(lookup(&image, "imported"), 0);
	make_image(&image, NO_SECTIONS | NO_HASH);
	image.gnu_hash.first_symbol = UINT32_MAX;
	cr_expect_eq(lookup(&image, "function"), 0);

	make_image(&image, NO_SECTIONS);
	image.symbols[2].st_name = sizeof(image.strings);
	image.symbols[3].st_name = UINT32_MAX;
	cr_expect_eq(lookup(&image, "function"), 0);
	cr_expect_eq(lookup(&image, "last"), 77);

	make_image(&image, NO_SECTIONS);
	image.dynamic[3].d_un.d_val =
		image.symbols[2].st_name + strlen("function"); /* DT_STRSZ: no NUL in it */
	cr_expect_eq(lookup(&image, "function"), 0);
	image.dynamic[3].d_un.d_val = UINT64_MAX;
	cr_expect_eq(lookup(&image, "function"), 0);
	image.dynamic[0].d_un.d_val = UINT64_MAX - 1; /* DT_SONAME */
	cr_expect_eq(lookup(&image, "function"), 0);
}

/* A name outside of the string table is none, even where the file has bytes. */
Test(elf, soname_outside)
{
	struct image image;
	int fd;
	struct elf *elf;

	make_image(&image, 0);
	image.dynamic[0].d_un.d_val = offsetof(struct image, runtime) - offsetof(struct image, strings);
	strcpy(image.runtime, "libstray.so");
	elf = open_image(&image, &fd);
	cr_expect_str_eq(elf__soname(elf), "");
	elf__close(elf);
	close(fd);
}

/* Terabytes of nothing cost the owner of the file no disk; they must not cost us the memory. */
Test(elf, sparse_file)
{
	uint64_t before = proc__own_rss();
	struct image image;
	int fd;

	make_image(&image, 0);
	image.hash.nchain = UINT32_MAX;
	image.dynamic[3].d_un.d_val = 1ull << 40;
	image.segments[0].p_filesz = image.segments[2].p_filesz = 1ull << 41;
	for (int i = 1; i < SECTIONS; i++)
		image.sections[i].sh_size = 1ull << 40;
	image.header.e_shnum = 0xfeff;
	fd = file_of(&image, sizeof(image));
	cr_assert_eq(ftruncate(fd, 1ull << 42), 0);
	ask_all(fd);
	cr_expect_lt(proc__own_rss(), before + (64 << 20));
	close(fd);
}

/* Counts that the first section header gives, in a file that is large enough for them. */
Test(elf, extended_numbering)
{
	uint64_t before = proc__own_rss();
	struct image image;
	struct elf *elf = NULL;
	int fd;

	alarm(30);
	make_image(&image, 0);
	image.header.e_shnum = 0;
	image.sections[0].sh_size = 1 << 22;
	fd = file_of(&image, sizeof(image));
	cr_assert_eq(ftruncate(fd, 1ull << 42), 0);
	cr_expect_eq(elf__open(&elf, fd), -ENOEXEC);
	elf__close(elf);
	close(fd);

	make_image(&image, 0);
	image.header.e_phnum = PN_XNUM;
	image.sections[0].sh_info = UINT32_MAX;
	fd = file_of(&image, sizeof(image));
	cr_assert_eq(ftruncate(fd, 1ull << 42), 0);
	ask_all(fd);
	close(fd);
	cr_expect_lt(proc__own_rss(), before + (64 << 20));
}

/* A chain without an end in a large file: bounded by the number of symbols that we are ready to load. */
Test(elf, endless_chain)
{
	enum { FAR = 1 << 20 }; /* nothing but zeros behind it */
	struct image image;
	int fd;

	alarm(30);
	make_image(&image, NO_SECTIONS | NO_HASH);
	image.gnu_hash.chains[3] = 0;
	image.dynamic[4].d_un.d_val = BASE + FAR;
	image.segments[0].p_filesz = 1ull << 41;
	fd = file_of(&image, sizeof(image));
	cr_assert_eq(pwrite(fd, &image.gnu_hash, sizeof(image.gnu_hash), FAR), sizeof(image.gnu_hash));
	cr_assert_eq(ftruncate(fd, 1ull << 42), 0);
	ask_all(fd);
	close(fd);
}

Test(elf, random_bits)
{
	unsigned int seed = 1;

	for (int round = 0; round < 20000; round++) {
		struct image image;
		uint8_t *bytes = (uint8_t *)&image;
		int fd, changes = 1 + rand_r(&seed) % 8;

		make_image(&image, rand_r(&seed) % 16);
		for (int i = 0; i < changes; i++) {
			size_t at = rand_r(&seed) % sizeof(image);

			/* Seldom in the padding, where it would make no difference. */
			if (at >= offsetof(struct image, padding) && at < offsetof(struct image, dynamic))
				at = rand_r(&seed) % offsetof(struct image, padding);
			bytes[at] = rand_r(&seed) % 4 ? rand_r(&seed) >> 7 : 0xff;
		}
		fd = file_of(&image, sizeof(image));
		ask_all(fd);
		close(fd);
	}
}
