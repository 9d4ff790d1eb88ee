/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every format, to the byte, of the profiles of made.h, against tests/golden. `make golden` rewrites those
 * files after an intended change. What reads the files is asked by tests/live/test_formats.c.
 */
#include "unit/json_check.h"
#include "made.h"
#include "out/protobuf.h"
#include "out/record.h"
#include "out/record_chunks.h"
#include "out/writer.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

static struct profile profile;
static struct buf file, body;

static void open_profile(void)
{
	cr_assert_eq(profile__init(&profile, 3000000), 0);
}

static void close_profile(void)
{
	buf__free(&file);
	buf__free(&body);
	profile__free(&profile);
}

TestSuite(formats, .init = open_profile, .fini = close_profile);

static void inflate_file(void)
{
	z_stream stream = {.next_in = (unsigned char *)file.data, .avail_in = (unsigned int)file.len};
	unsigned char chunk[4096];
	int result = Z_OK;

	cr_assert_eq(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
	while (result == Z_OK) {
		stream.next_out = chunk;
		stream.avail_out = sizeof(chunk);
		result = inflate(&stream, Z_NO_FLUSH);
		buf__add(&body, chunk, sizeof(chunk) - stream.avail_out);
	}
	cr_assert_eq(result, Z_STREAM_END);
	cr_assert_eq(stream.avail_in, 0);
	inflateEnd(&stream);
}

/* Of each chunk, its kind and what is in it. */
static void unpack_chunks(void)
{
	int fd = memfd_create("record", MFD_CLOEXEC);
	struct chunk_reader reader;

	cr_assert(fd >= 0 && !buf__write_fd(&file, fd) && !lseek(fd, 0, SEEK_SET));
	cr_assert_eq(chunk_reader__open(&reader, fd), 0);
	while (!chunk_reader__next(&reader)) {
		buf__addf(&body, "%d ", reader.kind);
		buf__add(&body, reader.raw, reader.raw_len);
		buf__addc(&body, '\n');
	}
	cr_assert_eq(reader.kind, RECORD_CHUNK_END);
	chunk_reader__close(&reader);
}

/* What stands between two texts. */
static void cut_out(const char *from, const char *to)
{
	const char *start, *end;

	buf__addc(&file, '\0');
	start = strstr(file.data, from);
	cr_assert(start);
	end = strstr(start, to);
	cr_assert(end);
	buf__add(&body, start + strlen(from), (size_t)(end - start) - strlen(from));
}

/* The file, or of a page the profile in it; of what is packed, what is in it: that is not the packer's to
 * change. */
static void write_body(const struct writer *writer, enum group_by group)
{
	file.len = body.len = 0;
	cr_assert_eq(writer->write(&profile, group, &file), 0);
	if (writer == &pprof_writer)
		inflate_file();
	else if (writer == &pbp_writer)
		unpack_chunks();
	else if (writer == &flamegraph_writer || writer == &heatmap_writer)
		cut_out("<script type=\"application/json\" id=\"profile\">", "</script>");
	else
		buf__add(&body, file.data, file.len);
	cr_assert_eq(body.err, 0);
}

static void check_golden(const struct writer *writer, const char *name)
{
	struct buf golden = {0};
	char path[200], chunk[4096];
	FILE *stream;
	size_t len;

	snprintf(path, sizeof(path), "tests/golden/%s.%s", name, writer->name);
	if (getenv("PYBPFPROF_GOLDEN")) {
		stream = fopen(path, "w");
		cr_assert(stream && fwrite(body.data, 1, body.len, stream) == body.len && !fclose(stream),
			  "%s", path);
		return;
	}
	stream = fopen(path, "r");
	cr_assert(stream, "%s is not there", path);
	while ((len = fread(chunk, 1, sizeof(chunk), stream)))
		buf__add(&golden, chunk, len);
	fclose(stream);
	cr_expect(golden.len == body.len && !memcmp(golden.data, body.data, body.len),
		  "%s: %zu bytes, and now %zu; see what differs after: make golden", path, golden.len,
		  body.len);
	buf__free(&golden);
}

static void check_all(const char *name, enum group_by group)
{
	char file_name[80];

	make_profile(&profile, name);
	snprintf(file_name, sizeof(file_name), "%s-%s", name, group == GROUP_LINE ? "line" : "function");
	for (const struct writer *const *writer = writer__all(); *writer; writer++) {
		write_body(*writer, group);
		check_golden(*writer, file_name);
	}
}

Test(formats, golden_line)
{
	check_all("shop", GROUP_LINE);
}

Test(formats, golden_function)
{
	check_all("shop", GROUP_FUNCTION);
}

Test(formats, golden_threads)
{
	check_all("threads", GROUP_LINE);
}

Test(formats, golden_waits)
{
	check_all("waits", GROUP_LINE);
}

Test(formats, golden_hostile)
{
	check_all("hostile", GROUP_LINE);
}

/* Nothing was sampled: the program writes no file then, but a writer has to bear it. */
Test(formats, empty)
{
	profile.period_ns = 1000000;
	for (const struct writer *const *writer = writer__all(); *writer; writer++)
		write_body(*writer, GROUP_LINE);
}

Test(formats, json_is_valid)
{
	static const char *const names[] = {"tiny", "shop", "threads", "waits", "hostile", "500"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		close_profile();
		open_profile();
		make_profile(&profile, names[i]);
		write_body(&speedscope_writer, GROUP_LINE);
		cr_expect(json_is_valid(body.data, body.len), "speedscope, %s", names[i]);
		write_body(&flamegraph_writer, GROUP_LINE);
		cr_expect(json_is_valid(body.data, body.len), "flamegraph, %s", names[i]);
		write_body(&heatmap_writer, GROUP_LINE);
		cr_expect(json_is_valid(body.data, body.len), "heatmap, %s", names[i]);
		write_body(&gecko_writer, GROUP_LINE);
		cr_expect(json_is_valid(body.data, body.len), "gecko, %s", names[i]);
		write_body(&jsonl_writer, GROUP_LINE);
		for (char *line = body.data, *end = body.data + body.len, *next; line < end; line = next) {
			next = (char *)memchr(line, '\n', (size_t)(end - line)) + 1;
			cr_assert(json_is_valid(line, (size_t)(next - line)), "jsonl, %s", names[i]);
		}
	}
}

/* Nothing of a name is markup: the page has the elements that it was built with and no others. */
Test(formats, page_is_closed)
{
	const char *hostile;

	make_profile(&profile, "hostile");
	for (int i = 0; i < 2; i++) {
		write_body(i ? &heatmap_writer : &flamegraph_writer, GROUP_LINE);
		cr_expect(!memchr(body.data, '<', body.len));
		hostile = memmem(body.data, body.len, "window.broken", strlen("window.broken"));
		cr_expect(hostile, "the names are not there");
	}
}

/* A name of 64 KB: said in each of the frames it would take 138 MB, so that no branch fits. */
Test(formats, long_names_in_a_deep_stack)
{
	uint32_t node = TRIE_ROOT;
	char name[65537] = "";

	memset(name, 'n', sizeof(name) - 1);
	for (uint32_t line = 1; line <= 2100; line++)
		node = made_add_frame(&profile, node, MADE_FRAME(name, "a.py", line, line));
	made_add_weight(&profile, node, 7);
	for (const struct writer *const *writer = writer__all(); *writer; writer++) {
		write_body(*writer, GROUP_LINE);
		cr_expect_lt(file.len, 1 << 20, "%s: %zu bytes", (*writer)->name, file.len);
	}
	write_body(&collapsed_writer, GROUP_LINE);
	buf__addc(&file, '\0');
	cr_expect_str_eq(file.data, "[pruned] 7\n");
}

/* The file's bytes do not depend on where it is written or when. */
Test(formats, repeatable)
{
	make_profile(&profile, "500");
	for (const struct writer *const *writer = writer__all(); *writer; writer++) {
		struct buf first = {0};

		write_body(*writer, GROUP_LINE);
		buf__add(&first, file.data, file.len);
		write_body(*writer, GROUP_LINE);
		cr_expect(first.len == file.len && !memcmp(first.data, file.data, first.len), "%s",
			  (*writer)->name);
		buf__free(&first);
	}
}

Test(formats, protobuf)
{
	struct buf out = {0}, message = {0};

	protobuf__number(&out, 1, 0);
	protobuf__number(&out, 1, 150);
	protobuf__number(&out, 16, UINT64_MAX);
	protobuf__varint(&message, 127);
	protobuf__varint(&message, 128);
	protobuf__message(&out, 2, &message);
	protobuf__message(&out, 3, &message);
	cr_expect_eq(out.len, 3 + 2 + 10 + 2 + 3 + 2);
	cr_expect_arr_eq(out.data,
			 "\x08\x96\x01"
			 "\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
			 "\x12\x03\x7f\x80\x01"
			 "\x1a\x00",
			 out.len);
	buf__free(&out);
	buf__free(&message);
}
