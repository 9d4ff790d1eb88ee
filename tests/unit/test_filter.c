/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which processes are wanted.
 */
#include "os/filter.h"

#include <criterion/criterion.h>

static bool wants(struct filter filter)
{
	return filter__wants(&filter, "gunicorn", "/usr/bin/python3 gunicorn app:main -w 4", 1000);
}

Test(filter, nothing_asked)
{
	cr_expect(!filter__is_set(&(struct filter){}));
	cr_expect(wants((struct filter){}));
	cr_expect(filter__is_set(&(struct filter){.by_user = true}));
	cr_expect(filter__is_set(&(struct filter){.comm = "x"}));
	cr_expect(filter__is_set(&(struct filter){.exclude = "x"}));
}

Test(filter, names)
{
	cr_expect(wants((struct filter){.comm = "gunicorn"}));
	cr_expect(wants((struct filter){.comm = "g*n"}));
	cr_expect(wants((struct filter){.comm = "[fg]unicor?"}));
	cr_expect(!wants((struct filter){.comm = "guni"}), "the whole name");
	cr_expect(!wants((struct filter){.comm = "python*"}));
}

Test(filter, excluded)
{
	cr_expect(!wants((struct filter){.exclude = "app:main"}), "a part of the command line");
	cr_expect(!wants((struct filter){.exclude = "gunicorn*-w"}));
	cr_expect(wants((struct filter){.exclude = "celery"}));
	cr_expect(wants((struct filter){.exclude = "gunicorn celery"}));
	cr_expect(!wants((struct filter){.comm = "gunicorn", .exclude = "-w 4"}), "both are asked");
}

Test(filter, users)
{
	cr_expect(wants((struct filter){.by_user = true, .user = 1000}));
	cr_expect(!wants((struct filter){.by_user = true, .user = 0}));
}
