/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The protobuf wire format, as much of it as a writer needs: numbers, bytes, and messages as bytes.
 */
#pragma once

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

void protobuf__varint(struct buf *buf, uint64_t value);
/* A field that holds a number; nothing for 0, which is what a missing one means. */
void protobuf__number(struct buf *buf, uint32_t field, uint64_t value);
/* A field that holds a text, a message or packed numbers. */
void protobuf__bytes(struct buf *buf, uint32_t field, const void *bytes, size_t len);
/* The same, of what `message` holds, which is empty then. */
void protobuf__message(struct buf *buf, uint32_t field, struct buf *message);
