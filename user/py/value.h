/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A short description of a value, much like its repr() but without running any code: numbers, texts, bytes
 * and the built-in containers of them; anything else as <module.Type object at 0x7f...>. What is long is cut
 * and says so, with its length. Whatever the object is made of, the text is valid UTF-8 of bounded length
 * without anything that disturbs a terminal.
 */
#pragma once

#include "base/buf.h"
#include "py/object.h"

#define VALUE_BYTES_MAX 1024 /* of one description */

/* Append the description. What cannot be read reads "<unreadable>". */
void py_value__add(struct py_objects *objects, py_addr object, struct buf *out);

/* Parts of it, pure. An int of `count` digits of 30 bits; count is at least 1. */
#define PY_INT_DIGITS_MAX 16
void py_value__add_int(const uint32_t *digits, size_t count, bool negative, struct buf *out);
void py_value__add_float(double value, struct buf *out);
/* Characters between quotes. */
void py_value__add_text(uint32_t kind, const uint8_t *data, size_t count, struct buf *out);
void py_value__add_bytes(const uint8_t *data, size_t count, struct buf *out);
