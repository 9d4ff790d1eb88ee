/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What every format says in the same words: names as people may read them, and the account of the run.
 */
#pragma once

#include "agg/profile.h"
#include "agg/view.h"
#include "base/buf.h"

/*
 * A text of the target or of ours: what could disturb a terminal or is no UTF-8 is escaped, reversibly
 * (buf__add_escaped). The result is valid UTF-8.
 */
void words__text(struct buf *buf, const struct strtab *strings, uint32_t id);
/* The name of a frame's function, never empty. */
void words__name(struct buf *buf, const struct strtab *strings, const struct frame *frame);

/* The same as a JSON string, quotes included. */
void words__json_text(struct buf *buf, const struct strtab *strings, uint32_t id);
void words__json_name(struct buf *buf, const struct strtab *strings, const struct frame *frame);

/*
 * One JSON object, so that it can stand in a text of another format: program, version, command (of the first
 * process), processes, engine, mode, end, start (RFC 3339), duration_s, cpu_s, rate_hz, period_ns, samples,
 * and counts of samples by the names of ACCOUNT_COUNTS; pruned and pruned_stacks if it is a view's. What is
 * not known is null. See README, "Files".
 */
void words__metadata(struct buf *buf, const struct profile *profile, const struct view *view);

/*
 * Of a page: ',"unit":{}' with the name of what readers count, the weight of one, and the nanoseconds that it
 * is.
 */
void words__unit(struct buf *buf, const struct profile *profile);
