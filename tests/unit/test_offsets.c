/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * _Py_DebugOffsets of 3.13, 3.14 and 3.15, with the GIL and free-threaded: right values out of right tables, and no table, however wrong,
 * that gives an offset outside of its struct.
 */
#include "py/offsets.h"

#include "base/util.h"
#include "debug_offsets.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_BYTES 888

struct version {
	const char *name;
	const struct table_word *words;
	size_t count;
};

static const struct version versions[] = {
	{"3.13", table_3_13, ARRAY_SIZE(table_3_13)},
	{"3.14", table_3_14, ARRAY_SIZE(table_3_14)},
	{"3.15", table_3_15, ARRAY_SIZE(table_3_15)},
};

static void build(uint64_t *table, const struct version *version, bool free_threaded)
{
	for (size_t i = 0; i < version->count; i++)
		table[i] = free_threaded ? version->words[i].free_threaded : version->words[i].value;
}

/* From a copy of exactly that length, so that the sanitizer sees a read beyond it. */
static int decode(struct py_offsets *out, const uint64_t *table, size_t len, char *reason, size_t size)
{
	uint8_t *copy = malloc(len ?: 1);
	int err;

	memcpy(copy, table, len);
	reason[0] = '\0';
	err = py_offsets__decode(out, copy, len, reason, size);
	free(copy);
	return err;
}

static uint64_t word(const struct version *version, bool free_threaded, const char *name)
{
	for (size_t i = 0; i < version->count; i++) {
		if (!strcmp(version->words[i].name, name))
			return free_threaded ? version->words[i].free_threaded : version->words[i].value;
	}
	return PY_ABSENT;
}

/* ---- right tables ---- */

static void check_values(const struct version *version, bool free_threaded)
{
	uint64_t table[MAX_BYTES / 8];
	struct py_offsets o;
	char reason[256];

	build(table, version, free_threaded);
	cr_assert_eq(decode(&o, table, version->count * 8, reason, sizeof(reason)), 0, "%s: %s",
		     version->name, reason);
	cr_assert_eq(o.version, word(version, false, "version"));
	cr_assert_eq(o.free_threaded, free_threaded);
#define SAME(member, field)                                                                                  \
	cr_assert_eq(o.member, word(version, free_threaded, field), "%s %s: %u", version->name, field,       \
		     o.member)
	SAME(runtime_interpreters_head, "runtime_state.interpreters_head");
	SAME(runtime_finalizing, "runtime_state.finalizing");
	SAME(interp_id, "interpreter_state.id");
	SAME(interp_next, "interpreter_state.next");
	SAME(interp_threads_head, "interpreter_state.threads_head");
	SAME(interp_ceval_gil, "interpreter_state.ceval_gil");
	SAME(interp_generation, "interpreter_state.code_object_generation");
	SAME(thread_size, "thread_state.size");
	SAME(thread_prev, "thread_state.prev");
	SAME(thread_next, "thread_state.next");
	SAME(thread_interp, "thread_state.interp");
	SAME(thread_current_frame, "thread_state.current_frame");
	SAME(thread_base_frame, "thread_state.base_frame");
	SAME(thread_thread_id, "thread_state.thread_id");
	SAME(thread_native_thread_id, "thread_state.native_thread_id");
	SAME(thread_datastack_chunk, "thread_state.datastack_chunk");
	SAME(thread_status, "thread_state.status");
	SAME(thread_gil_requested, "thread_state.gil_requested");
	SAME(frame_size, "interpreter_frame.size");
	SAME(frame_previous, "interpreter_frame.previous");
	SAME(frame_executable, "interpreter_frame.executable");
	SAME(frame_instr, "interpreter_frame.instr_ptr");
	SAME(frame_owner, "interpreter_frame.owner");
	SAME(frame_localsplus, "interpreter_frame.localsplus");
	SAME(code_size, "code_object.size");
	SAME(code_filename, "code_object.filename");
	SAME(code_name, "code_object.name");
	SAME(code_qualname, "code_object.qualname");
	SAME(code_linetable, "code_object.linetable");
	SAME(code_firstlineno, "code_object.firstlineno");
	SAME(code_adaptive, "code_object.co_code_adaptive");
	SAME(object_type, "pyobject.ob_type");
	SAME(type_name, "type_object.tp_name");
	SAME(unicode_length, "unicode_object.length");
	SAME(unicode_state, "unicode_object.state");
	SAME(unicode_ascii_size, "unicode_object.asciiobject_size");
	SAME(bytes_size, "bytes_object.ob_size");
	SAME(bytes_data, "bytes_object.ob_sval");
	if (free_threaded) {
		SAME(interp_tlbc_generation, "interpreter_state.tlbc_generation");
		SAME(frame_tlbc_index, "interpreter_frame.tlbc_index");
		SAME(code_co_tlbc, "code_object.co_tlbc");
	}
	SAME(interp_imports_modules, "interpreter_state.imports_modules");
	SAME(code_argcount, "code_object.argcount");
	SAME(code_localsplusnames, "code_object.localsplusnames");
	SAME(code_localspluskinds, "code_object.localspluskinds");
	SAME(type_flags, "type_object.tp_flags");
	SAME(tuple_size, "tuple_object.ob_size");
	SAME(tuple_items, "tuple_object.ob_item");
	SAME(list_size, "list_object.ob_size");
	SAME(list_items, "list_object.ob_item");
	SAME(dict_keys, "dict_object.ma_keys");
	SAME(dict_values, "dict_object.ma_values");
	SAME(float_value, "float_object.ob_fval");
	SAME(long_tag, "long_object.lv_tag");
	SAME(long_digits, "long_object.ob_digit");
#undef SAME
	/* Constants where the table has none; they are the same in all versions. */
	cr_assert_eq(o.set_used, free_threaded ? 40 : 24);
	cr_assert_eq(o.set_mask, free_threaded ? 48 : 32);
	cr_assert_eq(o.set_table, free_threaded ? 56 : 40);
	cr_assert_eq(o.type_basicsize, free_threaded ? 48 : 32);
	cr_assert_eq(o.type_dict, free_threaded ? 280 : 264);
	cr_assert_eq(o.heap_type_cached_keys, word(version, free_threaded, "type_object.size") + 464);
	if (word(version, false, "gc.frame") != PY_ABSENT)
		cr_assert_eq(o.interp_gc_frame, word(version, free_threaded, "interpreter_state.gc") +
							word(version, free_threaded, "gc.frame"));
	else
		cr_assert_eq(o.interp_gc_frame, PY_ABSENT);
	cr_assert_eq(o.interp_gc_collecting, word(version, free_threaded, "interpreter_state.gc") +
						     word(version, free_threaded, "gc.collecting"));
}

Test(offsets, values_come_from_the_table)
{
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		check_values(&versions[i], false);
		check_values(&versions[i], true);
	}
}

/* offsetof() against the headers of each release. */
Test(offsets, constants_of_each_minor)
{
	static const struct {
		uint32_t main_thread, key, holds_gil, exception, state, datastack_top, firsttraceable;
		bool tagged;
	} expected[] = {
		{656, 2160, PY_ABSENT, 112, 40, 240, 184, false},
		{832, 2336, 36, 112, 44, 240, 192, true},
		{960, PY_ABSENT, 36, 136, 48, 264, 192, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		uint64_t table[MAX_BYTES / 8];
		struct py_offsets o;
		char reason[256];

		build(table, &versions[i], false);
		cr_assert_eq(decode(&o, table, versions[i].count * 8, reason, sizeof(reason)), 0, "%s",
			     reason);
		cr_assert_eq(o.runtime_main_thread, expected[i].main_thread);
		cr_assert_eq(o.runtime_auto_tss_key, expected[i].key);
		cr_assert_eq(o.thread_holds_gil, expected[i].holds_gil);
		cr_assert_eq(o.thread_current_exception, expected[i].exception);
		cr_assert_eq(o.thread_state, expected[i].state);
		cr_assert_eq(o.thread_datastack_top, expected[i].datastack_top);
		cr_assert_eq(o.code_firsttraceable, expected[i].firsttraceable);
		cr_assert_eq(o.code_version, 92);
		cr_assert_eq(o.tagged_frames, expected[i].tagged);
		cr_assert_eq(o.first_other_owner, 3);
		cr_assert_eq(o.var_object_size, 16);
		cr_assert_eq(o.unicode_compact_size, 56);
		cr_assert_eq(o.frame_tlbc_index, PY_ABSENT, "GIL builds have none, whatever the table says");
		cr_assert_eq(o.code_co_tlbc, PY_ABSENT);
		cr_assert_eq(o.interp_tlbc_generation, PY_ABSENT);
		cr_assert_eq(o.cframe_current_frame, PY_ABSENT);
		cr_assert_not(o.wide_interned);
	}
}

/* What is in an object lies behind a longer header; the thread state and _PyRuntime are laid out as with the GIL. */
Test(offsets, free_threaded_builds)
{
	static const uint32_t firsttraceable[] = {200, 208, 208}, state[] = {40, 44, 48},
			      key[] = {2160, 2336, PY_ABSENT}, tlbc[] = {PY_ABSENT, 224, 224},
			      owner[] = {70, 78, 78};

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		uint64_t table[MAX_BYTES / 8];
		struct py_offsets o;
		char reason[256];

		build(table, &versions[i], true);
		cr_assert_eq(decode(&o, table, versions[i].count * 8, reason, sizeof(reason)), 0, "%s",
			     reason);
		cr_assert_eq(o.wide_interned, i > 0);
		cr_assert_eq(o.tagged_frames, i > 0);
		cr_assert_eq(o.code_version, 108);
		cr_assert_eq(o.code_firsttraceable, firsttraceable[i]);
		cr_assert_eq(o.thread_state, state[i]);
		cr_assert_eq(o.runtime_auto_tss_key, key[i]);
		cr_assert_eq(o.code_co_tlbc, tlbc[i]);
		cr_assert_eq(o.frame_owner, owner[i]);
		cr_assert_eq(o.var_object_size, 32);
		cr_assert_eq(o.unicode_compact_size, 72);
	}
}

/* The constants for what the table lacks depend on the flag. */
Test(offsets, a_flag_that_is_wrong_is_refused)
{
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		for (int free_threaded = 0; free_threaded <= 1; free_threaded++) {
			uint64_t table[MAX_BYTES / 8];
			struct py_offsets o;
			char reason[256];

			build(table, &versions[i], free_threaded);
			table[2] = !free_threaded;
			cr_assert_eq(decode(&o, table, versions[i].count * 8, reason, sizeof(reason)),
				     -EBADMSG);
			cr_assert_str_eq(reason, free_threaded ? "_Py_DebugOffsets: pyobject.size (32) is "
								 "not that of a GIL build"
							       : "_Py_DebugOffsets: pyobject.size (16) is "
								 "not that of a free-threaded build");
			table[2] = 2;
			cr_assert_eq(decode(&o, table, versions[i].count * 8, reason, sizeof(reason)),
				     -EBADMSG);
			cr_assert_str_eq(reason, "_Py_DebugOffsets: free_threaded cannot be 2");
		}
	}
}

/* Structs grow at their end from one patch release to the next. */
Test(offsets, other_sizes_are_fine)
{
	uint64_t table[MAX_BYTES / 8];
	struct py_offsets o;
	char reason[256];

	build(table, &versions[0], false); /* as 3.13.0 */
	table[1] = 0x030d00f0;
	table[3] = 283320;
	table[6] = 194968;
	table[152 / 8] = 304;
	cr_assert_eq(decode(&o, table, versions[0].count * 8, reason, sizeof(reason)), 0, "%s", reason);
	build(table, &versions[2], false); /* as 3.15.2 debug */
	table[3] = 362592;
	table[6] = 226256;
	cr_assert_eq(decode(&o, table, versions[2].count * 8, reason, sizeof(reason)), 0, "%s", reason);
}

/* ---- versions ---- */

static void check_version(uint64_t hex, int expected_err, const char *expected_reason)
{
	for (int free_threaded = 0; free_threaded <= 1; free_threaded++) {
		uint64_t table[MAX_BYTES / 8];
		struct py_offsets o;
		char reason[256];
		int err;

		build(table, &versions[2], free_threaded);
		table[1] = hex;
		err = decode(&o, table, versions[2].count * 8, reason, sizeof(reason));
		cr_assert_eq(err, expected_err, "0x%llx: %d %s", (unsigned long long)hex, err, reason);
		cr_assert_str_eq(reason, expected_reason);
	}
}

Test(offsets, unknown_versions_are_refused_by_number)
{
	check_version(0x031000f0, -ENOTSUP, "Python 3.16 is not supported (3.8 to 3.15 are)");
	check_version(0x031002f0, -ENOTSUP, "Python 3.16 is not supported (3.8 to 3.15 are)");
	check_version(0x030c01f0, -ENOTSUP, "_Py_DebugOffsets: Python 3.12 has none");
	check_version(0x040000f0, -ENOTSUP, "Python 4.0 is not supported (3.8 to 3.15 are)");
}

Test(offsets, prereleases_are_refused_by_name)
{
	const char *rest = "is a pre-release, which is not supported (releases of 3.8 to 3.15 are)";
	char reason[256];

	snprintf(reason, sizeof(reason), "Python 3.15.0b1 %s", rest);
	check_version(0x030f00b1, -ENOTSUP, reason);
	snprintf(reason, sizeof(reason), "Python 3.15.0a7 %s", rest);
	check_version(0x030f00a7, -ENOTSUP, reason);
	snprintf(reason, sizeof(reason), "Python 3.14.0rc2 %s", rest);
	check_version(0x030e00c2, -ENOTSUP, reason);
}

Test(offsets, absurd_versions_are_none)
{
	static const uint64_t absurd[] = {0,	      0x030f0200, 0x030f0210, 0x020712f0,
					  0x090000f0, UINT64_MAX, 0x1030f02f0};

	for (size_t i = 0; i < ARRAY_SIZE(absurd); i++) {
		uint64_t table[MAX_BYTES / 8];
		struct py_offsets o;
		char reason[256];

		build(table, &versions[2], false);
		table[1] = absurd[i];
		cr_assert_eq(decode(&o, table, versions[2].count * 8, reason, sizeof(reason)), -EINVAL,
			     "0x%llx", (unsigned long long)absurd[i]);
		cr_assert(strstr(reason, "version"), "%s", reason);
	}
}

Test(offsets, versions_are_written_as_python_writes_them)
{
	static const struct {
		uint32_t hex;
		const char *text;
	} cases[] = {
		{0x030d12f0, "3.13.18"},  {0x030e0af0, "3.14.10"},     {0x030f02f0, "3.15.2"},
		{0x030f00b1, "3.15.0b1"}, {0x030f00a3, "3.15.0a3"},    {0x030e00c1, "3.14.0rc1"},
		{0, "0.0.0?0"},		  {UINT32_MAX, "255.255.255"}, {0x0308fff0, "3.8"},
	};
	char buf[24], tiny[4];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cr_assert_str_eq(py_version_format(cases[i].hex, buf, sizeof(buf)), cases[i].text);
	cr_assert_str_eq(py_version_format(0x030f00b1, tiny, sizeof(tiny)), "3.1");
}

/* ---- wrong tables ---- */

/* Every offset that came out lies inside its struct, as far as a struct's size came out too. */
static void assert_inside(const struct py_offsets *o)
{
	static const struct {
		size_t member, size_member;
		uint32_t width;
	} rules[] = {
#define RULE(member, size_member, width)                                                                     \
	{offsetof(struct py_offsets, member), offsetof(struct py_offsets, size_member), width}
		RULE(thread_prev, thread_size, 8),
		RULE(thread_next, thread_size, 8),
		RULE(thread_interp, thread_size, 8),
		RULE(thread_current_frame, thread_size, 8),
		RULE(thread_base_frame, thread_size, 8),
		RULE(thread_thread_id, thread_size, 8),
		RULE(thread_native_thread_id, thread_size, 8),
		RULE(thread_datastack_chunk, thread_size, 8),
		RULE(thread_datastack_top, thread_size, 8),
		RULE(thread_status, thread_size, 4),
		RULE(thread_state, thread_size, 4),
		RULE(thread_holds_gil, thread_size, 4),
		RULE(thread_gil_requested, thread_size, 4),
		RULE(thread_current_exception, thread_size, 8),
		RULE(frame_previous, frame_localsplus, 8),
		RULE(frame_executable, frame_localsplus, 8),
		RULE(frame_instr, frame_localsplus, 8),
		RULE(frame_owner, frame_localsplus, 1),
		RULE(frame_localsplus, frame_size, 8),
		RULE(frame_tlbc_index, frame_size, 4),
		RULE(code_filename, code_size, 8),
		RULE(code_name, code_size, 8),
		RULE(code_qualname, code_size, 8),
		RULE(code_linetable, code_size, 8),
		RULE(code_firstlineno, code_size, 4),
		RULE(code_version, code_size, 4),
		RULE(code_firsttraceable, code_size, 4),
		RULE(code_adaptive, code_size, 2),
		RULE(code_co_tlbc, code_size, 8),
		RULE(unicode_length, unicode_ascii_size, 8),
		RULE(unicode_state, unicode_ascii_size, 4),
#undef RULE
	};

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		uint32_t offset = load_u32((const char *)o + rules[i].member);
		uint32_t size = load_u32((const char *)o + rules[i].size_member);

		if (offset == PY_ABSENT)
			continue;
		cr_assert_leq((uint64_t)offset + rules[i].width, size, "rule %zu: %u in %u", i, offset, size);
		cr_assert_eq(offset % rules[i].width, 0, "rule %zu: %u", i, offset);
	}
	cr_assert_leq(o->thread_size, 1 << 20);
	cr_assert_leq(o->frame_size, 256);
	cr_assert_leq(o->code_size, 1024);
	cr_assert_leq(o->interp_gc_collecting, 16 << 20);
	cr_assert_leq(o->unicode_ascii_size, o->unicode_compact_size);
	cr_assert_leq(o->unicode_compact_size, 256);
}

static bool is_used(const char *name, bool free_threaded)
{
	static const char *const unused[] = {
		"imports_modules", "sysdict",	   "builtins",	    "gil_runtime",
		"last_profiled",   "exc_state",	   "err_stackitem", "argcount",	     "localsplusnames",
		"localspluskinds", "tp_repr",	   "tp_flags",	    "tp_basicsize",  "tp_dictoffset",
		"heap_type",	   "tuple",	   "list",	    "set_",	     "dict",
		"float",	   "long_object",  "gc.frame",	    "gc.generation", "gen_object",
		"debugger",	   "threads_main", "stackpointer",
	};

	for (size_t i = 0; i < ARRAY_SIZE(unused); i++) {
		if (strstr(name, unused[i]))
			return false;
	}
	return free_threaded || !strstr(name, "tlbc");
}

static void corrupt(const struct version *version, bool free_threaded, size_t index, uint64_t value,
		    bool must_refuse)
{
	uint64_t table[MAX_BYTES / 8];
	struct py_offsets o;
	char reason[256];
	int err;

	build(table, version, free_threaded);
	table[index] = value;
	err = decode(&o, table, version->count * 8, reason, sizeof(reason));
	if (!err)
		assert_inside(&o);
	else
		cr_assert_str_not_empty(reason);
	if (must_refuse && is_used(version->words[index].name, free_threaded)) {
		cr_assert_eq(err, -EBADMSG, "%s %s = %llu: %d", version->name, version->words[index].name,
			     (unsigned long long)value, err);
		/* A size that is too large passes as such only if it is believable. */
		cr_assert(strstr(reason, version->words[index].name) || strstr(reason, "cannot be"), "%s: %s",
			  version->words[index].name, reason);
	}
}

static void corrupt_each_way(const struct version *version, bool free_threaded, size_t i)
{
	static const uint64_t huge[] = {1ull << 40, UINT64_MAX, UINT64_MAX - 7, 0xffffffff00000000,
					1ull << 32, 1ull << 63, 0x80000000};
	uint64_t right = free_threaded ? version->words[i].free_threaded : version->words[i].value;

	for (size_t j = 0; j < ARRAY_SIZE(huge); j++)
		corrupt(version, free_threaded, i, huge[j], true);
	corrupt(version, free_threaded, i, right | 1ull << 32, true);
	corrupt(version, free_threaded, i, 0, false);
	corrupt(version, free_threaded, i, right + 1, false);
	corrupt(version, free_threaded, i, right + 4, false);
	corrupt(version, free_threaded, i, right + 8, false);
	corrupt(version, free_threaded, i, right - 8, false);
}

/* From 3 on: cookie, version and flag have tests of their own. */
Test(offsets, each_field_corrupted_is_refused_by_name_or_harmless)
{
	for (size_t v = 0; v < ARRAY_SIZE(versions); v++) {
		for (size_t i = 3; i < versions[v].count; i++) {
			corrupt_each_way(&versions[v], false, i);
			corrupt_each_way(&versions[v], true, i);
		}
	}
}

/* The bytecode begins where the pointer to its copies is. */
Test(offsets, fields_of_free_threaded_builds_on_others)
{
	uint64_t table[MAX_BYTES / 8];
	struct py_offsets o;
	char reason[256];

	build(table, &versions[1], true);
	table[392 / 8] = 232;
	cr_assert_eq(decode(&o, table, versions[1].count * 8, reason, sizeof(reason)), -EBADMSG);
	cr_assert(strstr(reason, "code_object.co_tlbc (232)") &&
			  strstr(reason, "code_object.co_code_adaptive (232)"),
		  "%s", reason);
}

/* The public report: five offsets of the table set to 0x8000. */
Test(offsets, large_offsets_are_refused_with_the_field_and_the_size)
{
	uint64_t table[MAX_BYTES / 8];
	struct py_offsets o;
	char reason[256];

	build(table, &versions[1], false);
	table[256 / 8] = 0x8000;
	cr_assert_eq(decode(&o, table, versions[1].count * 8, reason, sizeof(reason)), -EBADMSG);
	cr_assert_str_eq(reason, "_Py_DebugOffsets: interpreter_frame.previous (32768) lies outside its "
				 "struct (88 bytes)");
}

Test(offsets, two_fields_on_the_same_bytes_are_refused)
{
	uint64_t table[MAX_BYTES / 8];
	struct py_offsets o;
	char reason[256];

	build(table, &versions[1], false);
	table[192 / 8] = 16; /* thread_state.next on top of interp */
	cr_assert_eq(decode(&o, table, versions[1].count * 8, reason, sizeof(reason)), -EBADMSG);
	cr_assert(strstr(reason, "thread_state.next (16)") && strstr(reason, "thread_state.interp (16)"),
		  "%s", reason);
}

Test(offsets, short_tables_are_refused)
{
	for (size_t v = 0; v < ARRAY_SIZE(versions); v++) {
		uint64_t table[MAX_BYTES / 8];
		struct py_offsets o;
		char reason[256];

		build(table, &versions[v], false);
		for (size_t len = 0; len < versions[v].count * 8; len++) {
			int err = decode(&o, table, len, reason, sizeof(reason));

			cr_assert_eq(err, len < 16 ? -EINVAL : -EBADMSG, "%s, %zu bytes: %d",
				     versions[v].name, len, err);
		}
	}
}

Test(offsets, no_cookie_is_no_table)
{
	uint64_t table[MAX_BYTES / 8] = {};
	struct py_offsets o;
	char reason[256];

	cr_assert_eq(decode(&o, table, sizeof(table), reason, sizeof(reason)), -EINVAL);
	build(table, &versions[0], false);
	table[0] ^= 1ull << 56;
	cr_assert_eq(decode(&o, table, sizeof(table), reason, sizeof(reason)), -EINVAL);
}

/* A reason that does not fit is cut, not overrun. */
Test(offsets, short_reason_buffers)
{
	uint64_t table[MAX_BYTES / 8];
	struct py_offsets o;

	build(table, &versions[1], false);
	table[256 / 8] = 0x8000;
	for (size_t size = 1; size < 120; size++) {
		char *reason = malloc(size);

		cr_assert_eq(decode(&o, table, versions[1].count * 8, reason, size), -EBADMSG);
		cr_assert_lt(strlen(reason), size);
		free(reason);
	}
}

static uint64_t random_u64(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Values near the right ones get further into the decoder than noise does. */
static uint64_t random_value(uint64_t *state, uint64_t right)
{
	switch (random_u64(state) % 5) {
	case 0:
		return random_u64(state);
	case 1:
		return random_u64(state) % 1024;
	case 2:
		return right + random_u64(state) % 65 - 32;
	case 3:
		return right ^ 1ull << random_u64(state) % 64;
	default:
		return random_u64(state) % 1024 * 8;
	}
}

Test(offsets, random_tables_never_leave_their_structs)
{
	uint64_t state = 0x2545f4914f6cdd1d;

	for (int round = 0; round < 100000; round++) {
		const struct version *version = &versions[round % 3];
		int changes = 1 + random_u64(&state) % 6;
		uint64_t table[MAX_BYTES / 8];
		struct py_offsets o;
		char reason[256];

		build(table, version, round % 7 == 0);
		for (int i = 0; i < changes; i++) {
			size_t index = 2 + random_u64(&state) % (version->count - 2);

			table[index] = random_value(&state, table[index]);
		}
		if (!py_offsets__decode(&o, (const uint8_t *)table, version->count * 8, reason,
					sizeof(reason)))
			assert_inside(&o);
		else
			cr_assert_str_not_empty(reason);
	}
}

/* ---- versions without a table ---- */

Test(offsets, of_versions_without_a_table)
{
	struct py_offsets o;
	char reason[256];

	for (uint32_t minor = 8; minor <= 12; minor++) {
		cr_assert_eq(py_offsets__of_version(&o, 0x030005f0 | minor << 16, reason, sizeof(reason)), 0);
		cr_expect_eq(o.version, 0x030005f0 | minor << 16);
		cr_expect_not(py_offsets__are_in_process(&o));
		cr_expect_eq(o.lasti_unit, minor < 10 ? 1 : minor == 10 ? 2 : 0);
		cr_expect_eq(o.code_qualname == PY_ABSENT, minor < 11);
		cr_expect_eq(o.code_version == PY_ABSENT, minor < 12);
		cr_expect_eq(o.thread_datastack_chunk == PY_ABSENT, minor < 11);
	}
	cr_expect_eq(py_offsets__of_version(&o, 0x030700f0, reason, sizeof(reason)), -ENOTSUP);
	cr_expect_str_eq(reason, "Python 3.7 is not supported (3.8 to 3.15 are)");
	cr_expect_eq(py_offsets__of_version(&o, 0x030d00f0, reason, sizeof(reason)), -ENOTSUP);
	cr_expect_eq(py_offsets__of_version(&o, 0x030c00c1, reason, sizeof(reason)), -ENOTSUP);
	cr_expect(strstr(reason, "3.12.0rc1 is a pre-release"), "%s", reason);
}

Test(offsets, frames_that_are_executed)
{
	struct py_offsets o;
	char reason[256];

	cr_assert_eq(py_offsets__of_version(&o, 0x030800f0, reason, sizeof(reason)), 0);
	cr_expect(py_frame_is_running(&o, 1) && !py_frame_is_running(&o, 0) && !py_frame_is_running(&o, 33));
	cr_assert_eq(py_offsets__of_version(&o, 0x030a00f0, reason, sizeof(reason)), 0);
	cr_expect(py_frame_is_running(&o, 0) && py_frame_is_running(&o, 2), "executing, unwinding");
	cr_expect(!py_frame_is_running(&o, 1) && !py_frame_is_running(&o, 0xff) &&
		  !py_frame_is_running(&o, 3));
}
