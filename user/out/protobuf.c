/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See protobuf.h. A field is its number and kind as a varint, then the value.
 */
#include "out/protobuf.h"

enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

void protobuf__varint(struct buf *buf, uint64_t value)
{
	unsigned char bytes[10];
	size_t len = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[len++] = (unsigned char)(value | 0x80);
	bytes[len++] = (unsigned char)value;
	buf__add(buf, bytes, len);
}

void protobuf__number(struct buf *buf, uint32_t field, uint64_t value)
{
	if (!value)
		return;
	protobuf__varint(buf, field << 3 | WIRE_VARINT);
	protobuf__varint(buf, value);
}

void protobuf__bytes(struct buf *buf, uint32_t field, const void *bytes, size_t len)
{
	protobuf__varint(buf, field << 3 | WIRE_BYTES);
	protobuf__varint(buf, len);
	buf__add(buf, bytes, len);
}

void protobuf__message(struct buf *buf, uint32_t field, struct buf *message)
{
	buf->err = buf->err ?: message->err;
	protobuf__bytes(buf, field, message->data, message->len);
	message->len = 0;
}
