/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See pattern.h.
 */
#include "base/pattern.h"

#include "base/buf.h"

#include <fnmatch.h>
#include <string.h>

/* `also`: what else the format escapes. */
static bool is_shown_as(const char *text, const char *name, const char *also)
{
	struct buf shown = {0};
	bool same;

	buf__add_escaped(&shown, name, also);
	buf__addc(&shown, '\0');
	same = !shown.err && !strcmp(shown.data, text);
	buf__free(&shown);
	return same;
}

bool pattern__matches(const char *pattern, const char *name)
{
	if (!strcmp(pattern, name) || !fnmatch(pattern, name, 0))
		return true;
	return strchr(pattern, '\\') && (is_shown_as(pattern, name, NULL) || is_shown_as(pattern, name, ";"));
}
