/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which process named which file, as it saw files then, so that the code can be read at the end, when the
 * process may be over.
 */
#pragma once

#include "agg/profile.h"
#include "os/file_view.h"
#include "run/process.h"

#define CODE_VIEWS_MAX 256 /* ways of seeing files: roots, folders, users */

struct code_use {
	uint32_t file;	  /* strtab id of its name */
	uint32_t view;	  /* index in views; there is none of the two highest numbers (code_files.c) */
	int64_t began_ns; /* when the process did, since 1970 */
};

struct code_look {
	uint32_t view;
	uint64_t time_ns;
	int64_t began_ns;
};

struct code_files {
	VEC(struct file_view) views;
	VEC(struct code_use) uses;   /* in order of time */
	struct hmap known;	     /* file << 32 | view */
	struct hmap index;	     /* serial of a process -> index in looks */
	VEC(struct code_look) looks; /* at processes, the last one of each */
};

/* A function of this file was met in this process. */
void code_files__note(struct code_files *files, const struct process *process, uint32_t file);
/* Reads the code of the files with most samples into profile->listings. 0 or -ENOMEM. */
int code_files__read(struct code_files *files, struct profile *profile);
void code_files__free(struct code_files *files);
