/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See record_sum.h. A stack of a file and what stands above it make a node of the profile, which is looked up
 * once.
 */
#include "out/record_sum.h"

#include "base/util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX     (1u << 22)
#define TOTAL_MAX     (1ull << 62)
#define PROCESSES_MAX (1u << 20) /* that are counted */

enum { SHOWN_NOT, SHOWN, SHOWN_NOTED };

/* The file that is being added. */
struct record_sum_file {
	struct record_reader *reader;
	int64_t since_ns; /* its start, since that of the first one */
	VEC(uint32_t)
	roots; /* by thread: node of the profile that its stacks hang from; TRIE_FULL: not made yet */
	VEC(uint8_t) shown;  /* by thread: is it asked for? SHOWN_NOTED: and its process is known */
	VEC(uint8_t) frames; /* by frame: is it the function that is asked for? */
	VEC(uint8_t) stacks; /* by node of reader->stacks: has it that function on it? */
	struct hmap nodes;   /* root << 32 | node of reader->stacks -> node of the profile */
	VEC(uint32_t) way;
	uint32_t renewals; /* of the reader, that is known here */
};

int record_sum__init(struct record_sum *sum)
{
	static const char text[] = "[beyond the profile's size limit]";
	struct frame frame = {.kind = FRAME_SPECIAL};
	int err;

	*sum = (struct record_sum){0};
	err = profile__init(&sum->profile, NODES_MAX);
	if (err)
		return err;
	frame.function = strtab__add(sum->profile.strings, text, sizeof(text) - 1);
	/* Made first, so that it is there when the trie has become full. */
	sum->pruned =
		trie__child(&sum->profile.trie, TRIE_ROOT, frame_table__add(&sum->profile.frames, &frame));
	return sum->pruned == TRIE_FULL ? -ENOMEM : 0;
}

/* --- what stands above stacks --- */

static uint32_t child(struct record_sum *sum, uint32_t parent, enum frame_kind kind, uint32_t text)
{
	struct frame frame = {.kind = kind, .function = text};
	uint32_t id = text ? frame_table__add(&sum->profile.frames, &frame) : 0;

	if (!text)
		return parent;
	return id == UINT32_MAX ? TRIE_FULL : trie__child(&sum->profile.trie, parent, id);
}

static uint32_t make_root(struct record_sum *sum, const struct record_thread *thread)
{
	const struct record_process *process = &sum->file->reader->processes.items[thread->process];
	static const char unknown[] = "[container not known]";
	struct record_apart apart = sum->apart;
	uint32_t node = TRIE_ROOT;

	/* Both are told apart only by who writes profiles of several kinds. */
	if (apart.containers && (process->container || !apart.processes))
		node = child(sum, node, FRAME_CONTAINER,
			     process->container
				     ?: strtab__add(sum->profile.strings, unknown, sizeof(unknown) - 1));
	else if (apart.processes)
		node = child(sum, node, FRAME_PROCESS, process->root);
	if (apart.threads)
		node = child(sum, node, FRAME_THREAD, thread->root);
	return node == TRIE_FULL ? sum->pruned : node;
}

/* --- what is shown --- */

static bool shows_thread(const struct record_sum *sum, const struct record_thread *thread)
{
	return record_filter__has_thread(&sum->filter, sum->file->reader->processes.items[thread->process].pid,
					 thread->tid, strtab__get(sum->profile.strings, thread->name));
}

/* The nodes and threads of the reader are others now. */
static void note_renewal(struct record_sum *sum)
{
	struct record_sum_file *file = sum->file;

	if (file->renewals == file->reader->renewals)
		return;
	file->renewals = file->reader->renewals;
	file->roots.len = file->shown.len = file->stacks.len = 0;
	hmap__clear(&file->nodes);
	sum->parts++;
}

/* What is known of threads, of those as well that have come since. */
static int look_at_threads(struct record_sum *sum)
{
	struct record_sum_file *file = sum->file;
	const struct record_reader *reader = file->reader;
	int err = 0;

	for (size_t i = file->roots.len; i < reader->threads.len && !err; i++)
		err = vec__push(&file->shown, shows_thread(sum, &reader->threads.items[i]))
			      ?: vec__push(&file->roots, make_root(sum, &reader->threads.items[i]));
	return err;
}

static bool is_function(const struct record_sum *sum, const struct frame *frame)
{
	return record_filter__has_function(&sum->filter, strtab__get(sum->profile.strings, frame->function));
}

/* The same of stacks: a path has what the path that it goes on from has. */
static int look_at_stacks(struct record_sum *sum)
{
	struct record_sum_file *file = sum->file;
	const struct trie *stacks = &file->reader->stacks;
	const struct frame_table *frames = &sum->profile.frames;
	int err = 0;

	if (!sum->filter.function_count)
		return 0;
	for (size_t i = file->frames.len; i < frames->frames.len && !err; i++)
		err = vec__push(&file->frames, is_function(sum, frame_table__get(frames, (uint32_t)i)));
	for (size_t i = file->stacks.len; i < stacks->nodes.len && !err; i++) {
		const struct trie_node *node = &stacks->nodes.items[i];

		err = vec__push(&file->stacks,
				i && (file->stacks.items[node->parent] || file->frames.items[node->frame]));
	}
	return err;
}

static bool is_shown(const struct record_sum *sum, const struct record_sample *sample)
{
	if (sample->thread == RECORD_NONE ? record_filter__asks_thread(&sum->filter)
					  : !sum->file->shown.items[sample->thread])
		return false;
	return !sum->filter.function_count || sum->file->stacks.items[sample->node];
}

/* Of a wait, the part that lies in the span that is shown. False: none, or the sample does not. */
static bool cut(const struct record_sum *sum, struct record_sample *sample)
{
	const struct record_filter *filter = &sum->filter;
	int64_t from = sample->time_ns, to;
	uint64_t length = sample->length_ns;

	if (__builtin_add_overflow(from, length, &to))
		to = INT64_MAX;
	if (filter->has_from && from < filter->from_ns)
		from = filter->from_ns;
	if (filter->has_to && to > filter->to_ns)
		to = filter->to_ns;
	if (!length)
		return from == sample->time_ns && (!filter->has_to || from < filter->to_ns);
	if (from >= to)
		return false;
	sample->weight_ns = part_of(sample->weight_ns, (uint64_t)(to - from), length);
	sample->length_ns = (uint64_t)(to - from);
	sample->time_ns = from;
	return true;
}

/* --- samples --- */

static uint64_t node_key(uint32_t root, uint32_t node)
{
	return (uint64_t)root << 32 | node;
}

/* The node of the profile for a stack below a root; TRIE_FULL. */
static uint32_t place(struct record_sum *sum, uint32_t root, uint32_t node)
{
	struct record_sum_file *file = sum->file;
	const struct trie *stacks = &file->reader->stacks;
	struct trie *trie = &sum->profile.trie;
	const uint64_t *known = NULL;
	uint32_t at = root;

	file->way.len = 0;
	for (; node != TRIE_ROOT; node = stacks->nodes.items[node].parent) {
		known = hmap__get(&file->nodes, node_key(root, node));
		if (known)
			break;
		if (trie->nodes.len >= trie->max_nodes || vec__push(&file->way, node))
			return TRIE_FULL;
	}
	at = known ? (uint32_t)*known : root;
	while (file->way.len && at != TRIE_FULL) {
		node = file->way.items[--file->way.len];
		at = trie__child(trie, at, stacks->nodes.items[node].frame);
		if (at != TRIE_FULL && hmap__set(&file->nodes, node_key(root, node), at))
			at = TRIE_FULL;
	}
	return at;
}

static void count(struct record_sum *sum, uint32_t state)
{
	struct account *account = &sum->shown;

	if (state & SINK_CONTINUED)
		return;
	sum->profile.samples++;
	account->truncated += !!(state & SINK_TRUNCATED);
	account->unverified += !!(state & SINK_UNVERIFIED);
	account->without_python += !!(state & SINK_WITHOUT_PYTHON);
	account->code_freed += !!(state & SINK_CODE_FREED);
	account->exited += !!(state & SINK_EXITED);
	account->line_approximate += !!(state & SINK_LINE_APPROXIMATE);
	account->beyond_size_limit += !!(state & SINK_BEYOND_SIZE_LIMIT);
	if (state & SINK_WAIT)
		return;
	sum->on_cpu++;
	sum->attached += !!(state & SINK_ATTACHED);
	sum->collecting += !!(state & SINK_GC);
	sum->raising += !!(state & SINK_RAISING);
	sum->in_kernel += !!(state & SINK_KERNEL);
}

/* Where what is shown begins. */
static uint64_t begin_of_part(const struct record_sum *sum)
{
	return sum->filter.has_from && sum->filter.from_ns > 0 ? (uint64_t)sum->filter.from_ns : 0;
}

/* What is shown is told as a run of its own. */
static void pass_on(struct record_sum *sum, const struct record_sample *sample, uint32_t node)
{
	const struct record_reader *reader = sum->file->reader;
	const struct strtab *strings = sum->profile.strings;
	uint64_t from_ns = begin_of_part(sum);
	struct sink_sample out = {.time_ns = sum->profile.start_ns + (uint64_t)sample->time_ns - from_ns,
				  .node = node,
				  .state = sample->state,
				  .weight_ns = sample->weight_ns};
	struct sink_process process;
	struct sink_thread thread;

	if (sample->thread != RECORD_NONE) {
		const struct record_thread *of_file = &reader->threads.items[sample->thread];
		const struct record_process *of = &reader->processes.items[of_file->process];

		process = (struct sink_process){.key = sum->parts << 32 | of_file->process,
						.pid = of->pid,
						.command = strtab__get(strings, of->command),
						.root = strtab__get(strings, of->root),
						.container = strtab__get(strings, of->container)};
		thread = (struct sink_thread){.key = sum->parts << 32 | sample->thread,
					      .process = &process,
					      .tid = of_file->tid,
					      .name = strtab__get(strings, of_file->name),
					      .root = strtab__get(strings, of_file->root)};
		out.thread = &thread;
	}
	/* That of the file that is read is another one. */
	sum->profile.start_realtime_ns = sum->first_start_ns + from_ns;
	for (struct sink *sink = sum->sink; sink; sink = sink->next)
		sink->take(sink, &out);
}

/* Of a part it is counted which processes are in it. */
static int note_process(struct record_sum *sum, uint32_t thread)
{
	const struct record_reader *reader = sum->file->reader;
	const struct record_process *process;

	if (thread == RECORD_NONE || sum->pids.len >= PROCESSES_MAX) {
		sum->has_unknown = true;
		return 0;
	}
	if (sum->file->shown.items[thread] == SHOWN_NOTED)
		return 0;
	sum->file->shown.items[thread] = SHOWN_NOTED;
	process = &reader->processes.items[reader->threads.items[thread].process];
	return hmap__set(&sum->pids, process->pid, process->command);
}

static int add_sample(struct record_sum *sum, struct record_sample *sample)
{
	uint32_t root = TRIE_ROOT, node;
	int err;

	note_renewal(sum);
	err = look_at_threads(sum) ?: look_at_stacks(sum);
	if (err)
		return err;
	/* What was taken just before the start is of it. */
	if (!sample->length_ns)
		sample->time_ns = max_i64(sample->time_ns, 0);
	sample->time_ns = (int64_t)((uint64_t)sample->time_ns + (uint64_t)sum->file->since_ns);
	sum->last_ns = max_u64(sum->last_ns, sample->time_ns > 0 ? (uint64_t)sample->time_ns : 0);
	if (!is_shown(sum, sample) || !cut(sum, sample))
		return 0;
	err = note_process(sum, sample->thread);
	if (err)
		return err;
	if (sample->thread != RECORD_NONE)
		root = sum->file->roots.items[sample->thread];
	/* Of one file it cannot be more. */
	sum->total_ns += sample->weight_ns;
	if (sum->total_ns > TOTAL_MAX)
		return -E2BIG;
	node = place(sum, root, sample->node);
	if (node == TRIE_FULL) {
		node = sum->pruned;
		sample->state |= SINK_BEYOND_SIZE_LIMIT;
	}
	trie__add(&sum->profile.trie, node, sample->weight_ns);
	count(sum, sample->state);
	if (sum->sink)
		pass_on(sum, sample, node);
	return 0;
}

/* --- files --- */

#define COUNTED(X)                                                                                           \
	X(truncated)                                                                                         \
	X(unverified) X(without_python) X(code_freed) X(exited) X(line_approximate) X(beyond_size_limit)

/* The profile's metadata are those of the file, now that it has been read. */
static void add_account(struct record_sum *sum)
{
	const struct profile *profile = &sum->profile;
	const struct record_reader *reader = sum->file->reader;
	struct account *read = &sum->read;
	uint64_t since_ns = (uint64_t)max_i64(sum->file->since_ns, 0);

	read->engine = profile->account.engine ?: read->engine;
	read->mode = profile->account.mode ?: read->mode;
	read->version = profile->account.version ?: read->version;
	read->end = reader->ended ? profile->account.end : "the recording was cut off";
	read->rate_hz = profile->account.rate_hz;
	read->processes = max_u64(read->processes, profile->account.processes);
	read->cpu_ns += profile->account.cpu_ns;
	/* Of these it is not known which samples they are. */
	read->lost += profile->account.lost;
	read->left_out += profile->account.left_out;
	read->line_unknown += profile->account.line_unknown;
#define ADD(name) read->name += profile->account.name;
	COUNTED(ADD)
#undef ADD
	sum->end_ns = max_u64(sum->end_ns, since_ns + profile->duration_ns);
	sum->all_samples += reader->samples;
	sum->cut_off |= !reader->ended || reader->fault;
	sum->host = reader->host;
}

/* Of the first file, which all times are since; the others are to be of its kind. */
static bool begin_file(struct record_sum *sum)
{
	const struct profile *profile = &sum->profile;
	struct record_sum_file *file = sum->file;

	sum->parts++;
	if (!sum->files++) {
		sum->first_start_ns = profile->start_realtime_ns;
		sum->host = file->reader->host;
		sum->mode = profile->account.mode;
		sum->command = profile->command;
		sum->period_ns = profile->period_ns;
		sum->unit = profile->unit;
		if (!sum->apart_is_set)
			sum->apart = file->reader->apart;
		sum->apart_is_set = true;
		sum->apart.threads |= sum->adds_threads;
	}
	file->since_ns = (int64_t)(profile->start_realtime_ns - sum->first_start_ns);
	return profile->period_ns == sum->period_ns && profile->unit == sum->unit &&
	       (!profile->account.mode || !sum->mode || !strcmp(profile->account.mode, sum->mode));
}

static void close_file(struct record_sum_file *file)
{
	record_reader__close(file->reader);
	vec__free(&file->roots);
	vec__free(&file->shown);
	vec__free(&file->frames);
	vec__free(&file->stacks);
	hmap__free(&file->nodes);
	vec__free(&file->way);
}

int record_sum__add(struct record_sum *sum, int fd, const char **fault)
{
	struct record_sum_file file = {0};
	struct record_sample sample;
	int err = record_reader__open(&file.reader, fd, &sum->profile);

	*fault = NULL;
	if (err)
		return err;
	sum->file = &file;
	sum->is_left_out = !begin_file(sum);
	if (sum->is_left_out)
		*fault = "it is of another kind or rate than the first one";
	if (sum->files == 1 && sum->begin)
		err = sum->begin(sum, sum->context);
	while (!err && !*fault && record_reader__next(file.reader, &sample))
		err = add_sample(sum, &sample);
	if (!*fault)
		add_account(sum);
	else
		sum->cut_off = true;
	*fault = *fault ?: file.reader->fault;
	close_file(&file);
	sum->file = NULL;
	return err;
}

/* A command is that of the first process, or of the only one in the part. */
static void take_processes(struct record_sum *sum)
{
	const struct hmap_slot *slot;
	struct buf command = {0};
	uint32_t id;
	size_t at = 0;

	sum->profile.account.processes = sum->pids.len;
	slot = sum->pids.len == 1 ? hmap__next(&sum->pids, &at) : NULL;
	if (!slot)
		return;
	buf__add_escaped(&command, strtab__get(sum->profile.strings, (uint32_t)slot->value), NULL);
	id = strtab__add(sum->profile.strings, command.data ?: "", command.len);
	sum->profile.command = strtab__get(sum->profile.strings, id == UINT32_MAX ? 0 : id);
	buf__free(&command);
}

void record_sum__finish(struct record_sum *sum)
{
	const struct record_filter *filter = &sum->filter;
	struct profile *profile = &sum->profile;
	bool is_part = record_filter__is_set(filter);
	/* Some of a run are taken while it ends. */
	uint64_t to_ns = sum->cut_off || !sum->end_ns ? max_u64(sum->end_ns, sum->last_ns) : sum->end_ns;
	uint64_t from_ns = min_u64(begin_of_part(sum), to_ns);

	profile->account = sum->shown;
	/* What a file that is whole says of all of it is right in any case. */
	if (!is_part && !sum->cut_off) {
#define TAKE(name) profile->account.name = sum->read.name;
		COUNTED(TAKE)
#undef TAKE
	}
	profile->account.engine = sum->read.engine;
	profile->account.mode = sum->read.mode;
	profile->account.version = sum->read.version;
	profile->account.end = sum->read.end;
	profile->account.rate_hz = sum->read.rate_hz;
	profile->account.processes = sum->read.processes;
	profile->account.lost = sum->read.lost;
	profile->account.left_out = sum->read.left_out;
	profile->account.line_unknown = sum->read.line_unknown;
	/* Of a part it is not known, nor where the last account is missing. */
	if (!is_part && !sum->cut_off)
		profile->account.cpu_ns = sum->read.cpu_ns;
	if (filter->has_to)
		to_ns = min_u64((uint64_t)max_i64(filter->to_ns, (int64_t)from_ns), to_ns);
	profile->start_realtime_ns = sum->first_start_ns + from_ns;
	profile->duration_ns = to_ns - from_ns;
	profile->command = sum->command;
	if (is_part && !sum->has_unknown)
		take_processes(sum);
	profile->period_ns = sum->period_ns;
	profile->unit = sum->unit;
}

void record_sum__free(struct record_sum *sum)
{
	if (!sum)
		return;
	hmap__free(&sum->pids);
	profile__free(&sum->profile);
}
