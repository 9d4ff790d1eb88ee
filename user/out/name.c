/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See name.h.
 */
#include "out/name.h"

#include "base/buf.h"

#include <time.h>

static void add_time(struct buf *name, uint64_t time_s)
{
	time_t seconds = (time_t)time_s;
	struct tm time;
	char text[40];

	if (gmtime_r(&seconds, &time) && strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &time))
		buf__adds(name, text);
}

static void add_host(struct buf *name, const char *host)
{
	for (; *host; host++)
		buf__addc(name, *host == '/' ? '_' : *host);
}

char *name__expand(const char *pattern, const struct name_facts *facts)
{
	struct buf name = {0};

	for (const char *c = pattern; *c; c++) {
		char what = *c == '%' ? c[1] : '\0';

		if (what == 'p')
			buf__add_number(&name, (uint64_t)facts->pid);
		else if (what == 't')
			add_time(&name, facts->time_s);
		else if (what == 'h')
			add_host(&name, facts->host);
		else
			buf__addc(&name, *c);
		c += what == 'p' || what == 't' || what == 'h' || what == '%';
	}
	buf__addc(&name, '\0');
	if (!name.err)
		return name.data;
	buf__free(&name);
	return NULL;
}
