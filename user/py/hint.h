/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The process that was named is no Python: it is often a shell, a wrapper or a supervisor that started one.
 */
#pragma once

#include "base/buf.h"

#include <sys/types.h>

/*
 * Append a part of a sentence that names up to five descendants of pid that hold a Python runtime and how to
 * profile them: "; its child 124 (python3) is Python: use -p 124, or -p 123 -s for all that it starts".
 * Appends nothing if there is none.
 */
void py_hint__descendants(pid_t pid, struct buf *out);
