/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See replay.h. The file lies where there is room for large ones, and is gone with the program.
 */
#include "out/replay.h"

#include "base/log.h"
#include "out/record_sum.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BEFORE_NS (24 * 3600 * 1000000000ull) /* what is from before the start has a time, too */

/* Nobody else can open it. -errno. */
static int open_nameless(const char *in)
{
	char path[4096];
	int fd;

	fd = open(in, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	/* Not every file system has such files. */
	snprintf(path, sizeof(path), "%s/pybpfprof-XXXXXX", in);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

int replay__open(struct replay *replay, const char *name, const struct writer *writer, enum group_by group)
{
	*replay = (struct replay){.fd = -1, .output.fd = -1, .group = group};
	return output__open(&replay->output, name, writer);
}

static const char *folder(void)
{
	const char *given = secure_getenv("TMPDIR");

	return given && *given ? given : "/var/tmp";
}

static int complain(const struct replay *replay, int err)
{
	if (err)
		log_err("cannot keep the samples for %s in %s (TMPDIR): %s", log_shown(replay->output.path),
			log_shown(folder()), strerror(-err));
	return err;
}

static int append(void *context, const void *bytes, size_t len)
{
	const struct replay *replay = context;
	const struct buf buf = {.data = (char *)bytes, .len = len};

	return complain(replay, buf__write_fd(&buf, replay->fd));
}

int replay__start(struct replay *replay, struct recorder_config *config, struct sink **sink)
{
	int err;

	replay->fd = open_nameless(folder());
	if (replay->fd < 0)
		return complain(replay, replay->fd);
	config->write = append;
	config->context = replay;
	err = recorder__new(&replay->recorder, config);
	if (!err)
		*sink = recorder__sink(replay->recorder);
	return err;
}

int replay__start_settled(struct replay *replay, const struct profile *profile, struct sink **sink)
{
	int err = gecko__new(&replay->gecko, profile, replay->group);

	if (!err)
		*sink = gecko__sink(replay->gecko);
	return err;
}

/* *fault: that it has no end yet, as in a run that goes on, or what is wrong with it. */
static int read_recording(struct record_sum *sum, int fd, enum group_by group, struct buf *buf,
			  const char **fault)
{
	struct gecko *gecko;
	int err = gecko__new(&gecko, &sum->profile, group);

	if (err) {
		close(fd);
		return err;
	}
	sum->profile.start_ns = BEFORE_NS;
	sum->sink = gecko__sink(gecko);
	err = record_sum__add(sum, fd, fault);
	if (!err) {
		record_sum__finish(sum);
		if (*fault)
			sum->profile.account.end = NULL;
		err = gecko__write(gecko, buf);
	}
	gecko__free(gecko);
	return err;
}

/* Read from the beginning, by a descriptor of its own; what is written next goes on behind what is there. */
static int write_from(int fd, enum group_by group, struct buf *buf, const char **fault)
{
	off_t end = lseek(fd, 0, SEEK_CUR);
	struct record_sum sum;
	int reader, err;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	reader = dup(fd);
	if (reader < 0)
		return -errno;
	err = record_sum__init(&sum);
	if (err)
		close(reader);
	else
		err = read_recording(&sum, reader, group, buf, fault);
	record_sum__free(&sum);
	if (lseek(fd, end, SEEK_SET) < 0)
		err = err ?: -errno;
	return err;
}

static int write_recorded(struct replay *replay, bool last, struct buf *buf)
{
	struct sink *sink = recorder__sink(replay->recorder);
	const char *fault = NULL;
	int err;

	if (!last)
		sink->flush(sink);
	err = last ? recorder__end(replay->recorder) : recorder__error(replay->recorder);
	err = err ?: write_from(replay->fd, replay->group, buf, &fault);
	if (!err && last && fault)
		log_warn("%s: of the samples that were kept, %s; those up to there are shown",
			 log_shown(replay->output.path), fault);
	return err;
}

int replay__write(struct replay *replay, bool last)
{
	struct buf buf = {0};
	int err = replay->gecko ? gecko__write(replay->gecko, &buf) : write_recorded(replay, last, &buf);

	err = err ?: output__write_text(&replay->output, &buf);
	buf__free(&buf);
	return err;
}

void replay__close(struct replay *replay)
{
	recorder__free(replay->recorder);
	gecko__free(replay->gecko);
	output__close(&replay->output);
	if (replay->fd >= 0)
		close(replay->fd);
	*replay = (struct replay){.fd = -1, .output.fd = -1};
}

int replay__profile(const struct profile *profile, enum group_by group, struct buf *buf)
{
	int fd = memfd_create("recording", MFD_CLOEXEC), err = fd < 0 ? -errno : 0;
	struct buf recording = {0};
	const char *fault;

	err = err ?: pbp_writer.write(profile, group, &recording) ?: buf__write_fd(&recording, fd);
	buf__free(&recording);
	err = err ?: write_from(fd, group, buf, &fault);
	if (fd >= 0)
		close(fd);
	return err;
}
