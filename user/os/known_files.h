/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Questions that were asked of a file before, and their answers, so that a library that hundreds of processes
 * have mapped is searched once. A file is told by what the file system says of it; one that was changed is
 * another one. There is one memory, since files are the same for all. Answers are hints: who can set a clock
 * back can make them wrong.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct known_answer {
	int err; /* 0, or why there is none */
	uint64_t value, size;
};

/* A number for the file as it is now; 0: it is not to be remembered. */
uint64_t known_files__open(int fd);
/* A number for a question: its kind, and what it is about. Never 0. */
uint64_t known_question(uint32_t kind, const char *name, uint64_t number);
/* False: it was not asked, or is forgotten. */
bool known_files__recall(uint64_t file, uint64_t question, struct known_answer *answer);
void known_files__note(uint64_t file, uint64_t question, const struct known_answer *answer);
