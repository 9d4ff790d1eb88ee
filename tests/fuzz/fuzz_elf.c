/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ELF files: a good one of which the input changes bytes here and there, and cuts off the end. */
#include "fuzz.h"
#include "os/elf.h"
#include "unit/elf_image.h"

#include <sys/mman.h>
#include <unistd.h>

static void ask_all(const struct elf *elf)
{
	static const char *const names[] = {"_PyRuntime", ".PyRuntime", "a", ""};
	struct elf_symbol symbol;
	uint64_t a, b;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		elf__symbol(elf, names[i], &symbol);
		elf__section(elf, names[i], &a, &b);
		elf__may_export(elf, names[i]);
	}
	for (uint64_t offset = 0; offset < 4096; offset += 1021)
		elf__vaddr_of_offset(elf, offset, &a);
	elf__is_fixed(elf);
	check(strlen(elf__soname(elf)) < 256);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static int fd = -1;
	struct image image;
	struct {
		uint8_t without, value_len;
		uint16_t at;
		uint8_t value[8];
	} change;
	struct elf *elf;
	size_t size;

	if (fd < 0)
		fd = memfd_create("elf", MFD_CLOEXEC);
	fuzz_take(&data, &len, &change, sizeof(change));
	make_image(&image, change.without);
	size = change.value_len < 240 ? sizeof(image) : change.at % sizeof(image);
	while (len) {
		fuzz_take(&data, &len, &change, sizeof(change));
		/* Not in the padding between the segments, which takes most of the file. */
		change.at %= sizeof(image) - sizeof(image.padding);
		if (change.at >= offsetof(struct image, padding))
			change.at += sizeof(image.padding);
		memcpy((uint8_t *)&image + change.at, change.value,
		       min_u64(1 + change.value_len % 8, sizeof(image) - change.at));
	}
	check(!ftruncate(fd, 0) && pwrite(fd, &image, size, 0) == (ssize_t)size);
	if (!elf__open(&elf, fd)) {
		ask_all(elf);
		elf__close(elf);
	}
	return 0;
}
