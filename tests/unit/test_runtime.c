/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finding the live runtime: what makes one live, which of several it is, and how it is found in files that
 * are named, mapped and stripped in every way. The target is the test's own process (fake_python.h).
 */
#include "py/runtime.h"

#include "fake_python.h"
#include "old_python.h"
#include "py/old.h"
#include "py/probe.h"
#include "py/threads.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static uint8_t runtime[FAKE_RUNTIME_BYTES] __attribute__((aligned(32)));
static struct fake_interp interps[3];
static struct fake_tstate tstates[4];
static struct remote self;

/* One interpreter with two threads. */
static void make_live(void)
{
	remote__init(&self, getpid());
	fake_table(runtime);
	put_u64(runtime, FAKE_HEAD, address_of(&interps[0]));
	fake_interp(&interps[0], 0, NULL, &tstates[0]);
	fake_tstate(&tstates[0], &interps[0], NULL, &tstates[1], 0x7000);
	fake_tstate(&tstates[1], &interps[0], &tstates[0], NULL, 0x8000);
}

/* ---- what makes a runtime live ---- */

static struct py_probe probe_at(uint64_t address)
{
	struct py_probe probe;

	py_probe__run(&probe, &self, address);
	return probe;
}

static void expect(enum py_attach_error verdict, const char *reason_part)
{
	struct py_probe probe = probe_at(address_of(runtime));

	cr_assert_eq(probe.verdict, verdict, "%d: %s", probe.verdict, probe.reason);
	cr_assert(strstr(probe.reason, reason_part), "%s", probe.reason);
}

Test(probe, live)
{
	make_live();
	expect(PY_ATTACH_OK, "");
	cr_assert_eq(probe_at(address_of(runtime)).offsets.version, 0x030e0af0);
}

Test(probe, copies_that_nobody_uses_have_cookie_and_table_too)
{
	make_live();
	put_u64(runtime, FAKE_HEAD, 0);
	expect(PY_ATTACH_STARTING, "not initialised");
}

Test(probe, no_thread_yet)
{
	make_live();
	put_u64(interps[0].bytes, FAKE_THREADS_HEAD, 0);
	expect(PY_ATTACH_STARTING, "no thread");
}

/* A sub-interpreter in the making comes first in the list. */
Test(probe, a_later_interpreter_has_threads)
{
	make_live();
	put_u64(runtime, FAKE_HEAD, address_of(&interps[1]));
	fake_interp(&interps[1], 1, &interps[0], NULL);
	expect(PY_ATTACH_OK, "");
}

Test(probe, a_cycle_of_interpreters_without_threads_ends)
{
	make_live();
	fake_interp(&interps[0], 0, &interps[1], NULL);
	fake_interp(&interps[1], 1, &interps[0], NULL);
	expect(PY_ATTACH_STARTING, "no thread");
}

Test(probe, contradictions)
{
	make_live();
	put_u64(runtime, FAKE_HEAD, 0x10);
	expect(PY_ATTACH_CORRUPT, "interpreters_head");
	make_live();
	put_u64(interps[0].bytes, FAKE_INTERP_ID, -1);
	expect(PY_ATTACH_CORRUPT, "interpreter_state.id");
	make_live();
	put_u64(interps[0].bytes, FAKE_THREADS_HEAD, 0x10);
	expect(PY_ATTACH_CORRUPT, "threads_head");
	make_live();
	put_u64(tstates[0].bytes, FAKE_INTERP, address_of(&interps[1]));
	expect(PY_ATTACH_CORRUPT, "thread_state.interp");
	make_live();
	put_u64(runtime, 256, 0x8000);
	expect(PY_ATTACH_CORRUPT, "interpreter_frame.previous");
	make_live();
	put_u64(runtime, 8, 0);
	expect(PY_ATTACH_CORRUPT, "version");
}

Test(probe, other_versions_and_builds)
{
	make_live();
	put_u64(runtime, 8, 0x031000f0);
	expect(PY_ATTACH_UNSUPPORTED, "Python 3.16 is not supported");
	make_live();
	put_u64(runtime, 8, 0x030e00b3);
	expect(PY_ATTACH_UNSUPPORTED, "3.14.0b3 is a pre-release");
	make_live();
	put_u64(runtime, 16, 1);
	expect(PY_ATTACH_CORRUPT, "not that of a free-threaded build");
	for (size_t i = 2; i < ARRAY_SIZE(table_3_14); i++)
		put_u64(runtime, i * 8, table_3_14[i].free_threaded);
	expect(PY_ATTACH_OK, "");
	put_u64(runtime, 8, 0x031000f0);
	expect(PY_ATTACH_UNSUPPORTED, "Python 3.16 is not supported");
	put_u64(runtime, 8, 0x030f00b1);
	expect(PY_ATTACH_UNSUPPORTED, "3.15.0b1 is a pre-release");
	put_u64(runtime, 8, 0x030e00f0);
	put_u64(runtime, FAKE_HEAD, 0);
	expect(PY_ATTACH_STARTING, "");
}

Test(probe, no_table)
{
	make_live();
	runtime[0] ^= 1;
	cr_assert_eq(probe_at(address_of(runtime)).verdict, PY_ATTACH_NOT_PYTHON);
	cr_assert_not(probe_at(address_of(runtime)).has_table);
	cr_assert_eq(probe_at(0x10).verdict, PY_ATTACH_NOT_PYTHON);
	cr_assert_eq(probe_at(UINT64_MAX - 8).verdict, PY_ATTACH_NOT_PYTHON);
}

/* The table may be the last thing before the end of a mapping. */
Test(probe, at_the_end_of_memory)
{
	size_t bytes = ARRAY_SIZE(table_3_14) * 8;
	uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	make_live();
	munmap(pages + 4096, 4096);
	memcpy(pages + 4096 - bytes, runtime, bytes);
	/* The list head lies in what is gone. */
	cr_assert_eq(probe_at(address_of(pages) + 4096 - bytes).verdict, PY_ATTACH_CORRUPT);
	memcpy(pages + 4096 - bytes + 8, runtime, bytes - 8);
	cr_assert_eq(probe_at(address_of(pages) + 4096 - bytes + 8).verdict, PY_ATTACH_CORRUPT);
}

Test(probe, a_process_that_is_gone)
{
	make_live();
	remote__init(&self, 0x7ffffff0);
	cr_assert_eq(probe_at(address_of(runtime)).verdict, PY_ATTACH_GONE);
}

Test(probe, what_an_errno_means)
{
	char reason[256];

	cr_assert_eq(py_attach_errno(-EPERM, reason, sizeof(reason)), PY_ATTACH_DENIED);
	cr_assert(strstr(reason, "permission denied") && strstr(reason, "CAP_SYS_PTRACE") &&
			  strstr(reason, "process_vm_readv"),
		  "%s", reason);
	cr_assert_eq(py_attach_errno(-EACCES, reason, sizeof(reason)), PY_ATTACH_DENIED);
	cr_assert_eq(py_attach_errno(-ENOSYS, reason, sizeof(reason)), PY_ATTACH_DENIED);
	cr_assert_eq(py_attach_errno(-ESRCH, reason, sizeof(reason)), PY_ATTACH_GONE);
	cr_assert_eq(py_attach_errno(-ENOMEM, reason, sizeof(reason)), PY_ATTACH_SYSTEM);
}

/* ---- threads ---- */

static int list(struct py_thread *out, size_t max)
{
	struct py_offsets offsets;

	fake_offsets(&offsets);
	return py_threads__list(&self, &offsets, address_of(runtime), out, max);
}

Test(threads, of_all_interpreters)
{
	struct py_thread threads[8];

	make_live();
	put_u64(runtime, FAKE_HEAD, address_of(&interps[1]));
	fake_interp(&interps[1], 7, &interps[0], &tstates[2]);
	fake_tstate(&tstates[2], &interps[1], NULL, NULL, 0x8000);
	cr_assert_eq(list(threads, 8), 3);
	cr_assert_eq(threads[0].tstate, address_of(&tstates[2]));
	cr_assert_eq(threads[0].interp_id, 7);
	cr_assert_eq(threads[0].thread_id, 0x8000);
	cr_assert_eq(threads[1].tstate, address_of(&tstates[0]));
	cr_assert_eq(threads[1].interp, address_of(&interps[0]));
	cr_assert_eq(threads[2].thread_id, 0x8000);
	cr_assert_neq(threads[2].native_thread_id, 0);
	cr_assert_eq(list(threads, 2), 2);
	cr_assert_eq(list(threads, 0), 0);
}

Test(threads, cycles_end)
{
	struct py_thread *threads = calloc(100000, sizeof(*threads));

	make_live();
	fake_tstate(&tstates[1], &interps[0], NULL, &tstates[0], 0x8000);
	cr_assert_lt(list(threads, 100000), 20);
	fake_tstate(&tstates[1], &interps[0], NULL, &tstates[1], 0x8000);
	cr_assert_lt(list(threads, 100000), 20);
	fake_interp(&interps[0], 0, &interps[0], &tstates[0]);
	cr_assert_lt(list(threads, 100000), 200);
	free(threads);
}

Test(threads, freed_while_the_list_is_followed)
{
	struct py_thread threads[8];

	make_live();
	put_u64(tstates[0].bytes, FAKE_NEXT, 0x10);
	cr_assert_eq(list(threads, 8), 1);
	make_live();
	put_u64(tstates[1].bytes, FAKE_INTERP, 0xdddddddddddddddd);
	cr_assert_eq(list(threads, 8), 1);
	/* The threads of the other interpreters are there still. */
	fake_interp(&interps[0], 0, &interps[1], (void *)0x10);
	fake_interp(&interps[1], 1, NULL, &tstates[2]);
	fake_tstate(&tstates[2], &interps[1], NULL, NULL, 0x9000);
	cr_assert_eq(list(threads, 8), 1);
	cr_assert_eq(threads[0].thread_id, 0x9000);
	put_u64(runtime, FAKE_HEAD, 0x10);
	cr_assert_eq(list(threads, 8), 0);
	remote__init(&self, 0x7ffffff0);
	cr_assert_eq(list(threads, 8), -ESRCH);
}

/* ---- files ---- */

#define IMAGE_BYTES (160 << 10)
#define DATA_OFFSET 0x2000  /* in the file; page-aligned */
#define DATA_VADDR  0x13000 /* link address: differs from the offset */
#define RUNTIME_IN  0x440   /* of the runtime in the data */
#define SECTIONS_AT 0x1000

enum sections { NO_SECTIONS, SECTIONS, SECTIONS_WITHOUT_RUNTIME };

static void make_headers(uint8_t *file, enum sections sections)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)file;
	Elf64_Phdr *segments = (Elf64_Phdr *)(file + sizeof(*header));
	Elf64_Shdr *table = (Elf64_Shdr *)(file + SECTIONS_AT);
	static const char names[] = "\0.PyRuntime\0.shstrtab\0.text";

	memcpy(header->e_ident, ELFMAG, SELFMAG);
	header->e_ident[EI_CLASS] = ELFCLASS64;
	header->e_ident[EI_DATA] = ELFDATA2LSB;
	header->e_ident[EI_VERSION] = header->e_version = EV_CURRENT;
	header->e_ehsize = sizeof(*header);
	header->e_type = ET_DYN;
	header->e_machine = EM_X86_64;
	header->e_phoff = sizeof(*header);
	header->e_phentsize = sizeof(*segments);
	header->e_phnum = 2;
	segments[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_filesz = 0x1000, .p_memsz = 0x1000};
	segments[1] = (Elf64_Phdr){.p_type = PT_LOAD,
				   .p_offset = DATA_OFFSET,
				   .p_vaddr = DATA_VADDR,
				   .p_filesz = IMAGE_BYTES - DATA_OFFSET,
				   .p_memsz = IMAGE_BYTES - DATA_OFFSET};
	if (sections == NO_SECTIONS)
		return;
	header->e_shoff = SECTIONS_AT;
	header->e_shentsize = sizeof(*table);
	header->e_shnum = 4;
	header->e_shstrndx = 2;
	memcpy(file + SECTIONS_AT + 0x800, names, sizeof(names));
	table[1] = (Elf64_Shdr){.sh_name = sections == SECTIONS ? 1 : 0,
				.sh_type = SHT_PROGBITS,
				.sh_flags = SHF_ALLOC | SHF_WRITE,
				.sh_addr = DATA_VADDR + RUNTIME_IN,
				.sh_size = FAKE_RUNTIME_BYTES};
	table[2] = (Elf64_Shdr){.sh_name = 12,
				.sh_type = SHT_STRTAB,
				.sh_offset = SECTIONS_AT + 0x800,
				.sh_size = sizeof(names)};
	table[3] = (Elf64_Shdr){.sh_name = 22,
				.sh_type = SHT_PROGBITS,
				.sh_flags = SHF_ALLOC,
				.sh_addr = 0x100,
				.sh_size = 0x10};
}

/* The runtime in a file is as it is linked: a table, and no interpreter. */
static int make_file(const char *name, enum sections sections)
{
	char folder[] = "/tmp/test_runtime.XXXXXX", path[128];
	uint8_t *file = calloc(1, IMAGE_BYTES);
	int fd;

	cr_assert(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	make_headers(file, sections);
	fake_table(file + DATA_OFFSET + RUNTIME_IN);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, file, IMAGE_BYTES), IMAGE_BYTES);
	free(file);
	/* Nothing is left behind; a deleted file is no obstacle. */
	unlink(path);
	rmdir(folder);
	return fd;
}

/* As the dynamic linker would, at an address that is the kernel's choice or ours. Returns the runtime. */
static uint8_t *load_file(int fd, uint8_t *at)
{
	size_t span = DATA_VADDR + IMAGE_BYTES - DATA_OFFSET;
	uint8_t *base = mmap(at, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	mmap(base, 0x1000, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
	mmap(base + DATA_VADDR, IMAGE_BYTES - DATA_OFFSET, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
	     fd, DATA_OFFSET);
	return base + DATA_VADDR + RUNTIME_IN;
}

static void bring_to_life(uint8_t *copy)
{
	make_live();
	memcpy(copy, runtime, sizeof(runtime));
	/* The one in .bss has no business in these tests: it is not found, since it has no file. */
}

static enum py_attach_error find(uint8_t **where, char *how, char *reason)
{
	struct py_runtime found;
	enum py_attach_error error;

	remote__init(&self, getpid());
	error = py_runtime__find(&found, &self, reason, 256);
	*where = (uint8_t *)(uintptr_t)found.addr;
	snprintf(how, 16, "%s", error ? "" : found.how);
	py_runtime__close(&found);
	return error;
}

static void expect_found(uint8_t *copy, const char *expected_how)
{
	char how[16], reason[256];
	uint8_t *where;

	cr_assert_eq(find(&where, how, reason), PY_ATTACH_OK, "%s", reason);
	cr_assert_eq(where, copy, "%p instead of %p", where, copy);
	cr_assert_str_eq(how, expected_how);
}

static void expect_none(enum py_attach_error expected)
{
	char how[16], reason[256];
	uint8_t *where;

	cr_assert_eq(find(&where, how, reason), expected, "%s", reason);
	cr_assert_null(where);
}

Test(runtime, none)
{
	expect_none(PY_ATTACH_NOT_PYTHON);
}

Test(runtime, by_section)
{
	uint8_t *copy = load_file(make_file("libpython3.14.so.1.0", SECTIONS), NULL);

	expect_none(PY_ATTACH_STARTING);
	bring_to_life(copy);
	expect_found(copy, "section");
}

Test(runtime, by_section_whatever_the_file_is_called)
{
	uint8_t *copy = load_file(make_file("webworker", SECTIONS), NULL);

	bring_to_life(copy);
	expect_found(copy, "section");
}

Test(runtime, by_cookie_where_there_are_no_section_headers)
{
	uint8_t *copy = load_file(make_file("webworker", NO_SECTIONS), NULL);

	bring_to_life(copy);
	expect_found(copy, "scan");
}

/* The file has headers and they name no runtime: what looks like one is data. */
Test(runtime, no_scan_where_headers_are_good)
{
	uint8_t *copy = load_file(make_file("webworker", SECTIONS_WITHOUT_RUNTIME), NULL);

	bring_to_life(copy);
	expect_none(PY_ATTACH_NOT_PYTHON);
}

static void two_copies(bool first_lives, enum sections sections)
{
	size_t room = 1 << 20;
	uint8_t *space = mmap(NULL, 2 * room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *first = load_file(make_file("libpython3.14.so.1.0", sections), space);
	uint8_t *second = load_file(make_file("libpython3.14.so.1.0", sections), space + room);

	bring_to_life(first_lives ? first : second);
	expect_found(first_lives ? first : second, sections == SECTIONS ? "section" : "scan");
}

Test(runtime, the_live_one_of_two_is_first)
{
	two_copies(true, SECTIONS);
}

Test(runtime, the_live_one_of_two_is_second)
{
	two_copies(false, SECTIONS);
}

Test(runtime, the_live_one_of_two_without_headers)
{
	two_copies(false, NO_SECTIONS);
}

Test(runtime, of_two_live_ones_the_one_with_more_threads)
{
	uint8_t *first = load_file(make_file("libpython3.14.so.1.0", SECTIONS), NULL);
	uint8_t *second = load_file(make_file("libpython3.14.so.1.0", SECTIONS), NULL);

	bring_to_life(first);
	memcpy(second, runtime, sizeof(runtime));
	put_u64(second, FAKE_HEAD, address_of(&interps[1]));
	fake_interp(&interps[1], 0, NULL, &tstates[2]);
	fake_tstate(&tstates[2], &interps[1], NULL, NULL, 0x9000);
	expect_found(first, "section");
	put_u64(first, FAKE_HEAD, address_of(&interps[1]));
	put_u64(second, FAKE_HEAD, address_of(&interps[0]));
	expect_found(second, "section");
}

/* dlmopen: one inode, two load addresses. */
Test(runtime, one_file_loaded_twice)
{
	int fd = make_file("libpython3.14.so.1.0", SECTIONS);
	uint8_t *first = load_file(fd, NULL), *second = load_file(fd, NULL);

	bring_to_life(second);
	expect_found(second, "section");
	memcpy(first, runtime, sizeof(runtime));
	put_u64(second, FAKE_HEAD, 0);
	expect_found(first, "section");
}

/* A reader of the file, a profiler for one, may have it mapped as it is. */
Test(runtime, file_mapped_as_data_too)
{
	int fd = make_file("libpython3.14.so.1.0", SECTIONS);
	uint8_t *copy;

	mmap(NULL, IMAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	copy = load_file(fd, NULL);
	mmap(NULL, IMAGE_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
	bring_to_life(copy);
	expect_found(copy, "section");
}

Test(runtime, a_live_one_counts_more_than_a_corrupt_one)
{
	uint8_t *corrupt = load_file(make_file("libpython3.14.so.1.0", SECTIONS), NULL);
	uint8_t *copy;

	bring_to_life(corrupt);
	put_u64(corrupt, 256, 0x8000);
	expect_none(PY_ATTACH_CORRUPT);
	/* ... although its name is less likely. */
	copy = load_file(make_file("webworker", SECTIONS), NULL);
	expect_none(PY_ATTACH_CORRUPT);
	bring_to_life(copy);
	expect_found(copy, "section");
}

Test(runtime, hostile_files)
{
	uint64_t state = 88172645463325252;

	for (int round = 0; round < 200; round++) {
		int fd = make_file("libpython3.14.so.1.0", round % 2 ? SECTIONS : NO_SECTIONS);
		size_t span = DATA_VADDR + IMAGE_BYTES - DATA_OFFSET;
		uint8_t *copy = load_file(fd, NULL);
		char how[16], reason[256];
		uint8_t *where;

		for (int i = 0; i < 8; i++) {
			uint8_t byte;
			size_t at;

			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			byte = state >> 56;
			at = state % 2 ? state / 2 % 0xb0 : SECTIONS_AT + state / 2 % 0x100;
			cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
		}
		bring_to_life(copy);
		find(&where, how, reason);
		munmap(copy - RUNTIME_IN - DATA_VADDR, span);
		close(fd);
	}
}

/* ---- 3.8 to 3.12 ---- */

#define SYMTAB_AT 0x1900 /* in the file, as all that follows */
#define STRTAB_AT 0x1a00
#define EXPORTS	  8

static struct old_python old;

/* A file that has the section and exports these names, each at the runtime's own start. */
static int make_exporting_file(const char *const *names)
{
	int fd = make_file("webworker", SECTIONS);
	Elf64_Sym symbols[EXPORTS + 1] = {};
	char strings[256] = "";
	size_t count = 1, len = 1;
	uint16_t sections = 6;
	Elf64_Shdr symtab = {.sh_type = SHT_SYMTAB, .sh_offset = SYMTAB_AT, .sh_link = 5, .sh_info = 1};
	Elf64_Shdr strtab = {.sh_type = SHT_STRTAB, .sh_offset = STRTAB_AT, .sh_size = sizeof(strings)};

	for (; *names; names++) {
		symbols[count++] = (Elf64_Sym){
			.st_name = len,
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
			.st_shndx = 1,
			.st_value = DATA_VADDR + RUNTIME_IN,
		};
		len += sprintf(strings + len, "%s", *names) + 1;
	}
	symtab.sh_size = count * sizeof(*symbols);
	symtab.sh_entsize = sizeof(*symbols);
	pwrite(fd, symbols, sizeof(symbols), SYMTAB_AT);
	pwrite(fd, strings, sizeof(strings), STRTAB_AT);
	pwrite(fd, &symtab, sizeof(symtab), SECTIONS_AT + 4 * sizeof(symtab));
	pwrite(fd, &strtab, sizeof(strtab), SECTIONS_AT + 5 * sizeof(strtab));
	pwrite(fd, &sections, sizeof(sections), offsetof(Elf64_Ehdr, e_shnum));
	return fd;
}

/* The process of Python 3.`minor`, whose file exports `names`; `version` is at the runtime's start. */
static void make_old_process(uint32_t minor, uint32_t version, const char *const *names)
{
	uint8_t *copy = load_file(make_exporting_file(names), NULL);

	old_python__make(&old, minor);
	put_u32(old.runtime, 0, version);
	memcpy(copy, old.runtime, FAKE_RUNTIME_BYTES);
}

/* What is found: the version, or the reason of a refusal. */
static enum py_attach_error find_old(uint32_t *version, char *reason)
{
	struct py_runtime found;
	enum py_attach_error error;

	remote__init(&self, getpid());
	error = py_runtime__find(&found, &self, reason, 256);
	*version = found.offsets.version;
	py_runtime__close(&found);
	return error;
}

static void expect_old(uint32_t expected)
{
	char reason[256];
	uint32_t version;

	cr_assert_eq(find_old(&version, reason), PY_ATTACH_OK, "0x%x: %s", expected, reason);
	cr_assert_eq(version, expected, "0x%x, not 0x%x", version, expected);
}

static void expect_old_refused(enum py_attach_error expected, const char *part)
{
	char reason[256];
	uint32_t version;

	cr_assert_eq(find_old(&version, reason), expected, "%s", reason);
	cr_assert(strstr(reason, part), "%s", reason);
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

Test(old, version_3_8_by_exports)
{
	make_old_process(8, 0, NAMES("PyCode_New", "PyCode_NewWithPosOnlyArgs"));
	expect_old(0x0308fff0);
}

Test(old, version_3_9_by_exports)
{
	make_old_process(9, 0, NAMES("PyCode_NewWithPosOnlyArgs", "PyThreadState_GetFrame"));
	expect_old(0x0309fff0);
}

Test(old, version_3_10_by_exports)
{
	make_old_process(10, 0, NAMES("PyThreadState_GetFrame", "PyIter_Send", "PyCode_NewWithPosOnlyArgs"));
	expect_old(0x030afff0);
}

Test(old, version_3_11_says_so)
{
	make_old_process(11, 0x030b02f0, NAMES("Py_Version", "PyIter_Send"));
	expect_old(0x030b02f0);
}

Test(old, version_3_12_says_so)
{
	make_old_process(12, 0x030c01f0, NAMES("Py_Version"));
	expect_old(0x030c01f0);
}

Test(old, other_versions_are_refused)
{
	make_old_process(12, 0x030c00c1, NAMES("Py_Version"));
	expect_old_refused(PY_ATTACH_UNSUPPORTED, "Python 3.12.0rc1 is a pre-release");
}

Test(old, version_3_7_is_refused)
{
	make_old_process(8, 0, NAMES("PyCode_New"));
	expect_old_refused(PY_ATTACH_UNSUPPORTED, "Python 3.7 is not supported (3.8 to 3.15 are)");
}

Test(old, newer_versions_have_a_table)
{
	make_old_process(12, 0x030e00f0, NAMES("Py_Version"));
	expect_old_refused(PY_ATTACH_UNSUPPORTED, "Python 3.14 without _Py_DebugOffsets");
}

/* 3.8's process with 3.9's exports: the interpreter's id is where 3.8 has something else. */
Test(old, exports_that_the_memory_contradicts)
{
	make_old_process(8, 0, NAMES("PyThreadState_GetFrame"));
	old_put(old.interp, 24, UINT64_MAX, 8); /* id_refcount */
	expect_old_refused(PY_ATTACH_CORRUPT, "interpreter_state.id");
}

Test(old, not_initialised)
{
	make_old_process(9, 0, NAMES("PyThreadState_GetFrame"));
	old_put(old.interp, old.offsets.interp_threads_head, 0, 8);
	expect_old_refused(PY_ATTACH_STARTING, "no thread");
}

/* A program that exports nothing: its frames tell. */
Test(old, version_3_10_by_frames)
{
	make_old_process(10, 0, NAMES("main"));
	expect_old(0x030afff0);
}

Test(old, version_3_11_by_frames)
{
	make_old_process(11, 0, NAMES("main"));
	expect_old(0x030bfff0);
}

Test(old, version_3_12_by_frames)
{
	make_old_process(12, 0, NAMES("main"));
	expect_old(0x030cfff0);
}

Test(old, no_version_without_frames)
{
	make_old_process(11, 0, NAMES("main"));
	old_put(old.cframes[0], old.offsets.cframe_current_frame, 0, 8);
	expect_old_refused(PY_ATTACH_STARTING, "does not tell its version");
}

Test(old, something_else_in_the_section)
{
	make_old_process(11, 0, NAMES("main"));
	memset(old.interp, 0xff, sizeof(old.interp));
	expect_old_refused(PY_ATTACH_STARTING, "does not tell its version");
}

/* ---- names ---- */

Test(old, version_of_a_name)
{
	static const struct {
		const char *path;
		unsigned int major, minor; /* 0: none */
	} cases[] = {
		{"libpython3.9.so.1.0", 3, 9},
		{"/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0", 3, 11},
		{"/opt/python3.8/lib/libpython3.12.so (deleted)", 3, 12},
		{"libpython3.6m.so.1.0", 3, 6},
		{"libpython2.7.so.1.0", 2, 7},
		{"/usr/bin/python3.13d", 3, 13},
		{"python3", 0, 0},
		{"python", 0, 0},
		{"/opt/python3.8/bin/worker", 0, 0},
		{"python3.", 0, 0},
		{"python3.x", 0, 0},
		{"python9.1", 0, 0},
		{"python3 .9", 0, 0},
		{"", 0, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned int major = 0, minor = 0;
		bool found = py_old__version_of_name(cases[i].path, &major, &minor);

		cr_assert_eq(found, cases[i].major != 0, "%s", cases[i].path);
		if (found)
			cr_assert(major == cases[i].major && minor == cases[i].minor, "%s: %u.%u",
				  cases[i].path, major, minor);
	}
}
