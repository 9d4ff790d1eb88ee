/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * JSON text (RFC 8259) from foreign bytes.
 */
#pragma once

#include "base/buf.h"

#include <stddef.h>

/*
 * Append a string with its quotes. What could disturb a terminal becomes \uNNNN, bytes that are no UTF-8
 * become U+FFFD, so the result is always valid.
 */
void json__string(struct buf *buf, const char *s, size_t len);
