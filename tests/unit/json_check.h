/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Is a text one JSON value (RFC 8259) in UTF-8, and nothing else? Strict: no raw control characters in
 * strings.
 */
#pragma once

#include "base/utf8.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define JSON_DEPTH_MAX 32

struct json_check {
	const char *at, *end;
};

static inline bool json_value(struct json_check *check, int depth);

static inline void json_space(struct json_check *check)
{
	while (check->at < check->end && strchr(" \t\r\n", *check->at) && *check->at)
		check->at++;
}

static inline bool json_take(struct json_check *check, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(check->end - check->at) < len || memcmp(check->at, word, len))
		return false;
	check->at += len;
	return true;
}

static inline bool json_escape(struct json_check *check)
{
	if (check->at < check->end && *check->at && strchr("\"\\/bfnrt", *check->at)) {
		check->at++;
		return true;
	}
	if (!json_take(check, "u") || check->end - check->at < 4)
		return false;
	for (int i = 0; i < 4; i++)
		if (!isxdigit((unsigned char)*check->at++))
			return false;
	return true;
}

static inline bool json_text(struct json_check *check)
{
	if (!json_take(check, "\""))
		return false;
	while (check->at < check->end && *check->at != '"') {
		uint32_t code;
		size_t step = utf8_decode(check->at, check->end - check->at, &code);

		if (!step || code < 0x20)
			return false;
		check->at += step;
		if (code == '\\' && !json_escape(check))
			return false;
	}
	return json_take(check, "\"");
}

static inline bool json_digits(struct json_check *check)
{
	const char *from = check->at;

	while (check->at < check->end && isdigit((unsigned char)*check->at))
		check->at++;
	return check->at > from;
}

static inline bool json_number(struct json_check *check)
{
	json_take(check, "-");
	if (!json_take(check, "0") && !json_digits(check))
		return false;
	if (json_take(check, ".") && !json_digits(check))
		return false;
	if (json_take(check, "e") || json_take(check, "E"))
		return (json_take(check, "+") || json_take(check, "-") || true) && json_digits(check);
	return true;
}

/* After the opening bracket. */
static inline bool json_items(struct json_check *check, const char *close, bool keys, int depth)
{
	json_space(check);
	if (json_take(check, close))
		return true;
	do {
		json_space(check);
		if (keys) {
			if (!json_text(check))
				return false;
			json_space(check);
			if (!json_take(check, ":"))
				return false;
		}
		if (!json_value(check, depth))
			return false;
		json_space(check);
	} while (json_take(check, ","));
	return json_take(check, close);
}

static inline bool json_value(struct json_check *check, int depth)
{
	json_space(check);
	if (depth > JSON_DEPTH_MAX || check->at >= check->end)
		return false;
	if (*check->at == '"')
		return json_text(check);
	if (json_take(check, "{"))
		return json_items(check, "}", true, depth + 1);
	if (json_take(check, "["))
		return json_items(check, "]", false, depth + 1);
	return json_take(check, "true") || json_take(check, "false") || json_take(check, "null") ||
	       json_number(check);
}

static inline bool json_is_valid(const char *text, size_t len)
{
	struct json_check check = {text, text + len};

	if (!json_value(&check, 0))
		return false;
	json_space(&check);
	return check.at == check.end;
}
