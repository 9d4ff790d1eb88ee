/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See replay.h. The file lies where there is room for large ones, and is gone with the program.
 */
#include "out/replay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Nobody else can open it. -errno. */
static int open_nameless(void)
{
	const char *folder = secure_getenv("TMPDIR");
	char path[4096];
	int fd;

	folder = folder && *folder ? folder : "/var/tmp";
	fd = open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	/* Not every file system has such files. */
	snprintf(path, sizeof(path), "%s/pybpfprof-XXXXXX", folder);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

int replay__open(struct replay *replay, const char *name, const struct writer *writer)
{
	int err;

	*replay = (struct replay){.fd = -1, .output.fd = -1};
	err = output__open(&replay->output, name, writer);
	if (err)
		return err;
	replay->fd = open_nameless();
	return replay->fd < 0 ? replay->fd : 0;
}

static int append(void *context, const void *bytes, size_t len)
{
	const struct replay *replay = context;
	const struct buf buf = {.data = (char *)bytes, .len = len};

	return buf__write_fd(&buf, replay->fd);
}

int replay__start(struct replay *replay, struct recorder_config *config)
{
	config->write = append;
	config->context = replay;
	return recorder__new(&replay->recorder, config);
}

/* Read from the beginning, by a descriptor of its own; what is written next goes on behind what is there. */
static int write_from(int fd, const struct writer *writer, enum group_by group, struct buf *buf)
{
	off_t end = lseek(fd, 0, SEEK_CUR);
	int reader = dup(fd), err;

	if (reader < 0)
		return -errno;
	err = lseek(fd, 0, SEEK_SET) < 0 ? -errno : writer->write_samples(reader, group, buf);
	if (lseek(fd, end, SEEK_SET) < 0)
		err = err ?: -errno;
	return err;
}

int replay__write(struct replay *replay, enum group_by group, bool last)
{
	struct sink *sink = recorder__sink(replay->recorder);
	struct buf buf = {0};
	int err;

	if (!last)
		sink->flush(sink);
	err = last ? recorder__end(replay->recorder) : recorder__error(replay->recorder);
	err = err ?: write_from(replay->fd, replay->output.writer, group, &buf);
	err = err ?: output__write_text(&replay->output, &buf);
	buf__free(&buf);
	return err;
}

void replay__close(struct replay *replay)
{
	recorder__free(replay->recorder);
	output__close(&replay->output);
	if (replay->fd >= 0)
		close(replay->fd);
	*replay = (struct replay){.fd = -1, .output.fd = -1};
}

int replay__profile(const struct writer *writer, const struct profile *profile, enum group_by group,
		    struct buf *buf)
{
	int fd = memfd_create("recording", MFD_CLOEXEC), err = fd < 0 ? -errno : 0;
	struct buf recording = {0};

	err = err ?: pbp_writer.write(profile, group, &recording) ?: buf__write_fd(&recording, fd);
	buf__free(&recording);
	err = err ?: write_from(fd, writer, group, buf);
	if (fd >= 0)
		close(fd);
	return err;
}
