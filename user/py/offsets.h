/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where CPython keeps things, as data: one struct for all versions. From 3.13 on it is read from the process
 * itself (_Py_DebugOffsets, offsets_debug.c); the few fields that table lacks are constants of the minor
 * version, and so is everything before 3.13 (offsets_table.c). Whatever the source, it is checked against a
 * live thread at attach.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PY_ABSENT UINT32_MAX /* this version has no such field */

/*
 * X(field). All are byte offsets into the struct that the first word names, except *_size. Names follow
 * CPython's _Py_DebugOffsets where it has them. thread_base_frame is where the pointer to the sentinel frame
 * is (3.15). runtime_current_tstate: the thread state that holds the GIL, runtime_gil: the GIL itself (to
 * 3.11), which later interp_ceval_gil points to. thread_current_frame
 * holds a pointer to a _PyCFrame, and that the frame, where there is cframe_current_frame (3.11, 3.12).
 * frame_instr: see lasti_unit. frame_entry: a byte that is set if C called (3.11). frame_state: a byte that
 * tells whether the frame is being executed (frame objects, to 3.10). code_linetable is co_lnotab to 3.9,
 * code_bytecode a bytes object (to 3.10). code_co_tlbc, frame_tlbc_index and interp_tlbc_generation: copies
 * of the bytecode for each thread (py/copies.h; free-threaded builds from 3.14 on). thread_executor: not NULL
 * while the thread runs code that the JIT made (3.14 and later). thread_exc_info points to the first of the
 * list of exceptions that are being handled: thread_exc_state, or one in a generator; exception_value and
 * exception_previous are what such an item is made of. interp_requester: the thread state that has stopped
 * all others, to collect garbage or the like (3.13t).
 */
/* clang-format off */
#define PY_OFFSETS(X)                                                                                        \
	X(runtime_interpreters_head) X(runtime_finalizing) X(runtime_auto_tss_key) X(runtime_main_thread)    \
	X(runtime_current_tstate) X(runtime_gc_collecting) X(runtime_gil)                                    \
	X(interp_id) X(interp_next) X(interp_threads_head) X(interp_gc_collecting) X(interp_generation)      \
	X(interp_ceval_gil) X(interp_tlbc_generation) X(interp_requester)                                    \
	X(thread_size) X(thread_prev) X(thread_next) X(thread_interp) X(thread_current_frame)                \
	X(thread_base_frame) X(thread_thread_id) X(thread_native_thread_id) X(thread_datastack_chunk)        \
	X(thread_datastack_top) X(thread_status) X(thread_state) X(thread_holds_gil) X(thread_gil_requested) \
	X(thread_current_exception) X(thread_executor) X(thread_last_profiled) X(thread_last_profiled_seq)   \
	X(thread_exc_state) X(exception_value) X(exception_previous) X(cframe_current_frame)                 \
	X(frame_size) X(frame_previous) X(frame_executable) X(frame_instr) X(frame_owner) X(frame_entry)     \
	X(frame_state) X(frame_localsplus) X(frame_tlbc_index) X(frame_stacktop)                             \
	X(code_size) X(code_filename) X(code_name) X(code_qualname) X(code_linetable) X(code_firstlineno)    \
	X(code_version) X(code_firsttraceable) X(code_adaptive) X(code_bytecode) X(code_co_tlbc)             \
	X(object_type) X(var_object_size) X(type_name)                                                       \
	X(unicode_length) X(unicode_hash) X(unicode_state) X(unicode_ascii_size) X(unicode_compact_size)     \
	X(bytes_size) X(bytes_data)
/* clang-format on */

/*
 * What only dumps, names of threads and the like want: objects other than code, and where a thread's
 * exceptions and an interpreter's modules are. None of these lies at offset 0, so 0 means the same as
 * PY_ABSENT: see py_offsets__has. Before 3.12, long_tag is the size of an int, negative if that is;
 * type_dictoffset: to 3.10.
 */
/* clang-format off */
#define PY_VALUE_OFFSETS(X)                                                                                  \
	X(interp_imports_modules) X(interp_gc_frame) X(thread_exc_info)                                      \
	X(code_argcount) X(code_localsplusnames) X(code_localspluskinds)                                     \
	X(type_flags) X(type_basicsize) X(type_dict) X(type_dictoffset) X(heap_type_cached_keys)             \
	X(tuple_size) X(tuple_items) X(list_size) X(list_items) X(set_used) X(set_mask) X(set_table)         \
	X(dict_keys) X(dict_values) X(float_value) X(long_tag) X(long_digits)
/* clang-format on */

struct py_offsets {
	uint32_t version; /* PY_VERSION_HEX of the target */
	bool free_threaded;
	bool tagged_frames; /* frame_executable is a tagged reference: clear the low two bits (3.14+) */
	bool wide_interned; /* string state with 8 bits of interned (3.14t+) */
	uint32_t first_other_owner; /* frame owners from this on are no Python frames; 0: all are */
	/*
	 * frame_instr is an index (int32, -1: not started) in units of so many bytes (to 3.10), or, if 0, a
	 * pointer into the bytecode. To 3.12 that is to the instruction before the next: one unit ahead of
	 * the bytecode in a frame that has not started.
	 */
	uint32_t lasti_unit;
	uint32_t running_states; /* bit n is set if frame_state n is that of a frame being executed */
#define PY_OFFSETS_FIELD(name) uint32_t name;
	PY_OFFSETS(PY_OFFSETS_FIELD)
	PY_VALUE_OFFSETS(PY_OFFSETS_FIELD)
#undef PY_OFFSETS_FIELD
};

/* Is there such a field in this version? For those of PY_VALUE_OFFSETS. */
static inline bool py_offsets__has(uint32_t offset)
{
	return offset && offset != PY_ABSENT;
}

static inline uint32_t py_version_major(uint32_t hex)
{
	return hex >> 24;
}
static inline uint32_t py_version_minor(uint32_t hex)
{
	return hex >> 16 & 0xff;
}
/* "3.14.2", "3.15.0b1"; buf of at least 24 bytes. Returns buf. */
const char *py_version_format(uint32_t hex, char *buf, size_t size);

/* For messages: "Python 3.16 is not supported (3.8 to 3.15 are)". */
#define PY_SUPPORTED_VERSIONS "3.8 to 3.15"

/* Bytes to read from the start of _PyRuntime to decode any known table. */
#define PY_DEBUG_OFFSETS_MAX 1024

/*
 * Decode _Py_DebugOffsets (3.13+): cookie, version, then each field checked against the size of its struct.
 * Pure; bytes are hostile. 0; on failure -EINVAL (not a table: no cookie, absurd version), -ENOTSUP (a minor
 * version or pre-release that is not known), -EBADMSG (a field contradicts its struct's size), and `reason`
 * says which, e.g. "Python 3.16 is not supported (3.8 to 3.15 are)",
 * "_Py_DebugOffsets: interpreter_frame.previous (32768) lies outside its struct (88 bytes)".
 */
int py_offsets__decode(struct py_offsets *out, const uint8_t *table, size_t len, char *reason,
		       size_t reason_size);

/*
 * The offsets of a version that has no such table in the process (3.8 to 3.12); `version` is its
 * PY_VERSION_HEX, 0xff for the micro version where only the minor is known. 0, or -ENOTSUP with the reason.
 */
#define PY_MICRO_UNKNOWN 0xff
int py_offsets__of_version(struct py_offsets *out, uint32_t version, char *reason, size_t reason_size);

/* Does the runtime begin with a table of its offsets? */
static inline bool py_offsets__are_in_process(const struct py_offsets *offsets)
{
	return py_version_minor(offsets->version) >= 13;
}

/* Is a frame object (to 3.10) with this state being executed? */
static inline bool py_frame_is_running(const struct py_offsets *offsets, uint8_t state)
{
	return state < 32 && offsets->running_states >> state & 1;
}
