/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Recordings: any bytes behind the head of a file, and, since a check sum keeps those from getting far, any
 * bytes as the contents of chunks. Whatever is read can be added up and written.
 */
#include "fuzz.h"
#include "out/record.h"
#include "out/record_chunks.h"
#include "out/record_sum.h"
#include "out/writer.h"

#include <sys/mman.h>
#include <unistd.h>

static int file_of(const void *head, size_t head_len, const void *rest, size_t len)
{
	int fd = memfd_create("record", MFD_CLOEXEC);

	check(fd >= 0 && write(fd, head, head_len) == (ssize_t)head_len);
	check(write(fd, rest, len) == (ssize_t)len);
	check(!lseek(fd, 0, SEEK_SET));
	return fd;
}

/* What chunks may refer to: a string, a frame, a node, a stack, a process, a thread, two contexts. */
static const char tables[] = "\x01\x03" "abc"
			     "\x02\x00\x01\x00\x05\x04"
			     "\x03\x00\x00"
			     "\x04\x00"
			     "\x05\x01\x01" "c\x01" "p\x01" "h"
			     "\x06\x00\x07\x02" "1t\x02" "tt"
			     "\x07\x01\x03\x01"
			     "\x07\x00\x00\x02";

static int file_of_chunks(const uint8_t *data, size_t len, bool with_tables)
{
	static struct chunk_writer writer;
	int fd;

	if (!writer.open)
		check(!chunk_writer__open(&writer));
	chunk_writer__restart(&writer);
	writer.out.len = 0;
	if (with_tables)
		chunk_writer__add(&writer, RECORD_CHUNK_TABLES, tables, sizeof(tables) - 1);
	while (len) {
		struct {
			uint8_t kind, size;
		} head;
		uint8_t raw[255];

		fuzz_take(&data, &len, &head, sizeof(head));
		fuzz_take(&data, &len, raw, head.size);
		chunk_writer__add(&writer, head.kind % (RECORD_CHUNK_END + 2), raw, head.size);
	}
	check(!writer.out.err);
	fd = file_of("", 0, writer.out.data, writer.out.len);
	return fd;
}

static void use(struct record_sum *sum, enum group_by group)
{
	struct profile_rows rows;
	struct buf text = {0};

	record_sum__finish(sum);
	check(!profile__rows(&sum->profile, group, &rows));
	profile_rows__free(&rows);
	check(!collapsed_writer.write(&sum->profile, group, &text));
	check(!pprof_writer.write(&sum->profile, group, &text));
	check(sum->profile.samples <= sum->all_samples);
	buf__free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const char head[] = RECORD_MAGIC "\x01";
	struct record_sum sum;
	const char *fault;
	uint8_t how;
	int err;

	fuzz_take(&data, &len, &how, 1);
	check(!record_sum__init(&sum));
	if (how & 2)
		sum.filter = (struct record_filter){.has_from = true,
						    .from_ns = how,
						    .has_to = how & 4,
						    .to_ns = 100 * how,
						    .pid = how >> 7,
						    .function = how & 8 ? "a*" : NULL,
						    .thread = how & 16 ? "1*" : NULL};
	sum.apart_is_set = how & 32;
	sum.apart = (struct record_apart){true, false, true};
	err = record_sum__add(&sum,
			      how & 1 ? file_of_chunks(data, len, how & 128)
				      : file_of(head, sizeof(head) - 1, data, len),
			      &fault);
	check(!err || err == -EINVAL);
	/* Else nothing would be tried of what refers to them. */
	check(how != 129 || len || !strcmp(fault, "it was cut off"));
	if (!err)
		use(&sum, how & 64 ? GROUP_FUNCTION : GROUP_LINE);
	record_sum__free(&sum);
	return 0;
}
