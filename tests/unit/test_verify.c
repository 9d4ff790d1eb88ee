/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Offsets that are plausible and wrong: the frames of a (fake) thread are the judge. And what the kernel side
 * is told of right ones.
 */
#include "py/verify.h"

#include "fake_python.h"
#include "old_python.h"
#include "py/layout.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#define FRAMES 6

static struct fake_interp interp;
static struct fake_tstate tstates[2];
static struct fake_frame frames[FRAMES];
static struct fake_code code;
static struct fake_type code_type, str_type, bytes_type;
static struct fake_object name, table, none;
static struct py_target target;
static struct py_thread threads[2];

static void make_frame(size_t i, uint8_t owner)
{
	put_u64(&frames[i], 0, address_of(&code) | 1); /* tagged */
	put_u64(&frames[i], 8, i + 1 < FRAMES ? address_of(&frames[i + 1]) : 0);
	put_u64(&frames[i], 56, address_of(&code) + FAKE_CODE_BYTES + 4);
	frames[i].rest[74 - 16] = owner;
}

static void make_types(void)
{
	put_u64(&code_type, 24, address_of("code"));
	put_u64(&str_type, 24, address_of("str"));
	put_u64(&bytes_type, 24, address_of("bytes"));
	code = (struct fake_code){};
	name.type = address_of(&str_type);
	table.type = address_of(&bytes_type);
	none.type = address_of(&none);
	put_u64(&code, 8, address_of(&code_type));
	put_u64(&code, 16, ARRAY_SIZE(code.units));
	for (size_t at = 112; at <= 128; at += 8)
		put_u64(&code, at, address_of(&name));
	put_u64(&code, 136, address_of(&table));
}

/* A thread of this process with four Python frames over a C entry frame and one more Python frame. */
static void make_target(void)
{
	target = (struct py_target){.pid = getpid()};
	remote__init(&target.remote, target.pid);
	fake_offsets(&target.offsets);
	make_types();
	for (size_t i = 0; i < FRAMES; i++)
		make_frame(i, i == 4 ? 3 : i % 3);
	put_u64(&frames[4], 0, address_of(&none));
	fake_interp(&interp, 0, NULL, &tstates[0]);
	fake_tstate(&tstates[0], &interp, NULL, &tstates[1], 0);
	fake_tstate(&tstates[1], &interp, &tstates[0], NULL, pthread_self());
	put_u64(tstates[0].bytes, FAKE_CURRENT_FRAME, 0);
	put_u64(tstates[1].bytes, FAKE_CURRENT_FRAME, address_of(&frames[0]));
	for (size_t i = 0; i < 2; i++)
		threads[i] = (struct py_thread){.tstate = address_of(&tstates[i]),
						.interp = address_of(&interp),
						.thread_id = i ? pthread_self() : 0};
}

static enum py_attach_error verify(char *reason, size_t size)
{
	reason[0] = '\0';
	return py_verify__run(&target, threads, 2, reason, size);
}

static void expect_ok(void)
{
	char reason[256];

	cr_assert_eq(verify(reason, sizeof(reason)), PY_ATTACH_OK, "%s", reason);
}

static void expect_corrupt(const char *field)
{
	char reason[256];

	cr_assert_eq(verify(reason, sizeof(reason)), PY_ATTACH_CORRUPT, "%s: %s", field, reason);
	cr_assert(strstr(reason, field), "%s: %s", field, reason);
}

Test(verify, sound_frames)
{
	make_target();
	expect_ok();
	cr_assert_eq(target.code_type, address_of(&code_type));
}

Test(verify, one_torn_frame_among_sound_ones_is_forgiven)
{
	make_target();
	put_u64(&frames[0], 0, 0x10);
	expect_ok();
}

Test(verify, no_frames_at_all)
{
	make_target();
	put_u64(tstates[1].bytes, FAKE_CURRENT_FRAME, 0);
	expect_ok();
	cr_assert_eq(target.code_type, 0);
}

Test(verify, only_frames_of_c_code)
{
	make_target();
	put_u64(tstates[1].bytes, FAKE_CURRENT_FRAME, address_of(&frames[4]));
	put_u64(&frames[4], 8, 0);
	expect_ok();
}

Test(verify, no_frames_although_the_data_stack_has_some)
{
	make_target();
	put_u64(tstates[1].bytes, FAKE_CURRENT_FRAME, 0);
	put_u64(tstates[1].bytes, FAKE_CHUNK, 0x10000);
	put_u64(tstates[1].bytes, FAKE_CHUNK_TOP, 0x10020);
	expect_ok();
	put_u64(tstates[1].bytes, FAKE_CHUNK_TOP, 0x10100);
	expect_corrupt("thread_state.current_frame");
}

Test(verify, endless_chains_end)
{
	make_target();
	put_u64(&frames[FRAMES - 1], 8, address_of(&frames[0]));
	expect_ok();
	put_u64(&frames[0], 8, address_of(&frames[0]));
	expect_ok();
}

Test(verify, contradictions_are_named)
{
	make_target();
	threads[1].thread_id = address_of(&none);
	expect_corrupt("thread_state.thread_id");
	make_target();
	put_u64(tstates[1].bytes, FAKE_PREV, 0x1000);
	expect_corrupt("thread_state.prev");
	make_target();
	put_u64(tstates[1].bytes, FAKE_CURRENT_FRAME, 0x10);
	expect_corrupt("thread_state.current_frame");
	make_target();
	target.offsets.frame_previous = 24;
	put_u64(&frames[0], 24, 0x10);
	expect_corrupt("interpreter_frame.previous");
	make_target();
	target.offsets.frame_executable = 16;
	expect_corrupt("interpreter_frame.executable");
	make_target();
	target.offsets.frame_instr = 48;
	expect_corrupt("interpreter_frame.instr_ptr");
	make_target();
	for (size_t i = 0; i < FRAMES; i++)
		frames[i].rest[74 - 16] = 200;
	expect_corrupt("interpreter_frame.owner");
	make_target();
	target.offsets.code_filename = 104;
	expect_corrupt("code_object.filename");
	make_target();
	target.offsets.code_name = 136;
	expect_corrupt("code_object.name");
	make_target();
	put_u64(&code, 128, 0x10);
	expect_corrupt("code_object.qualname");
	make_target();
	target.offsets.code_linetable = 112;
	expect_corrupt("code_object.linetable");
	make_target();
	target.offsets.type_name = 32;
	expect_corrupt("interpreter_frame.executable");
	make_target();
	target.offsets.object_type = 0;
	expect_corrupt("interpreter_frame.executable");
}

Test(verify, a_process_that_is_gone)
{
	char reason[256];

	make_target();
	remote__init(&target.remote, 0x7ffffff0);
	cr_assert_eq(verify(reason, sizeof(reason)), PY_ATTACH_GONE, "%s", reason);
}

Test(verify, hostile_memory)
{
	uint64_t state = 0x123456789abcdef1;
	char reason[256];

	for (int round = 0; round < 5000; round++) {
		make_target();
		for (int i = 0; i < 5; i++) {
			static uint8_t *const memory[] = {(uint8_t *)frames, code.bytes, tstates[1].bytes,
							  name.rest - 16, code_type.bytes};
			static const size_t sizes[] = {sizeof(frames), sizeof(code), 256, 16, 64};
			size_t which;

			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			which = state % ARRAY_SIZE(memory);
			memory[which][(state >> 8) % sizes[which]] = state >> 56;
		}
		verify(reason, sizeof(reason));
	}
}

/* ---- 3.8 to 3.12 ---- */

static struct old_python old;

static void make_old(int version)
{
	old_python__make(&old, version);
	target = (struct py_target){.pid = getpid(), .offsets = old.offsets};
	remote__init(&target.remote, target.pid);
	threads[0] = (struct py_thread){.tstate = address_of(old.tstate),
					.interp = address_of(old.interp),
					.thread_id = pthread_self()};
}

static enum py_attach_error verify_old(char *reason, size_t size)
{
	reason[0] = '\0';
	return py_verify__run(&target, threads, 1, reason, size);
}

static void expect_old_corrupt(const char *part)
{
	char reason[256], version[64];

	snprintf(version, sizeof(version), "not laid out as those of Python 3.%u.0 that are known",
		 py_version_minor(target.offsets.version));
	cr_assert_eq(verify_old(reason, sizeof(reason)), PY_ATTACH_CORRUPT, "%s: %s", part, reason);
	cr_assert(strstr(reason, part) && strstr(reason, version), "%s: %s", part, reason);
}

Test(verify, old_versions)
{
	char reason[256];

	for (uint32_t minor = 8; minor <= 12; minor++) {
		make_old(minor);
		cr_assert_eq(verify_old(reason, sizeof(reason)), PY_ATTACH_OK, "3.%u: %s", minor, reason);
		cr_assert_eq(target.code_type, address_of(&old.code_type), "3.%u", minor);
		/* A frame that has not started. */
		old_put(old.frames[0], old.offsets.frame_instr,
			old.offsets.lasti_unit ? UINT32_MAX
					       : address_of(&old.code) + old.offsets.code_adaptive - 2,
			old.offsets.lasti_unit ? 4 : 8);
		old_put(old.frames[1], old.offsets.frame_executable, 0x10, 8);
		old_put(old.frames[1], old.offsets.frame_previous, address_of(old.frames[0]), 8);
		cr_assert_eq(verify_old(reason, sizeof(reason)), PY_ATTACH_CORRUPT, "half of them are wrong");
		old_put(old.frames[0], old.offsets.frame_previous, 0, 8);
		cr_assert_eq(verify_old(reason, sizeof(reason)), PY_ATTACH_OK, "3.%u: %s", minor, reason);
	}
}

Test(verify, contradictions_of_old_versions)
{
	for (uint32_t minor = 8; minor <= 12; minor++) {
		make_old(minor);
		for (int i = 0; i < OLD_FRAMES; i++)
			old_put(old.frames[i], old.offsets.frame_instr,
				old.offsets.lasti_unit
					? OLD_CODE_SIZE
					: address_of(&old.code) + old.offsets.code_adaptive - 4,
				old.offsets.lasti_unit ? 4 : 8);
		expect_old_corrupt(old.offsets.lasti_unit ? "f_lasti" : "instr_ptr");
		make_old(minor);
		old_put(&old.code, old.offsets.code_linetable, address_of(&old.name), 8);
		expect_old_corrupt("linetable");
		make_old(minor);
		old_put(&old.code, old.offsets.code_name, address_of(&old.table), 8);
		expect_old_corrupt("name");
		make_old(minor);
		old_put(old.tstate, old.offsets.thread_current_frame, 0x10, 8);
		expect_old_corrupt("current_frame");
		make_old(minor);
		if (old.offsets.frame_state == PY_ABSENT)
			continue;
		for (int i = 0; i < OLD_FRAMES; i++)
			old_put(old.frames[i], old.offsets.frame_state, 40, 1);
		expect_old_corrupt("f_state");
	}
}

/* One version's process with another one's offsets. 3.8 and 3.9 differ in what comes before frames only. */
Test(verify, another_version)
{
	char reason[256];

	for (uint32_t minor = 8; minor <= 12; minor++) {
		for (uint32_t other = 8; other <= 12; other++) {
			if (other == minor || (other < 10 && minor < 10))
				continue;
			make_old(minor);
			py_offsets__of_version(&target.offsets, 0x030000f0 | other << 16, reason,
					       sizeof(reason));
			verify_old(reason, sizeof(reason));
			/* 3.9 and 3.10 may pass for each other: exports tell them apart. */
			cr_expect(!target.code_type || (minor < 11 && other < 11), "3.%u passes for 3.%u",
				  minor, other);
		}
	}
}

/* ---- free-threaded ---- */

Test(verify, free_threaded)
{
	char reason[256];

	for (int version = IMAGE_FREE_THREADED; version <= IMAGE_LAST_VERSION; version++) {
		make_old(version);
		cr_assert_eq(verify_old(reason, sizeof(reason)), PY_ATTACH_OK, "%d: %s", version, reason);
		cr_assert_eq(target.code_type, address_of(&old.code_type));
	}
}

/* Instructions that lie in no copy of the bytecode, or in one that is not listed (any more). */
Test(verify, free_threaded_copies)
{
	char reason[256];

	for (int version = IMAGE_FREE_THREADED + 1; version <= IMAGE_LAST_VERSION; version++) {
		make_old(version);
		old.copies[2] = old.copies[1];
		cr_assert_eq(verify_old(reason, sizeof(reason)), PY_ATTACH_CORRUPT, "%d", version);
		cr_expect(strstr(reason, "interpreter_frame.instr_ptr lies outside"), "%s", reason);
		make_old(version);
		old.copies[0] = 1;
		cr_expect_eq(verify_old(reason, sizeof(reason)), PY_ATTACH_CORRUPT, "%d", version);
		make_old(version);
		old.copies[0] = UINT64_MAX;
		cr_expect_eq(verify_old(reason, sizeof(reason)), PY_ATTACH_CORRUPT, "%d", version);
		make_old(version);
		old_put(&old.code, old.offsets.code_co_tlbc, 8, 8);
		cr_expect_eq(verify_old(reason, sizeof(reason)), PY_ATTACH_CORRUPT, "%d", version);
		old_put(&old.code, old.offsets.code_co_tlbc, 0, 8);
		cr_expect_eq(verify_old(reason, sizeof(reason)), PY_ATTACH_CORRUPT, "%d", version);
	}
}

/* ---- layout ---- */

Test(layout, of_3_14)
{
	struct pbp_target layout = {};
	struct py_offsets offsets;

	fake_offsets(&offsets);
	cr_assert_eq(py_layout__fill(&layout, &offsets, PBP_NONE), 0);
	cr_assert_eq(layout.ts_bytes, 280);
	cr_assert_eq(layout.ts_next, 8);
	cr_assert_eq(layout.ts_interp, 16);
	cr_assert_eq(layout.ts_thread_id, 152);
	cr_assert_eq(layout.ts_frame, 72);
	cr_assert_eq(layout.ts_attached, 44);
	cr_assert_eq(layout.ts_suspended, 0);
	cr_assert_eq(layout.ts_attached_mask, UINT32_MAX);
	cr_assert_eq(layout.ts_attached_want, 1);
	cr_assert_eq(layout.ts_exception, 112);
	cr_assert_eq(layout.ts_executor, 272);
	cr_assert_eq(layout.ts_base_frame, PBP_NONE);
	cr_assert_eq(layout.cframe_frame, PBP_NONE);
	cr_assert_eq(layout.fr_bytes, 80);
	cr_assert_eq(layout.fr_previous, 8);
	cr_assert_eq(layout.fr_code, 0);
	cr_assert_eq(layout.fr_instr, 56);
	cr_assert_eq(layout.fr_owner, 74);
	cr_assert_eq(layout.fr_tag_mask, 3);
	cr_assert_eq(layout.fr_first_other_owner, 3);
	cr_assert_eq(layout.fr_instr_is_index, 0);
	cr_assert_eq(layout.co_ident, 92);
	cr_assert_eq(layout.co_ident_bytes, 4);
	cr_assert_eq(layout.in_next, 7272);
	cr_assert_eq(layout.in_threads_head, 7344);
	cr_assert_eq(layout.in_gc_collecting, 7600);
	cr_assert_eq(layout.in_generation, 7992);
}

static void decode_words(struct py_offsets *out, const struct table_word *words, size_t count)
{
	uint64_t memory[111];
	char reason[256];

	for (size_t i = 0; i < count; i++)
		memory[i] = words[i].value;
	cr_assert_eq(py_offsets__decode(out, (uint8_t *)memory, count * 8, reason, sizeof(reason)), 0, "%s",
		     reason);
}

/* A frame on the data stack may end where its memory does: no byte behind the header is read. */
Test(layout, of_3_13_and_3_15)
{
	struct pbp_target layout = {};
	struct py_offsets offsets;

	decode_words(&offsets, table_3_13, ARRAY_SIZE(table_3_13));
	cr_assert_eq(py_layout__fill(&layout, &offsets, PBP_NONE), 0);
	cr_assert_eq(layout.fr_bytes, 72);
	cr_assert_eq(layout.fr_tag_mask, 0);
	cr_assert_eq(layout.ts_attached, 40);
	cr_assert_eq(layout.ts_executor, PBP_NONE);
	cr_assert_eq(layout.in_generation, 0);
	decode_words(&offsets, table_3_15, ARRAY_SIZE(table_3_15));
	cr_assert_eq(py_layout__fill(&layout, &offsets, 888), 0);
	cr_assert_eq(layout.ts_bytes, 312);
	cr_assert_eq(layout.ts_executor, 304);
	cr_assert_eq(layout.ts_base_frame, 888);
	cr_assert_eq(layout.ts_exception, 136);
}

Test(layout, of_old_versions)
{
	static const struct {
		uint16_t frame, previous, code, instr, attached, ident, ident_bytes;
	} expected[] = {
		{24, 24, 32, 104, PBP_NONE, 40, 88}, {24, 24, 32, 104, PBP_NONE, 40, 88},
		{24, 24, 32, 96, PBP_NONE, 40, 88},  {56, 48, 32, 56, PBP_NONE, 72, 72},
		{56, 8, 0, 56, 24, 92, 4},
	};

	for (uint32_t minor = 8; minor <= 12; minor++) {
		uint32_t i = minor - 8;
		struct pbp_target layout = {};

		make_old(minor);
		cr_assert_eq(py_layout__fill(&layout, &old.offsets, PBP_NONE), 0);
		py_layout__locate(&layout, &old.offsets, 0x1000);
		cr_expect_eq(layout.ts_frame, expected[i].frame);
		cr_expect_eq(layout.fr_previous, expected[i].previous);
		cr_expect_eq(layout.fr_code, expected[i].code);
		cr_expect_eq(layout.fr_instr, expected[i].instr);
		cr_expect_eq(layout.fr_instr_is_index, minor <= 10);
		cr_expect_eq(layout.fr_all_from_c, minor <= 10);
		cr_expect_eq(layout.fr_from_c, minor == 11 ? 68 : PBP_NONE);
		cr_expect_eq(layout.fr_first_other_owner, minor == 12 ? 3 : 0);
		cr_expect_eq(layout.cframe_frame, minor == 11 ? 8 : minor == 12 ? 0 : PBP_NONE);
		cr_expect_eq(layout.ts_attached, expected[i].attached);
		cr_expect_eq(layout.gil_tstate != 0, minor <= 11);
		cr_expect_eq(layout.gc_collecting, minor == 8 ? 0x1000 + 544 : 0);
		cr_expect_eq(layout.in_gc_collecting != 0, minor > 8);
		cr_expect_eq(layout.co_ident, expected[i].ident);
		cr_expect_eq(layout.co_ident_bytes, expected[i].ident_bytes);
		cr_expect_eq(layout.st_length, minor <= 11 ? 16 : PBP_NONE);
		cr_expect_eq(layout.co_name, minor <= 10 ? 112 : 128);
		cr_expect_leq(layout.fr_bytes, 120);
	}
	cr_expect_eq(old.offsets.version, 0x030c00f0);
}

Test(layout, of_free_threaded_versions)
{
	static const struct {
		uint16_t owner, bytes, attached, exception;
		uint32_t generation;
		uint8_t tags;
	} expected[] = {{70, 72, 40, 112, 0, 0}, {78, 80, 44, 112, 8024, 3}, {78, 80, 48, 136, 7952, 3}};

	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		struct pbp_target layout = {};
		struct py_offsets offsets;

		image_offsets(&offsets, IMAGE_FREE_THREADED + i);
		cr_assert_eq(py_layout__fill(&layout, &offsets, i == 2 ? 888 : PBP_NONE), 0);
		cr_expect_eq(layout.fr_owner, expected[i].owner);
		cr_expect_eq(layout.fr_bytes, expected[i].bytes);
		cr_expect_eq(layout.fr_tag_mask, expected[i].tags);
		cr_expect_eq(layout.ts_attached, expected[i].attached);
		cr_expect_eq(layout.ts_attached_want, 1);
		cr_expect_eq(layout.ts_suspended, 2);
		cr_expect_eq(layout.ts_exception, expected[i].exception);
		cr_expect_eq(layout.co_ident, 108);
		cr_expect_eq(layout.co_ident_bytes, 4);
		cr_expect_eq(layout.co_name, 144);
		cr_expect_eq(layout.co_filename, 128);
		cr_expect_eq(layout.co_linetable, 152);
		cr_expect_eq(layout.co_type, 24);
		cr_expect_eq(layout.in_generation, expected[i].generation);
		cr_expect_eq(layout.gil_tstate, 0);
	}
}

Test(layout, what_the_kernel_side_cannot_hold_is_refused)
{
	struct pbp_target layout = {};
	struct py_offsets offsets;

	fake_offsets(&offsets);
	offsets.thread_thread_id = 504;
	cr_assert_eq(py_layout__fill(&layout, &offsets, PBP_NONE), -EOVERFLOW);
	fake_offsets(&offsets);
	offsets.frame_owner = 120;
	offsets.frame_localsplus = 136;
	cr_assert_eq(py_layout__fill(&layout, &offsets, PBP_NONE), -EOVERFLOW);
	fake_offsets(&offsets);
	offsets.frame_localsplus = 72;
	cr_assert_eq(py_layout__fill(&layout, &offsets, PBP_NONE), -EOVERFLOW);
	fake_offsets(&offsets);
	offsets.interp_next = 65536;
	cr_assert_eq(py_layout__fill(&layout, &offsets, PBP_NONE), -EOVERFLOW);
}
