/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decodes _Py_DebugOffsets, the first member of _PyRuntime: a cookie and then nothing but u64. Which u64
 * means what is fixed inside one minor version once it is final and moves between minors, so there is one
 * column per minor. Sources: Include/internal/pycore_debug_offsets.h at tags v3.13.0, v3.14.0, v3.15.0, laid
 * out by compiling offsetof() against each, and compared with the tables of running processes: 3.13.0,
 * 3.13.18, 3.14.10, 3.15.2 and 3.15.2 debug; of free-threaded builds, 3.13.15. Invariant: every value that
 * leaves here lies inside its struct, is aligned, and shares no byte with another field; whether it is true
 * is for verify.c to find out on the live process.
 */
#include "py/offsets_debug.h"

#include "base/util.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define MINORS		 (PY_DEBUG_LAST_MINOR - PY_DEBUG_FIRST_MINOR + 1)
#define FREE_THREADED_AT 16 /* u64, in all versions */

/*
 * PyObject with the GIL, and what it is longer in a free-threaded build (Include/object.h): the owner's
 * thread, a mutex, two reference counts.
 */
#define OBJECT_BYTES	     16
#define FREE_THREADED_HEADER 16

#define ABSENT 0xffff

/*
 * Structs whose size the table holds (where it does not, any that is believable will do); X(identifier,
 * CPython's name, smallest and largest believable size, position per minor).
 */
#define STRUCTS(X)                                                                                           \
	X(RUNTIME, "runtime_state", 1024, 16 << 20, 24, 24, 24)                                              \
	X(INTERPRETER, "interpreter_state", 1024, 16 << 20, 48, 48, 48)                                      \
	X(THREAD, "thread_state", 128, 1 << 20, 152, 176, 176)                                               \
	X(FRAME, "interpreter_frame", 64, 256, 224, 248, 312)                                                \
	X(CODE, "code_object", 128, 1024, 272, 312, 376)                                                     \
	X(OBJECT, "pyobject", 16, 64, 352, 400, 464)                                                         \
	X(TYPE, "type_object", 128, 2048, 368, 416, 480)                                                     \
	X(BYTES, "bytes_object", 32, 128, 512, 592, 688)                                                     \
	X(UNICODE, "unicode_object", 48, 256, 536, 616, 712)                                                 \
	X(GC, "gc", 64, 4096, 568, 648, 752)                                                                 \
	X(HEAP_TYPE, "heap_type_object", 512, 4096, ABSENT, ABSENT, 528)                                     \
	X(TUPLE, "tuple_object", 24, 128, 400, 448, 544)                                                 \
	X(LIST, "list_object", 32, 128, 424, 472, 568)                                                       \
	X(SET, "set_object", 64, 1024, ABSENT, 496, 592)                                                     \
	X(DICT, "dict_object", 40, 256, 448, 528, 624)                                                       \
	X(FLOAT, "float_object", 24, 128, 472, 552, 648)                                                     \
	X(LONG, "long_object", 24, 128, 488, 568, 664)

enum py_struct {
#define STRUCT_ENUM(name, text, min, max, ...) STRUCT_##name,
	STRUCTS(STRUCT_ENUM)
#undef STRUCT_ENUM
		STRUCT_COUNT
};

static const struct {
	const char *name;
	uint32_t min, max;
	uint16_t at[MINORS];
} structs[STRUCT_COUNT] = {
#define STRUCT_ROW(name, text, min, max, ...) [STRUCT_##name] = {text, min, max, {__VA_ARGS__}},
	STRUCTS(STRUCT_ROW)
#undef STRUCT_ROW
};

/* Where a field's offset comes from: a u64 of the table ... */
#define AT(v313, v314, v315) .at = {v313, v314, v315}
/*
 * ... or a constant of the minor, for fields that the table lacks; in_object: free-threaded builds have it 16
 * bytes later.
 */
#define CONSTANT(v313, v314, v315) .is_constant = true, .at = {v313, v314, v315}
#define IN_OBJECT		   .in_object = true
/* Only free-threaded builds have it, of 3.14 and later if it is in the table, which holds 0 elsewhere. */
#define FREE_THREADED .only_free_threaded = true

struct field {
	const char *name;
	uint16_t member;  /* offset in struct py_offsets of the u32 to fill */
	uint8_t within;	  /* enum py_struct */
	uint8_t width;	  /* bytes of the field itself */
	bool is_constant; /* `at` holds values, not positions */
	bool in_object, only_free_threaded;
	uint16_t at[MINORS];
};

#define FIELD(member_name, struct_name, text, bytes, ...)                                                    \
	{                                                                                                    \
		.name = text, .member = offsetof(struct py_offsets, member_name),                            \
		.within = STRUCT_##struct_name, .width = bytes, __VA_ARGS__                                  \
	}

/* clang-format off */
static const struct field fields[] = {
	FIELD(runtime_finalizing, RUNTIME, "runtime_state.finalizing", 8, AT(32, 32, 32)),
	FIELD(runtime_interpreters_head, RUNTIME, "runtime_state.interpreters_head", 8, AT(40, 40, 40)),
	FIELD(runtime_main_thread, RUNTIME, "runtime_state.main_thread", 8, CONSTANT(656, 832, 960)),
	FIELD(runtime_auto_tss_key, RUNTIME, "runtime_state.autoTSSkey", 8, CONSTANT(2160, 2336, ABSENT)),

	FIELD(interp_id, INTERPRETER, "interpreter_state.id", 8, AT(56, 56, 56)),
	FIELD(interp_next, INTERPRETER, "interpreter_state.next", 8, AT(64, 64, 64)),
	FIELD(interp_threads_head, INTERPRETER, "interpreter_state.threads_head", 8, AT(72, 72, 72)),
	FIELD(interp_ceval_gil, INTERPRETER, "interpreter_state.ceval_gil", 8, AT(112, 120, 120)),
	FIELD(interp_generation, INTERPRETER, "interpreter_state.code_object_generation", 8, AT(ABSENT, 160, 160)),

	FIELD(thread_prev, THREAD, "thread_state.prev", 8, AT(160, 184, 184)),
	FIELD(thread_next, THREAD, "thread_state.next", 8, AT(168, 192, 192)),
	FIELD(thread_interp, THREAD, "thread_state.interp", 8, AT(176, 200, 200)),
	FIELD(thread_current_frame, THREAD, "thread_state.current_frame", 8, AT(184, 208, 208)),
	FIELD(thread_base_frame, THREAD, "thread_state.base_frame", 8, AT(ABSENT, ABSENT, 216)),
	FIELD(thread_last_profiled, THREAD, "thread_state.last_profiled_frame", 8, AT(ABSENT, ABSENT, 224)),
	FIELD(thread_last_profiled_seq, THREAD, "thread_state.last_profiled_frame_seq", 8, AT(ABSENT, ABSENT, 232)),
	FIELD(thread_thread_id, THREAD, "thread_state.thread_id", 8, AT(192, 216, 240)),
	FIELD(thread_native_thread_id, THREAD, "thread_state.native_thread_id", 8, AT(200, 224, 248)),
	FIELD(thread_datastack_chunk, THREAD, "thread_state.datastack_chunk", 8, AT(208, 232, 256)),
	FIELD(thread_status, THREAD, "thread_state.status", 4, AT(216, 240, 264)),
	FIELD(thread_holds_gil, THREAD, "thread_state.holds_gil", 4, AT(ABSENT, ABSENT, 272)),
	FIELD(thread_gil_requested, THREAD, "thread_state.gil_requested", 4, AT(ABSENT, ABSENT, 280)),
	FIELD(thread_current_exception, THREAD, "thread_state.current_exception", 8, AT(ABSENT, ABSENT, 288)),
	FIELD(thread_holds_gil, THREAD, "thread_state.holds_gil", 4, CONSTANT(ABSENT, 36, ABSENT)),
	FIELD(thread_current_exception, THREAD, "thread_state.current_exception", 8, CONSTANT(112, 112, ABSENT)),
	FIELD(thread_executor, THREAD, "thread_state.current_executor", 8, CONSTANT(ABSENT, 272, 304)),
	FIELD(thread_state, THREAD, "thread_state.state", 4, CONSTANT(40, 44, 48)),
	FIELD(thread_datastack_top, THREAD, "thread_state.datastack_top", 8, CONSTANT(240, 240, 264)),
	FIELD(thread_exc_state, THREAD, "thread_state.exc_state", 8, AT(ABSENT, ABSENT, 296)),
	FIELD(thread_exc_state, THREAD, "thread_state.exc_state", 8, CONSTANT(256, 256, ABSENT)),

	FIELD(frame_previous, FRAME, "interpreter_frame.previous", 8, AT(232, 256, 320)),
	FIELD(frame_executable, FRAME, "interpreter_frame.executable", 8, AT(240, 264, 328)),
	FIELD(frame_instr, FRAME, "interpreter_frame.instr_ptr", 8, AT(248, 272, 336)),
	FIELD(frame_localsplus, FRAME, "interpreter_frame.localsplus", 8, AT(256, 280, 344)),
	FIELD(frame_owner, FRAME, "interpreter_frame.owner", 1, AT(264, 288, 352)),
	FIELD(frame_stacktop, FRAME, "interpreter_frame.stacktop", 4, CONSTANT(64, ABSENT, ABSENT)),

	FIELD(code_filename, CODE, "code_object.filename", 8, AT(280, 320, 384)),
	FIELD(code_name, CODE, "code_object.name", 8, AT(288, 328, 392)),
	FIELD(code_qualname, CODE, "code_object.qualname", 8, AT(296, 336, 400)),
	FIELD(code_linetable, CODE, "code_object.linetable", 8, AT(304, 344, 408)),
	FIELD(code_firstlineno, CODE, "code_object.firstlineno", 4, AT(312, 352, 416)),
	FIELD(code_adaptive, CODE, "code_object.co_code_adaptive", 2, AT(344, 384, 448)),
	FIELD(code_version, CODE, "code_object.co_version", 4, CONSTANT(92, 92, 92), IN_OBJECT),
	FIELD(code_firsttraceable, CODE, "code_object._co_firsttraceable", 4, CONSTANT(184, 192, 192), IN_OBJECT),

	FIELD(object_type, OBJECT, "pyobject.ob_type", 8, AT(360, 408, 472)),
	FIELD(type_name, TYPE, "type_object.tp_name", 8, AT(376, 424, 488)),

	FIELD(bytes_size, BYTES, "bytes_object.ob_size", 8, AT(520, 600, 696)),
	FIELD(bytes_data, BYTES, "bytes_object.ob_sval", 1, AT(528, 608, 704)),

	FIELD(unicode_state, UNICODE, "unicode_object.state", 4, AT(544, 624, 720)),
	FIELD(unicode_length, UNICODE, "unicode_object.length", 8, AT(552, 632, 728)),
	FIELD(unicode_ascii_size, UNICODE, "unicode_object.asciiobject_size", 8, AT(560, 640, 736)),
	FIELD(unicode_compact_size, UNICODE, "unicode_object.compactunicodeobject_size", 8, AT(ABSENT, ABSENT, 744)),

	/* PY_VALUE_OFFSETS */
	FIELD(interp_imports_modules, INTERPRETER, "interpreter_state.imports_modules", 8, AT(88, 96, 96)),
	FIELD(thread_exc_info, THREAD, "thread_state.exc_info", 8, CONSTANT(120, 120, 144)),
	FIELD(code_argcount, CODE, "code_object.argcount", 4, AT(320, 360, 424)),
	FIELD(code_localsplusnames, CODE, "code_object.localsplusnames", 8, AT(328, 368, 432)),
	FIELD(code_localspluskinds, CODE, "code_object.localspluskinds", 8, AT(336, 376, 440)),
	FIELD(type_flags, TYPE, "type_object.tp_flags", 8, AT(392, 440, 504)),
	FIELD(type_basicsize, TYPE, "type_object.tp_basicsize", 8, AT(ABSENT, ABSENT, 512)),
	FIELD(type_basicsize, TYPE, "type_object.tp_basicsize", 8, CONSTANT(32, 32, ABSENT), IN_OBJECT),
	FIELD(type_dict, TYPE, "type_object.tp_dict", 8, CONSTANT(264, 264, 264), IN_OBJECT),
	FIELD(heap_type_cached_keys, HEAP_TYPE, "heap_type_object.ht_cached_keys", 8, AT(ABSENT, ABSENT, 536)),
	FIELD(heap_type_cached_keys, HEAP_TYPE, "heap_type_object.ht_cached_keys", 8, CONSTANT(880, 880, ABSENT), IN_OBJECT),
	FIELD(tuple_size, TUPLE, "tuple_object.ob_size", 8, AT(416, 464, 560)),
	FIELD(tuple_items, TUPLE, "tuple_object.ob_item", 8, AT(408, 456, 552)),
	FIELD(list_size, LIST, "list_object.ob_size", 8, AT(440, 488, 584)),
	FIELD(list_items, LIST, "list_object.ob_item", 8, AT(432, 480, 576)),
	FIELD(set_used, SET, "set_object.used", 8, AT(ABSENT, 504, 600)),
	FIELD(set_mask, SET, "set_object.mask", 8, AT(ABSENT, 520, 616)),
	FIELD(set_table, SET, "set_object.table", 8, AT(ABSENT, 512, 608)),
	FIELD(set_used, SET, "set_object.used", 8, CONSTANT(24, ABSENT, ABSENT), IN_OBJECT),
	FIELD(set_mask, SET, "set_object.mask", 8, CONSTANT(32, ABSENT, ABSENT), IN_OBJECT),
	FIELD(set_table, SET, "set_object.table", 8, CONSTANT(40, ABSENT, ABSENT), IN_OBJECT),
	FIELD(dict_keys, DICT, "dict_object.ma_keys", 8, AT(456, 536, 632)),
	FIELD(dict_values, DICT, "dict_object.ma_values", 8, AT(464, 544, 640)),
	FIELD(float_value, FLOAT, "float_object.ob_fval", 8, AT(480, 560, 656)),
	FIELD(long_tag, LONG, "long_object.lv_tag", 8, AT(496, 576, 672)),
	FIELD(long_digits, LONG, "long_object.ob_digit", 4, AT(504, 584, 680)),

	FIELD(interp_tlbc_generation, INTERPRETER, "interpreter_state.tlbc_generation", 4, AT(ABSENT, 168, 168), FREE_THREADED),
	FIELD(interp_requester, INTERPRETER, "interpreter_state.stoptheworld.requester", 8, CONSTANT(10760, ABSENT, ABSENT), FREE_THREADED),
	FIELD(frame_tlbc_index, FRAME, "interpreter_frame.tlbc_index", 4, AT(ABSENT, 304, 368), FREE_THREADED),
	FIELD(code_co_tlbc, CODE, "code_object.co_tlbc", 8, AT(ABSENT, 392, 456), FREE_THREADED),
};
/* clang-format on */

/* interpreter_state.gc is the offset of a struct, and gc.collecting one into that. */
static const uint16_t gc_at[MINORS] = {80, 88, 88};
static const uint16_t gc_collecting_at[MINORS] = {576, 656, 760};
static const uint16_t gc_frame_at[MINORS] = {ABSENT, ABSENT, 768};

static const uint16_t table_bytes[MINORS] = {584, 760, 888};

struct decoder {
	struct py_offsets *out;
	const uint8_t *table;
	uint32_t column; /* minor - PY_DEBUG_FIRST_MINOR */
	uint32_t sizes[STRUCT_COUNT];
	char *reason;
	size_t reason_size;
};

static int __attribute__((format(printf, 2, 3))) refuse(struct decoder *decoder, const char *fmt, ...)
{
	char text[160];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	snprintf(decoder->reason, decoder->reason_size, "_Py_DebugOffsets: %s", text);
	return -EBADMSG;
}

static uint64_t value_at(const struct decoder *decoder, uint32_t position)
{
	return load_u64(decoder->table + position);
}

static int decode_sizes(struct decoder *decoder)
{
	for (size_t i = 0; i < STRUCT_COUNT; i++) {
		uint32_t position = structs[i].at[decoder->column];
		uint64_t size = position == ABSENT ? structs[i].max : value_at(decoder, position);

		if (size < structs[i].min || size > structs[i].max || size % 8)
			return refuse(decoder, "%s cannot be %llu bytes long", structs[i].name,
				      (unsigned long long)size);
		decoder->sizes[i] = size;
	}
	return 0;
}

/* Numbers of 8 and 4 bytes are aligned in memory. */
static int check_place(struct decoder *decoder, const char *name, uint64_t offset, uint32_t width,
		       uint32_t struct_size)
{
	if (offset > struct_size || struct_size - offset < width)
		return refuse(decoder, "%s (%llu) lies outside its struct (%u bytes)", name,
			      (unsigned long long)offset, struct_size);
	if (offset % width)
		return refuse(decoder, "%s (%llu) is not aligned to its %u bytes", name,
			      (unsigned long long)offset, width);
	return 0;
}

static uint32_t *member_of(struct decoder *decoder, const struct field *field)
{
	return (uint32_t *)((char *)decoder->out + field->member);
}

static int decode_field(struct decoder *decoder, const struct field *field)
{
	uint32_t source = field->at[decoder->column];
	uint64_t offset;
	int err;

	if (source == ABSENT || (field->only_free_threaded && !decoder->out->free_threaded))
		return 0;
	offset = field->is_constant ? source : value_at(decoder, source);
	if (field->in_object && decoder->out->free_threaded)
		offset += FREE_THREADED_HEADER;
	err = check_place(decoder, field->name, offset, field->width, decoder->sizes[field->within]);
	if (!err)
		*member_of(decoder, field) = offset;
	return err;
}

static int decode_fields(struct decoder *decoder)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		int err = decode_field(decoder, &fields[i]);

		if (err)
			return err;
	}
	return 0;
}

/* Two fields of one struct on the same bytes: one of them is wrong. */
static int check_overlap(struct decoder *decoder, const struct field *a, const struct field *b)
{
	uint32_t first = *member_of(decoder, a), second = *member_of(decoder, b);

	if (a->member == b->member || a->within != b->within || first == PY_ABSENT || second == PY_ABSENT ||
	    first + a->width <= second || second + b->width <= first)
		return 0;
	return refuse(decoder, "%s (%u) and %s (%u) overlap", a->name, first, b->name, second);
}

static int check_overlaps(struct decoder *decoder)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		for (size_t j = 0; j < i; j++) {
			int err = check_overlap(decoder, &fields[j], &fields[i]);

			if (err)
				return err;
		}
	}
	return 0;
}

/* The frame that started the collection, in the same struct. */
static int decode_gc_frame(struct decoder *decoder, uint64_t gc)
{
	uint32_t position = gc_frame_at[decoder->column];
	uint64_t offset;
	int err;

	if (position == ABSENT)
		return 0;
	offset = value_at(decoder, position);
	err = check_place(decoder, "gc.frame", offset, 8, decoder->sizes[STRUCT_GC]);
	if (!err)
		decoder->out->interp_gc_frame = gc + offset;
	return err;
}

static int decode_gc(struct decoder *decoder)
{
	uint64_t gc = value_at(decoder, gc_at[decoder->column]);
	uint64_t collecting = value_at(decoder, gc_collecting_at[decoder->column]);
	int err;

	err = check_place(decoder, "gc.collecting", collecting, 4, decoder->sizes[STRUCT_GC]);
	if (err)
		return err;
	if (gc > decoder->sizes[STRUCT_INTERPRETER] ||
	    decoder->sizes[STRUCT_INTERPRETER] - gc < decoder->sizes[STRUCT_GC] || gc % 8)
		return refuse(decoder, "interpreter_state.gc (%llu) lies outside its struct (%u bytes)",
			      (unsigned long long)gc, decoder->sizes[STRUCT_INTERPRETER]);
	decoder->out->interp_gc_collecting = gc + collecting;
	return decode_gc_frame(decoder, gc);
}

/* Sizes that other fields must fit into, beyond the struct that holds both. */
static int check_headers(struct decoder *decoder)
{
	const struct py_offsets *out = decoder->out;
	uint32_t ascii = out->unicode_ascii_size;

	if (out->unicode_length + 8 > ascii || out->unicode_state + 4 > ascii ||
	    out->unicode_compact_size < ascii || out->unicode_compact_size > decoder->sizes[STRUCT_UNICODE])
		return refuse(decoder, "unicode_object.asciiobject_size (%u) contradicts its fields", ascii);
	if (out->frame_owner >= out->frame_localsplus || out->frame_instr >= out->frame_localsplus ||
	    out->frame_previous >= out->frame_localsplus ||
	    out->frame_executable >= out->frame_localsplus ||
	    (out->frame_tlbc_index != PY_ABSENT && out->frame_tlbc_index >= out->frame_localsplus))
		return refuse(decoder, "interpreter_frame.localsplus (%u) lies before other fields",
			      out->frame_localsplus);
	return 0;
}

/*
 * Does the flag tell the truth? The constants for fields that the table lacks hang on it; with Py_TRACE_REFS,
 * a debug option that puts two pointers before every object, they would not hold either.
 */
static int check_build(struct decoder *decoder)
{
	bool free_threaded = decoder->out->free_threaded;
	uint32_t size = decoder->sizes[STRUCT_OBJECT];

	if (size == OBJECT_BYTES + (free_threaded ? FREE_THREADED_HEADER : 0))
		return 0;
	return refuse(decoder, "pyobject.size (%u) is not that of a %s build", size,
		      free_threaded ? "free-threaded" : "GIL");
}

static void set_all_absent(struct py_offsets *out)
{
#define SET_ABSENT(name) out->name = PY_ABSENT;
	PY_OFFSETS(SET_ABSENT)
	PY_VALUE_OFFSETS(SET_ABSENT)
#undef SET_ABSENT
}

/* What is not an offset of the table but follows from the version or from other values. */
static void derive(struct decoder *decoder, uint32_t minor)
{
	struct py_offsets *out = decoder->out;

	out->tagged_frames = minor >= 14;			/* _PyStackRef f_executable */
	out->wide_interned = out->free_threaded && minor >= 14; /* unsigned char interned: 8 bits */
	out->first_other_owner = 3; /* 3.13 FRAME_OWNED_BY_CSTACK, 3.14+ FRAME_OWNED_BY_INTERPRETER */
	out->thread_size = decoder->sizes[STRUCT_THREAD];
	out->frame_size = decoder->sizes[STRUCT_FRAME];
	out->code_size = decoder->sizes[STRUCT_CODE];
	out->var_object_size = decoder->sizes[STRUCT_OBJECT]; /* ob_size follows PyObject */
	out->exception_value = 0; /* _PyErr_StackItem, Include/cpython/pystate.h */
	out->exception_previous = 8;
	/* PyCompactUnicodeObject adds utf8_length and utf8 (Include/cpython/unicodeobject.h). */
	if (out->unicode_compact_size == PY_ABSENT)
		out->unicode_compact_size = out->unicode_ascii_size + 16;
}

int py_debug_offsets__decode(struct py_offsets *out, uint32_t minor, const uint8_t *table, size_t len,
			     char *reason, size_t reason_size)
{
	struct decoder decoder = {out, table, minor - PY_DEBUG_FIRST_MINOR, {}, reason, reason_size};
	uint64_t free_threaded;
	int err;

	set_all_absent(out);
	if (len < table_bytes[decoder.column])
		return refuse(&decoder, "only %zu of %u bytes are there", len, table_bytes[decoder.column]);
	free_threaded = value_at(&decoder, FREE_THREADED_AT);
	if (free_threaded > 1)
		return refuse(&decoder, "free_threaded cannot be %llu", (unsigned long long)free_threaded);
	out->free_threaded = free_threaded;

	err = decode_sizes(&decoder) ?: check_build(&decoder) ?: decode_fields(&decoder);
	if (err)
		return err;
	derive(&decoder, minor);
	return decode_gc(&decoder) ?: check_headers(&decoder) ?: check_overlaps(&decoder);
}
