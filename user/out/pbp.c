/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A profile as a recording (out/record.h). Of what was added up the times are not known any more: all samples
 * are from the start. A run that is recorded writes its samples as they come instead (out/recorder.h).
 */
#include "out/recorder.h"
#include "out/writer.h"

#include <errno.h>
#include <stdlib.h>

/* What stands above a node, by its last one (`roots`), as of a thread of its own. */
static void fill_thread(const struct profile *profile, uint32_t root, struct sink_process *process,
			struct sink_thread *thread)
{
	*process = (struct sink_process){.key = root, .command = "", .root = "", .container = ""};
	*thread = (struct sink_thread){.key = root, .process = process, .name = "", .root = ""};
	for (uint32_t id = root; id != TRIE_ROOT; id = profile->trie.nodes.items[id].parent) {
		const struct frame *frame =
			frame_table__get(&profile->frames, profile->trie.nodes.items[id].frame);
		const char *text = strtab__get(profile->strings, frame->function);

		if (frame->kind == FRAME_PROCESS)
			process->root = text;
		else if (frame->kind == FRAME_CONTAINER)
			process->container = text;
		else if (frame->kind == FRAME_THREAD)
			thread->root = text;
	}
}

/* As many samples as it stands for; a weight that is no number of them is one. */
static void give_samples(const struct profile *profile, struct sink *sink, struct sink_sample *sample)
{
	uint64_t weight = sample->weight_ns, period = profile->period_ns;
	bool whole = profile->unit == PROFILE_SAMPLES && period && weight % period == 0;

	if (whole)
		sample->weight_ns = period;
	for (uint64_t i = whole ? weight / period : 1; i; i--)
		sink->take(sink, sample);
}

static void give_all(const struct profile *profile, const uint32_t *roots, struct sink *sink)
{
	for (size_t id = 0; id < profile->trie.nodes.len; id++) {
		struct sink_sample sample = {.time_ns = profile->start_ns + 1,
					     .node = (uint32_t)id,
					     .weight_ns = profile->trie.nodes.items[id].self};
		struct sink_process process;
		struct sink_thread thread;

		if (!sample.weight_ns)
			continue;
		if (roots[id]) {
			fill_thread(profile, roots[id], &process, &thread);
			sample.thread = &thread;
		}
		give_samples(profile, sink, &sample);
	}
}

static int append(void *context, const void *bytes, size_t len)
{
	buf__add(context, bytes, len);
	return 0;
}

/* Of each node, the last of those above its stack, or TRIE_ROOT; and what is told apart by them. */
static void find_roots(const struct profile *profile, uint32_t *roots, struct record_apart *apart)
{
	*apart = (struct record_apart){0};
	roots[TRIE_ROOT] = TRIE_ROOT;
	for (size_t id = 1; id < profile->trie.nodes.len; id++) {
		const struct trie_node *node = &profile->trie.nodes.items[id];
		const struct frame *frame = frame_table__get(&profile->frames, node->frame);

		roots[id] = frame__is_root(frame) ? (uint32_t)id : roots[node->parent];
		apart->processes |= frame->kind == FRAME_PROCESS;
		apart->containers |= frame->kind == FRAME_CONTAINER;
		apart->threads |= frame->kind == FRAME_THREAD;
	}
}

static int write_pbp(const struct profile *profile, enum group_by group, struct buf *buf)
{
	uint32_t *roots = calloc(profile->trie.nodes.len, sizeof(*roots));
	struct recorder_config config = {.profile = profile, .write = append, .context = buf};
	struct recorder *recorder = NULL;
	int err = -ENOMEM;

	if (roots) {
		find_roots(profile, roots, &config.apart);
		err = recorder__new(&recorder, &config);
	}
	if (!err) {
		give_all(profile, roots, recorder__sink(recorder));
		err = recorder__end(recorder);
	}
	recorder__free(recorder);
	free(roots);
	return err;
}

static const char *const suffixes[] = {".pbp", NULL};

const struct writer pbp_writer = {
	.name = "pbp",
	.suffixes = suffixes,
	.help = "every sample with its time, written as it is sampled; see report",
	.binary = true,
	.streams = true,
	.write = write_pbp,
};
