/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See record_chunks.h. Chunks are small, a second each, so they share one stream of deflate, whose window
 * makes names and numbers that come again cheap. So a chunk can be read only after those before it.
 */
#include "out/record_chunks.h"

#include "base/util.h"
#include "out/protobuf.h"
#include "out/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROOM_BYTES (64u << 10) /* to begin with: few chunks are larger */

/* What Z_SYNC_FLUSH ends with. */
static const uint8_t FLUSH_MARK[] = {0x00, 0x00, 0xff, 0xff};

/* --- writing --- */

int chunk_writer__open(struct chunk_writer *writer)
{
	*writer = (struct chunk_writer){0};
	if (deflateInit2(&writer->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, MAX_MEM_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	writer->open = true;
	return 0;
}

static void pack(struct chunk_writer *writer, const void *raw, size_t len, struct buf *packed)
{
	z_stream *stream = &writer->stream;
	uint8_t room[4096];

	if (!len)
		return;
	stream->next_in = (uint8_t *)raw;
	stream->avail_in = (unsigned int)len;
	do {
		stream->next_out = room;
		stream->avail_out = sizeof(room);
		deflate(stream, Z_SYNC_FLUSH);
		buf__add(packed, room, sizeof(room) - stream->avail_out);
	} while (!stream->avail_out);
	if (!packed->err)
		packed->len -= sizeof(FLUSH_MARK);
}

static uint32_t check_of(const void *head, size_t head_len, const void *payload, size_t len)
{
	uLong check = crc32_z(0, head, head_len);

	/* Of no bytes, at NULL, it would give what a check begins with. */
	return (uint32_t)(len ? crc32_z(check, payload, len) : check);
}

void chunk_writer__add(struct chunk_writer *writer, uint8_t kind, const void *raw, size_t len)
{
	struct buf *out = &writer->out, packed = {0};
	uint32_t check;
	size_t head;

	if (!writer->begun) {
		buf__add(out, RECORD_MAGIC, RECORD_MAGIC_BYTES);
		buf__addc(out, RECORD_VERSION);
		writer->begun = true;
	}
	pack(writer, raw, len, &packed);
	head = out->len;
	buf__addc(out, (char)kind);
	protobuf__varint(out, packed.len);
	if (!out->err && !packed.err) {
		check = check_of(out->data + head, out->len - head, packed.data, packed.len);
		buf__add(out, &check, sizeof(check));
		buf__add(out, packed.data, packed.len);
	}
	out->err = out->err ?: packed.err;
	buf__free(&packed);
}

void chunk_writer__restart(struct chunk_writer *writer)
{
	deflateReset(&writer->stream);
	writer->begun = false;
}

void chunk_writer__close(struct chunk_writer *writer)
{
	if (writer->open)
		deflateEnd(&writer->stream);
	writer->open = false;
	buf__free(&writer->out);
}

/* --- reading --- */

/* At least that much room, of what has some already. 0 or -ENOMEM. */
static int grow(uint8_t **bytes, size_t *cap, size_t want)
{
	uint8_t *grown;

	if (want <= *cap)
		return 0;
	grown = realloc(*bytes, want);
	if (!grown)
		return -ENOMEM;
	*bytes = grown;
	*cap = want;
	return 0;
}

/* At least `want` bytes in reader->packed, unless the file ends before. 0 or -errno. */
static int fill(struct chunk_reader *reader, size_t want)
{
	int err;

	if (reader->to - reader->from >= want)
		return 0;
	err = grow(&reader->packed, &reader->cap, want);
	if (err)
		return err;
	memmove(reader->packed, reader->packed + reader->from, reader->to - reader->from);
	reader->to -= reader->from;
	reader->from = 0;
	while (reader->to < want) {
		ssize_t len = read(reader->fd, reader->packed + reader->to, reader->cap - reader->to);

		if (len < 0 && errno == EINTR)
			continue;
		if (len <= 0)
			return len ? -errno : 0;
		reader->to += (size_t)len;
	}
	return 0;
}

int chunk_reader__open(struct chunk_reader *reader, int fd)
{
	const uint8_t *head;
	int err;

	*reader = (struct chunk_reader){.fd = fd};
	if (grow(&reader->packed, &reader->cap, ROOM_BYTES) ||
	    grow(&reader->raw, &reader->raw_cap, ROOM_BYTES) ||
	    inflateInit2(&reader->stream, -MAX_WBITS) != Z_OK)
		return -ENOMEM;
	reader->open = true;
	err = fill(reader, RECORD_MAGIC_BYTES + 1);
	if (err)
		return err;
	head = reader->packed;
	if (reader->to < RECORD_MAGIC_BYTES + 1 || memcmp(head, RECORD_MAGIC, RECORD_MAGIC_BYTES))
		return -EINVAL;
	reader->from = RECORD_MAGIC_BYTES + 1;
	return head[RECORD_MAGIC_BYTES] == RECORD_VERSION ? 0 : -ENOTSUP;
}

static const char cut_off[] = "it was cut off", damaged[] = "it is damaged";

/* NULL, or what is wrong: it is no deflate, or more than a chunk may be. */
static const char *inflate_part(struct chunk_reader *reader, const uint8_t *bytes, size_t len)
{
	z_stream *stream = &reader->stream;
	int result = Z_OK;

	stream->next_in = (uint8_t *)bytes;
	stream->avail_in = (unsigned int)len;
	do {
		if (reader->raw_len == RECORD_CHUNK_MAX)
			return damaged;
		if (reader->raw_len == reader->raw_cap &&
		    grow(&reader->raw, &reader->raw_cap, min_u64(2 * reader->raw_cap, RECORD_CHUNK_MAX)))
			return strerrordesc_np(ENOMEM);
		stream->next_out = reader->raw + reader->raw_len;
		stream->avail_out = (unsigned int)(reader->raw_cap - reader->raw_len);
		result = inflate(stream, Z_SYNC_FLUSH);
		reader->raw_len = reader->raw_cap - stream->avail_out;
		/* With room left, all that there is has come out. */
	} while (result == Z_OK && !stream->avail_out);
	return (result == Z_OK || result == Z_BUF_ERROR) && !stream->avail_in ? NULL : damaged;
}

/* Kind and length: bytes of the two, 0 if there are not enough of them; SIZE_MAX for a length that cannot be.
 */
static size_t parse_head(const struct chunk_reader *reader, size_t *length)
{
	const uint8_t *head = reader->packed + reader->from;
	size_t there = reader->to - reader->from;

	*length = 0;
	for (size_t i = 1; i < there; i++) {
		*length |= (size_t)(head[i] & 0x7f) << 7 * (i - 1);
		if (*length > RECORD_PACKED_MAX || i > 4)
			return SIZE_MAX;
		if (!(head[i] & 0x80))
			return i + 1;
	}
	return 0;
}

const char *chunk_reader__next(struct chunk_reader *reader)
{
	size_t head_len, length;
	const uint8_t *chunk;
	const char *fault = NULL;
	int err = fill(reader, 8);

	head_len = err ? 0 : parse_head(reader, &length);
	if (head_len == SIZE_MAX)
		return damaged;
	if (head_len)
		err = fill(reader, head_len + sizeof(uint32_t) + length);
	if (err)
		return strerrordesc_np(-err);
	if (!head_len || reader->to - reader->from < head_len + sizeof(uint32_t) + length)
		return cut_off;
	chunk = reader->packed + reader->from;
	if (load_u32(chunk + head_len) !=
	    check_of(chunk, head_len, chunk + head_len + sizeof(uint32_t), length))
		return damaged;
	reader->from += head_len + sizeof(uint32_t) + length;
	reader->kind = chunk[0];
	reader->raw_len = 0;
	if (length)
		fault = inflate_part(reader, chunk + head_len + sizeof(uint32_t), length)
				?: inflate_part(reader, FLUSH_MARK, sizeof(FLUSH_MARK));
	return fault;
}

bool chunk_reader__has_more(struct chunk_reader *reader)
{
	return !fill(reader, 1) && reader->to > reader->from;
}

void chunk_reader__close(struct chunk_reader *reader)
{
	if (reader->open)
		inflateEnd(&reader->stream);
	if (reader->fd >= 0)
		close(reader->fd);
	free(reader->packed);
	free(reader->raw);
	*reader = (struct chunk_reader){.fd = -1};
}
