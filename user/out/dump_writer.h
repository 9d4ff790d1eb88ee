/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A dump as text for people and as JSON for programs.
 */
#pragma once

#include "agg/dump.h"
#include "base/buf.h"

#include <stdbool.h>

struct dump_style {
	unsigned int width; /* 0 = no limit; long paths lose their beginning, other lines their end */
	bool color;
};

/* Append the whole dump. 0 or -ENOMEM. */
int dump__write_text(const struct dump *dump, const struct dump_style *style, struct buf *buf);

/*
 * One object:
 *
 *   pid, inner_pid            of the process, here and in its own pid namespace (null: the same)
 *   command, python           ... python is a version such as "3.15.0"
 *   halted                    what keeps it from running: a stop signal, a debugger, a frozen cgroup; null
 *   consistent                every thread is
 *   readings                  of all stacks that it took
 *   interpreters[]            by id
 *     id
 *     collecting_garbage
 *     threads[]               the main thread first, then by id
 *       tid                   as the system numbers it here; null: cannot be told
 *       native_id, ident      as the target sees it: threading.get_native_id(), threading.get_ident()
 *       name, name_source     name_source is "python" (threading) or "kernel"
 *       main                  the process's first thread
 *       state                 "running", "waiting", "stopped", "frozen", "unknown"
 *       waits_in              system call; null: none or not known
 *       gil                   "holds", "waits", "none", "unknown"
 *       exception             "raising", "handling", "none", "unknown"
 *       collecting_garbage
 *       consistent            two readings in a row agree: the same frames with the same code in the same
 *                             places, and the same line but in the innermost one. Else it is what one
 *                             reading found, a stack as it was at one instant.
 *       stack                 "read", "empty" (no Python code), "changing", "unreadable"
 *       truncated             frames at the base are left out
 *       frames[]              innermost first
 *         function            qualified name
 *         file, line, first_line, source
 *                             null where not known; source is that line of the file without indentation
 *         line_approximate    in code made by the JIT: the line may be a former one
 *         from_c              called by C code, not by the next frame directly
 *         started_gc          the garbage collection that runs was started in it
 *         locals              with --locals, null where not known: arguments first
 *           name, value, argument
 *           changed           the two readings found different values
 *   native_threads[]          those without Python code: tid, native_id, name, state, waits_in
 *
 * 0 or -ENOMEM.
 */
int dump__write_json(const struct dump *dump, struct buf *buf);
