/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What each version and build gives, against what is known of it.
 */
#include "py/features.h"

#include "base/util.h"
#include "py/layout.h"
#include "versions.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#define RUNTIME 0x100000

static struct py_feature features[PY_FEATURES_MAX];

static size_t list(struct py_target *target, int version)
{
	*target = (struct py_target){.runtime = RUNTIME};
	image_offsets(&target->offsets, version);
	cr_assert_eq(py_layout__fill(&target->layout, &target->offsets, PBP_NONE), 0);
	py_layout__locate(&target->layout, &target->offsets, RUNTIME);
	return py_features__list(target, features);
}

static const char *how(size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(features[i].name, name))
			return features[i].how;
	cr_assert(false, "there is no feature %s", name);
	return "";
}

/* By version, as versions.h numbers them. */
static const char *const MISSING[][6] = {
	[8] = {"qualified names", "JIT", "frame marker", "variables"},
	[9] = {"qualified names", "JIT", "frame marker", "variables"},
	[10] = {"qualified names", "JIT", "frame marker", "variables"},
	[11] = {"JIT", "frame marker", "variables"},
	[12] = {"JIT", "frame marker", "variables"},
	[13] = {"JIT", "frame marker"},
	[14] = {"frame marker"},
	[15] = {NULL},
	[16] = {"JIT", "frame marker", "GIL holder", "GIL wait"},
	[17] = {"frame marker", "GIL holder", "GIL wait", "collector"},
	[18] = {"GIL holder", "GIL wait"},
};

Test(features, what_each_version_lacks)
{
	struct py_target target;

	for (int version = IMAGE_FIRST_VERSION; version <= IMAGE_LAST_VERSION; version++) {
		size_t count = list(&target, version), missing = 0;

		for (size_t i = 0; i < count; i++) {
			cr_assert(features[i].how[0]);
			missing += !features[i].given;
			cr_expect(features[i].given ||
					  (missing <= 6 && MISSING[version][missing - 1] &&
					   !strcmp(MISSING[version][missing - 1], features[i].name)),
				  "version %d: %s is said to be missing", version, features[i].name);
		}
		cr_expect(missing == 6 || !MISSING[version][missing], "version %d: %s is said to be there",
			  version, MISSING[version][missing]);
	}
}

Test(features, how)
{
	struct py_target target;
	size_t count = list(&target, 10);

	cr_expect(strstr(how(count, "calls from C"), "every function"));
	cr_expect(strstr(how(count, "code identity"), "made of"));
	cr_expect(strstr(how(count, "sub-interpreters"), "released only that"));
	cr_expect(strstr(how(count, "exceptions"), "or handled"));
	count = list(&target, 11);
	cr_expect(strstr(how(count, "calls from C"), "frames say"));
	cr_expect(strstr(how(count, "GIL wait"), "only the holder"));
	count = list(&target, 12);
	cr_expect(strstr(how(count, "calls from C"), "entry frames"));
	cr_expect(strstr(how(count, "GIL wait"), "lock"));
	cr_expect(strstr(how(count, "code identity"), "version number"));
	count = list(&target, 15);
	cr_expect(strstr(how(count, "GIL wait"), "thread state"));
	cr_expect(strstr(how(count, "collector"), "and which frame"));
	cr_expect(strstr(how(count, "exceptions"), "handled"));
	count = list(&target, 16);
	cr_expect(!strstr(how(count, "line numbers"), "copies"));
	count = list(&target, 17);
	cr_expect(strstr(how(count, "line numbers"), "copies"));
}

Test(features, origin_of_the_offsets)
{
	static const struct {
		int version;
		const char *words;
		bool tested;
	} expected[] = {{8, "this program's table", true}, {12, "this program's table", true},
			{13, "_Py_DebugOffsets", true},	   {15, "_Py_DebugOffsets", true},
			{16, "_Py_DebugOffsets", true},	   {17, "_Py_DebugOffsets", false},
			{18, "_Py_DebugOffsets", false}};

	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		struct py_target target;
		const char *origin;

		list(&target, expected[i].version);
		origin = py_features__origin(&target);
		cr_expect(strstr(origin, expected[i].words), "version %d: %s", expected[i].version, origin);
		cr_expect_eq(!strstr(origin, "not tested"), expected[i].tested, "version %d: %s",
			     expected[i].version, origin);
	}
}
