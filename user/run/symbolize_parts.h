/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For run/symbolize*.c only: symbolize.c (START HERE: records, samples, bounds), symbolize_stacks.c (frames
 * and paths), symbolize_roots.c (what stands above them), symbolize_tails.c (deep stacks), symbolize_share.c
 * (what a sample adds), symbolize_sink.c (samples one by one).
 */
#pragma once

#include "py/thread_names.h"
#include "run/containers.h"
#include "run/symbolize.h"

#define SYMBOLIZE_FRAMES_MAX (1u << 20) /* of the profile: distinct functions and lines */

/* --- symbolize.c --- */

/* Ids of frames that are no functions. UINT32_MAX: out of memory. */
uint32_t symbolize_frame_named(struct symbolizer *symbolizer, enum frame_kind kind, const char *text);
uint32_t symbolize_special(struct symbolizer *symbolizer, const char *text);

/* --- symbolize_stacks.c --- */

/* The first use of a process in a batch. */
void symbolize_begin(struct symbolizer *symbolizer, struct process *process);
/* The stacks that are to be resolved: first those that have come once more. NULL: no more. */
struct stack *symbolize_unresolved(const struct symbolizer *symbolizer, size_t number);
/* Resolves them. 0 or -ENOMEM. */
int symbolize_stacks(struct symbolizer *symbolizer);
/* Frame id of a code object at an instruction; `approximate`: where it was at some time before. */
uint32_t symbolize_frame_at(struct symbolizer *symbolizer, struct process *process, uint32_t code_index,
			    uint64_t instr, bool approximate);
/* ... of a raw frame; UINT32_MAX for one that is not to be shown. *code_index: PY_CODE_NONE if it has none.
 */
uint32_t symbolize_raw_frame(struct symbolizer *symbolizer, struct process *process,
			     const struct pbp_frame *raw, uint32_t *code_index);

/* --- symbolize_roots.c --- */

/* All that one of these texts has in it: none is cut. */
#define SYMBOLIZE_ROOT_TEXT                                                                                  \
	(sizeof(((struct process *)0)->raw_command) + CONTAINER_CALLED_BYTES + PY_THREAD_NAME_BYTES +        \
	 PIDNS_TEXT + 32)

/* What stands above stacks, where it is told apart. Valid UTF-8. */
void symbolize_process_text(const struct process *process, char text[SYMBOLIZE_ROOT_TEXT]);
void symbolize_container_text(const struct process *process, char text[SYMBOLIZE_ROOT_TEXT]);
void symbolize_thread_text(const struct symbolizer *symbolizer, const struct process *process,
			   const struct named_thread *thread, char text[SYMBOLIZE_ROOT_TEXT]);
/* What is another one when they are. */
uint64_t symbolize_process_key(const struct process *process);
uint64_t symbolize_thread_key(const struct process *process, const struct named_thread *thread);
/*
 * The node that stacks of this process and thread begin at; TRIE_FULL. `thread`: only where threads
 * are told apart.
 */
uint32_t symbolize_root(struct symbolizer *symbolizer, const struct process *process,
			const struct named_thread *thread);

/* --- symbolize_tails.c --- */

/* The node that the frames of a deep stack hang from; TRIE_FULL. */
uint32_t symbolize_tail(struct symbolizer *symbolizer, const struct stack *stack,
			const struct pbp_sample *sample, uint32_t root);

/* --- symbolize_share.c --- */

/* Is it of a thread that was not asked for, or does nothing that was? Then that is counted. */
bool symbolize_leave_out(struct symbolizer *symbolizer, struct process *process,
			 const struct pbp_sample *sample, const struct named_thread *thread,
			 const struct sample_share *share);
/* Is it left out of the profile? Then it is noted as that. `stack` may be NULL. */
bool symbolize_hide(struct symbolizer *symbolizer, struct process *process, struct stack *stack,
		    const struct pbp_sample *sample, const struct sample_share *share);
/* The node that it was added to. Of what is added later (run/gil.h) the times in `share` are 0 then. */
uint32_t symbolize_add_share(struct symbolizer *symbolizer, struct process *process, uint32_t node,
			     const struct pbp_sample *sample, struct sample_share *share);

/* --- symbolize_sink.c --- */

/* A sample that was added to a node; `before`: the counts before that. */
void symbolize_give(struct symbolizer *symbolizer, const struct process *process,
		    const struct named_thread *thread, const struct pbp_sample *sample,
		    const struct sample_share *share, uint32_t node, const struct symbolize_counts *before);
/* Extras were settled as that; of some there was no sample, so that they belong to no thread. */
void symbolize_give_settled(struct symbolizer *symbolizer, const uint64_t exact_ns[ESTIMATE_KINDS],
			    uint32_t rest);
void symbolize_forget_threads(struct symbolizer *symbolizer);
