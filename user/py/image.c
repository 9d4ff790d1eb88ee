/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Mappings are grouped by device and inode, never by name or neighbourhood: names repeat, and other mappings
 * lie between. The load bias follows from the program headers for each mapping on its own, and all mappings
 * of one load agree on it. No assumption is made about the order of segments or about the file offset of the
 * first one (ld -z noseparate-code, patchelf and lld each break one such assumption).
 */
#include "py/image.h"

#include "base/util.h"
#include "os/auxv.h"
#include "os/known_files.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int compare_files(const void *a, const void *b)
{
	const struct map_entry *x = *(const struct map_entry *const *)a;
	const struct map_entry *y = *(const struct map_entry *const *)b;

	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	if (x->dev_major != y->dev_major)
		return x->dev_major < y->dev_major ? -1 : 1;
	if (x->dev_minor != y->dev_minor)
		return x->dev_minor < y->dev_minor ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static bool same_file(const struct map_entry *x, const struct map_entry *y)
{
	return x->inode == y->inode && x->dev_major == y->dev_major && x->dev_minor == y->dev_minor;
}

static int compare_images(const void *a, const void *b)
{
	const struct image *x = a, *y = b;

	uint64_t first = x->entries[0]->start, second = y->entries[0]->start;

	return (first > second) - (first < second);
}

/*
 * "python3.14", "libpython3.13.so.1.0", "pypy3"; not an extension module, which is called
 * "x.cpython-314-....so", and not a directory of that name.
 */
static bool has_python_name(const char *path)
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	return (strstr(base, "python") && !strstr(base, "cpython-")) || strstr(base, "pypy");
}

static bool image_contains(const struct image *image, uint64_t addr)
{
	for (size_t i = 0; i < image->count; i++) {
		if (addr >= image->entries[i]->start && addr < image->entries[i]->end)
			return true;
	}
	return false;
}

/* The longest run of entries of one file, from entries[0] on. */
static size_t run_length(const struct map_entry **entries, size_t count)
{
	size_t len = 1;

	while (len < count && same_file(entries[0], entries[len]))
		len++;
	return len;
}

static struct image describe(const struct map_entry **entries, size_t count, uint64_t program_addr)
{
	struct image image = {.entries = entries, .count = count};

	image.is_program = program_addr && image_contains(&image, program_addr);
	image.looks_python = has_python_name(entries[0]->path);
	for (size_t i = 0; i < count; i++) {
		if (entries[i]->write)
			image.writable_bytes += entries[i]->end - entries[i]->start;
	}
	return image;
}

static int group(struct images *images, uint64_t program_addr)
{
	size_t count = 0, len;

	images->entries = calloc(images->maps.entries.len + 1, sizeof(*images->entries));
	if (!images->entries)
		return -ENOMEM;
	for (size_t i = 0; i < images->maps.entries.len; i++) {
		if (images->maps.entries.items[i].inode)
			images->entries[count++] = &images->maps.entries.items[i];
	}
	qsort(images->entries, count, sizeof(*images->entries), compare_files);
	for (size_t i = 0; i < count; i += len) {
		const struct map_entry **entries = images->entries + i;
		int err;

		len = run_length(entries, count - i);
		err = vec__push(&images->items, describe(entries, len, program_addr));
		if (err)
			return err;
	}
	if (images->items.len)
		qsort(images->items.items, images->items.len, sizeof(struct image), compare_images);
	return 0;
}

int images__read(struct images *images, pid_t pid)
{
	uint64_t program_addr = 0;
	int err;

	*images = (struct images){.pid = pid};
	err = maps__read(&images->maps, pid);
	if (err)
		return err;
	/* Without it there is no main program, and names decide alone. */
	auxv__program_headers(pid, &program_addr);
	err = group(images, program_addr);
	if (err)
		images__free(images);
	return err;
}

void images__free(struct images *images)
{
	if (!images)
		return;
	vec__free(&images->items);
	free(images->entries);
	images->entries = NULL;
	maps__free(&images->maps);
}

const char *image__path(const struct image *image)
{
	return image->entries[0]->path;
}

static void add_bias(struct image_file *file, uint64_t bias)
{
	for (size_t i = 0; i < file->biases_cnt; i++) {
		if (file->biases[i] == bias)
			return;
	}
	if (file->biases_cnt < IMAGE_MAX_BIASES)
		file->biases[file->biases_cnt++] = bias;
}

/* --- what can be asked of a file --- */

enum question { IS_ELF, IS_FIXED, VADDR_OF_OFFSET, SECTION, SYMBOL, MAY_EXPORT };

static int look(const struct elf *elf, enum question question, const char *name, uint64_t number,
		uint64_t *value)
{
	struct elf_symbol symbol;
	uint64_t size;
	int err;

	switch (question) {
	case IS_ELF:
		return 0;
	case IS_FIXED:
		return elf__is_fixed(elf) ? 0 : -ENOENT;
	case VADDR_OF_OFFSET:
		return elf__vaddr_of_offset(elf, number, value);
	case SECTION:
		return elf__section(elf, name, value, &size);
	case SYMBOL:
		err = elf__symbol(elf, name, &symbol);
		*value = err ? 0 : symbol.vaddr;
		return err;
	case MAY_EXPORT:
		return elf__may_export(elf, name) ? 0 : -ENOENT;
	}
	return -EINVAL;
}

static int ask(struct image_file *file, enum question question, const char *name, uint64_t number,
	       uint64_t *value)
{
	uint64_t key = known_question(question, name, number);
	struct known_answer answer = {0};

	if (!known_files__recall(file->known, key, &answer)) {
		if (!file->elf)
			answer.err = elf__open(&file->elf, file->fd);
		if (answer.err && answer.err != -ENOEXEC)
			return answer.err;
		answer.err = answer.err ?: look(file->elf, question, name, number, &answer.value);
		/* A lack of memory is no answer. */
		if (!answer.err || answer.err == -ENOENT || answer.err == -ENOEXEC)
			known_files__note(file->known, key, &answer);
	}
	*value = answer.value;
	return answer.err;
}

int image_file__section(struct image_file *file, const char *name, uint64_t *vaddr)
{
	return ask(file, SECTION, name, 0, vaddr);
}

int image_file__symbol(struct image_file *file, const char *name, uint64_t *vaddr)
{
	return ask(file, SYMBOL, name, 0, vaddr);
}

bool image_file__may_export(struct image_file *file, const char *name)
{
	uint64_t unused;

	return !ask(file, MAY_EXPORT, name, 0, &unused);
}

const char *image_file__soname(struct image_file *file)
{
	if (!file->elf && elf__open(&file->elf, file->fd))
		return "";
	return elf__soname(file->elf);
}

/* --- opening --- */

static void find_biases(struct image_file *file, const struct image *image)
{
	uint64_t vaddr;

	if (!ask(file, IS_FIXED, "", 0, &vaddr)) {
		add_bias(file, 0);
		return;
	}
	for (size_t i = 0; i < image->count; i++) {
		if (!ask(file, VADDR_OF_OFFSET, "", image->entries[i]->offset, &vaddr))
			add_bias(file, image->entries[i]->start - vaddr);
	}
}

int image_file__open(struct image_file *file, pid_t pid, const struct image *image)
{
	uint64_t unused;
	int err;

	*file = (struct image_file){.fd = maps__open_file(pid, image->entries[0])};
	if (file->fd < 0)
		return file->fd;
	file->known = known_files__open(file->fd);
	err = ask(file, IS_ELF, "", 0, &unused);
	if (err)
		image_file__close(file);
	else
		find_biases(file, image);
	return err;
}

void image_file__close(struct image_file *file)
{
	elf__close(file->elf);
	file->elf = NULL;
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

bool image_file__has_sections(struct image_file *file)
{
	uint64_t vaddr;

	return !image_file__section(file, ".text", &vaddr) || !image_file__section(file, ".dynamic", &vaddr);
}
