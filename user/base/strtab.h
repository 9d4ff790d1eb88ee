/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Interned strings: each distinct byte string lives once and is known by a u32 id. Id 0 is the empty string.
 * Bytes are stored as given (callers intern valid UTF-8 only: see py/str.h), always NUL-terminated.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct strtab;

/* 0 or -ENOMEM. */
int strtab__new(struct strtab **out);
void strtab__free(struct strtab *tab);
/* Forgets all strings but "", and gives their memory back: ids begin anew, and what was lent is gone. */
void strtab__clear(struct strtab *tab);

/* Intern len bytes (no NUL inside). Returns the id, or UINT32_MAX when out of memory. */
uint32_t strtab__add(struct strtab *tab, const char *s, size_t len);
/* The same of one that is there; UINT32_MAX: it is not. */
uint32_t strtab__find(const struct strtab *tab, const char *s, size_t len);
/* The string of an id; borrowed, valid until strtab__free or _clear. Unknown ids give "". */
const char *strtab__get(const struct strtab *tab, uint32_t id);
size_t strtab__len(const struct strtab *tab, uint32_t id);
/* Number of strings (ids are 0 .. count-1) and bytes of memory held. */
uint32_t strtab__count(const struct strtab *tab);
size_t strtab__bytes(const struct strtab *tab);
