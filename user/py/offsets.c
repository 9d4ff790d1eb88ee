/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Versions: how they are written, and which table belongs to one. A version that is not known is refused by
 * its number; the layout of a neighbouring version is never tried, since it would read plausible nonsense.
 * Next: offsets_debug.c, tables in the process (3.13+); offsets_table.c, tables of ours (3.8 to 3.12).
 */
#include "py/offsets.h"

#include "base/util.h"
#include "py/offsets_debug.h"
#include "py/offsets_table.h"

#include <errno.h>
#include <stdio.h>

#define COOKIE	     "xdebugpy"
#define COOKIE_BYTES 8
#define VERSION_AT   8	/* u64, PY_VERSION_HEX */
#define HEADER_BYTES 16 /* cookie and version: the same in every version of the table */

/* Release level, bits 4-7 of PY_VERSION_HEX (CPython Include/patchlevel.h). */
#define LEVEL_ALPHA 0xa
#define LEVEL_BETA  0xb
#define LEVEL_RC    0xc
#define LEVEL_FINAL 0xf

static uint32_t release_level(uint32_t hex)
{
	return hex >> 4 & 0xf;
}

static const char *level_name(uint32_t level)
{
	switch (level) {
	case LEVEL_ALPHA:
		return "a";
	case LEVEL_BETA:
		return "b";
	case LEVEL_RC:
		return "rc";
	default:
		return "?";
	}
}

const char *py_version_format(uint32_t hex, char *buf, size_t size)
{
	uint32_t level = release_level(hex);
	int len = snprintf(buf, size, "%u.%u.%u", hex >> 24, hex >> 16 & 0xff, hex >> 8 & 0xff);

	if (py_version_minor(hex) < PY_DEBUG_FIRST_MINOR && (hex >> 8 & 0xff) == PY_MICRO_UNKNOWN) {
		snprintf(buf, size, "%u.%u", hex >> 24, hex >> 16 & 0xff);
		return buf;
	}
	if (level != LEVEL_FINAL && len > 0 && (size_t)len < size)
		snprintf(buf + len, size - len, "%s%u", level_name(level), hex & 0xf);
	return buf;
}

/* Could this be the version of any Python, known or not? Zero and leftovers of other data are not. */
static bool is_plausible(uint64_t version)
{
	uint32_t level = release_level(version);

	return version <= UINT32_MAX && py_version_major(version) >= 3 && py_version_major(version) <= 4 &&
	       (level == LEVEL_FINAL || (level >= LEVEL_ALPHA && level <= LEVEL_RC));
}

/* Is it a release of 3.`first` to 3.`last`? */
static int check_release(uint32_t version, uint32_t first, uint32_t last, char *reason, size_t reason_size)
{
	uint32_t major = py_version_major(version), minor = py_version_minor(version);
	char text[24];

	if (major != 3 || minor < first || minor > last) {
		snprintf(reason, reason_size, "Python %u.%u is not supported (%s are)", major, minor,
			 PY_SUPPORTED_VERSIONS);
		return -ENOTSUP;
	}
	if (release_level(version) != LEVEL_FINAL) {
		snprintf(reason, reason_size,
			 "Python %s is a pre-release, which is not supported (releases of %s are)",
			 py_version_format(version, text, sizeof(text)), PY_SUPPORTED_VERSIONS);
		return -ENOTSUP;
	}
	return 0;
}

static int check_version(uint64_t version, char *reason, size_t reason_size)
{
	if (!is_plausible(version)) {
		snprintf(reason, reason_size, "_Py_DebugOffsets: version 0x%llx is none",
			 (unsigned long long)version);
		return -EINVAL;
	}
	if (py_version_major(version) == 3 && py_version_minor(version) < PY_DEBUG_FIRST_MINOR) {
		snprintf(reason, reason_size, "_Py_DebugOffsets: Python 3.%u has none",
			 py_version_minor(version));
		return -ENOTSUP;
	}
	return check_release(version, PY_DEBUG_FIRST_MINOR, PY_DEBUG_LAST_MINOR, reason, reason_size);
}

int py_offsets__decode(struct py_offsets *out, const uint8_t *table, size_t len, char *reason,
		       size_t reason_size)
{
	uint64_t version;
	int err;

	if (len < HEADER_BYTES || memcmp(table, COOKIE, COOKIE_BYTES) != 0) {
		snprintf(reason, reason_size, "_Py_DebugOffsets: no cookie");
		return -EINVAL;
	}
	version = load_u64(table + VERSION_AT);
	err = check_version(version, reason, reason_size);
	if (err)
		return err;
	*out = (struct py_offsets){.version = version};
	return py_debug_offsets__decode(out, py_version_minor(version), table, len, reason, reason_size);
}

/*
 * What is no offset. Owners: FRAME_OWNED_BY_CSTACK came with 3.12 (Include/internal/pycore_frame.h). States:
 * f_executing is a flag; PyFrameState of 3.10 has FRAME_EXECUTING 0 and FRAME_UNWINDING 2
 * (Include/cpython/frameobject.h).
 */
static void set_meanings(struct py_offsets *out, uint32_t minor)
{
	out->first_other_owner = minor >= 12 ? 3 : 0;
	out->lasti_unit = minor <= 9 ? 1 : minor == 10 ? 2 : 0;
	out->running_states = minor <= 9 ? 1u << 1 : minor == 10 ? 1u << 0 | 1u << 2 : 0;
}

int py_offsets__of_version(struct py_offsets *out, uint32_t version, char *reason, size_t reason_size)
{
	uint32_t minor = py_version_minor(version);
	int err = check_release(version, PY_TABLE_FIRST_MINOR, PY_TABLE_LAST_MINOR, reason, reason_size);

	if (err)
		return err;
	*out = py_offsets_tables[minor - PY_TABLE_FIRST_MINOR];
	out->version = version;
	set_meanings(out, minor);
	return 0;
}
