/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See known_files.h. The time of change goes up with every change, but not in steps as small as one likes: a
 * file that has just been changed is not remembered.
 */
#include "os/known_files.h"

#include "base/hmap.h"

#include <stddef.h>
#include <sys/stat.h>
#include <time.h>

#define FILES	    256
#define ANSWERS	    24 /* of each: more are not remembered */
#define SETTLED_SEC 2

struct known_file {
	uint64_t id; /* 0: unused */
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed;
	uint64_t used;
	size_t count;
	uint64_t questions[ANSWERS];
	struct known_answer answers[ANSWERS];
};

static struct known_file files[FILES];
static uint64_t last_id, uses;

static bool is_same(const struct known_file *file, const struct stat *stat)
{
	return file->id && file->inode == stat->st_ino && file->device == stat->st_dev &&
	       file->size == stat->st_size && file->changed.tv_sec == stat->st_ctim.tv_sec &&
	       file->changed.tv_nsec == stat->st_ctim.tv_nsec;
}

static bool is_settled(const struct stat *stat)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec > stat->st_ctim.tv_sec + SETTLED_SEC;
}

uint64_t known_files__open(int fd)
{
	struct known_file *oldest = &files[0];
	struct stat stat;

	if (fstat(fd, &stat) || !is_settled(&stat))
		return 0;
	for (size_t i = 0; i < FILES; i++) {
		if (is_same(&files[i], &stat)) {
			files[i].used = ++uses;
			return files[i].id;
		}
		if (files[i].used < oldest->used)
			oldest = &files[i];
	}
	*oldest = (struct known_file){.id = ++last_id,
				      .device = stat.st_dev,
				      .inode = stat.st_ino,
				      .size = stat.st_size,
				      .changed = stat.st_ctim,
				      .used = ++uses};
	return oldest->id;
}

uint64_t known_question(uint32_t kind, const char *name, uint64_t number)
{
	uint64_t hash = hmap_mix(hmap_seed() ^ kind) ^ number;

	while (*name)
		hash = hmap_mix(hash ^ (unsigned char)*name++);
	return hmap_mix(hash) | 1;
}

static struct known_file *find(uint64_t id)
{
	for (size_t i = 0; id && i < FILES; i++)
		if (files[i].id == id)
			return &files[i];
	return NULL;
}

bool known_files__recall(uint64_t id, uint64_t question, struct known_answer *answer)
{
	const struct known_file *file = find(id);

	for (size_t i = 0; file && i < file->count; i++) {
		if (file->questions[i] != question)
			continue;
		*answer = file->answers[i];
		return true;
	}
	return false;
}

void known_files__note(uint64_t id, uint64_t question, const struct known_answer *answer)
{
	struct known_file *file = find(id);

	if (!file || file->count == ANSWERS)
		return;
	file->questions[file->count] = question;
	file->answers[file->count++] = *answer;
}
