/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files that a process has mapped, each with all its mappings, and where in memory the things lie that
 * its ELF headers name. Knows ELF loading, nothing of Python but what a Python's file is usually called.
 */
#pragma once

#include "base/vec.h"
#include "os/elf.h"
#include "os/maps.h"
#include "os/remote.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_MAX_BIASES 8

struct image {
	const struct map_entry **entries; /* the file's mappings, by address; borrowed from struct images */
	size_t count;
	bool is_program;	 /* the main program */
	uint64_t writable_bytes; /* of its mappings */
	bool looks_python;	 /* its name is one that a Python interpreter or its library has */
};

struct images {
	pid_t pid;
	struct maps maps;
	const struct map_entry **entries; /* file-backed ones by file, then address */
	VEC(struct image) items;	  /* by first address; names are no order */
};

/* 0 or -errno, as maps__read. */
int images__read(struct images *images, pid_t pid);
void images__free(struct images *images);

const char *image__path(const struct image *image);

/*
 * The image's file, open. What was found in its headers once is known, so that they are read when need be
 * only.
 */
struct image_file {
	int fd; /* -1: there is none */
	struct elf *elf;
	uint64_t known; /* see os/known_files.h */
	/*
	 * Where it is loaded: memory address - link address. Usually one; more when the file is loaded twice
	 * (dlmopen) or mapped as data, too, so what is found through one has to be checked.
	 */
	uint64_t biases[IMAGE_MAX_BIASES];
	size_t biases_cnt;
};

/* 0 or -errno: -ENOEXEC when it is no ELF file, others when it cannot be opened. */
int image_file__open(struct image_file *file, pid_t pid, const struct image *image);
void image_file__close(struct image_file *file);
/* Are there section headers? They may be stripped or broken, so that a missing section means nothing. */
bool image_file__has_sections(struct image_file *file);

/* As those of os/elf.h. */
int image_file__section(struct image_file *file, const char *name, uint64_t *vaddr);
int image_file__symbol(struct image_file *file, const char *name, uint64_t *vaddr);
bool image_file__may_export(struct image_file *file, const char *name);
const char *image_file__soname(struct image_file *file);
