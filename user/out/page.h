/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A page of user/out/viewer with its data, which is never markup: no "<" of it reaches the page.
 */
#pragma once

#include "base/buf.h"

#include <stddef.h>

/* Appends the page with a JSON text at its place. 0 or -errno. */
int page__write(struct buf *buf, const unsigned char *page, size_t len, const struct buf *json);
