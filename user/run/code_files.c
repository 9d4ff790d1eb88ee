/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See code_files.h. What is read is chosen by the heat of files; who reads it, and what not, is the business
 * of os/file_view.c.
 */
#include "run/code_files.h"

#include "agg/heat.h"
#include "base/clock.h"
#include "base/util.h"
#include "os/proc.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#define NO_VIEW	   UINT32_MAX	    /* the process had ended */
#define NO_ROOM	   (UINT32_MAX - 1) /* there were too many of them */
#define LOOK_NS	   100000000ull	    /* a process changes its user or folder seldom */
#define USES_MAX   65536
#define LOOKS_MAX  65536 /* at processes, that are kept */
#define BYTES_MAX  (24u << 20) /* of all code that is kept */
#define EARLIER_NS 20000000ll  /* start times are told in steps of 10 ms */

/* --- while it runs --- */

static int64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000ll + time.tv_nsec;
}

/* Since 1970. */
static int64_t start_time(pid_t pid)
{
	struct proc_stat stat;

	if (proc__stat(pid, &stat))
		return 0;
	return clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) +
	       (int64_t)stat.start_ticks * (1000000000ll / sysconf(_SC_CLK_TCK));
}

/* Index of a view that is the same, added if it is new. */
static uint32_t keep_view(struct code_files *files, struct file_view *view)
{
	for (size_t i = 0; i < files->views.len; i++)
		if (file_view__equal(&files->views.items[i], view)) {
			file_view__close(view);
			return i;
		}
	if (files->views.len < CODE_VIEWS_MAX && !vec__push(&files->views, *view))
		return files->views.len - 1;
	file_view__close(view);
	return NO_ROOM;
}

static void look(struct code_files *files, const struct process *process, struct code_look *look)
{
	struct file_view view;

	look->time_ns = now_ns();
	if (process->exited || file_view__open(&view, process->pid))
		return; /* as it was seen last */
	look->view = keep_view(files, &view);
	look->began_ns = start_time(process->pid);
}

static struct code_look *look_of(struct code_files *files, const struct process *process)
{
	const uint64_t *known = hmap__get(&files->index, process->serial);
	struct code_look *last;

	if (!known && files->looks.len >= LOOKS_MAX) {
		files->looks.len = 0;
		hmap__clear(&files->index);
	}
	if (!known) {
		if (vec__push(&files->looks, (struct code_look){.view = NO_VIEW}) ||
		    hmap__set(&files->index, process->serial, files->looks.len - 1))
			return NULL;
		known = hmap__get(&files->index, process->serial);
	}
	last = &files->looks.items[*known];
	if (!last->time_ns || now_ns() - last->time_ns > LOOK_NS)
		look(files, process, last);
	return last;
}

void code_files__note(struct code_files *files, const struct process *process, uint32_t file)
{
	const struct code_look *last;
	struct code_use use;
	uint64_t key;

	if (files->uses.len >= USES_MAX)
		return;
	last = look_of(files, process);
	if (!last)
		return;
	use = (struct code_use){.file = file, .view = last->view, .began_ns = last->began_ns};
	key = (uint64_t)file << 32 | use.view;
	if (!hmap__get(&files->known, key) && !hmap__set(&files->known, key, 1))
		vec__push(&files->uses, use);
}

/* --- at the end --- */

/* A use of a file that is to be read. */
struct wanted {
	struct code_use use;
	uint32_t rank; /* 0 is the hottest file */
};

struct wanted_list {
	VEC(struct wanted) items;
};

static enum listing_state state_of(enum file_fault fault)
{
	static const enum listing_state states[] = {
		[FILE_READ] = LISTING_READ,	      [FILE_MISSING] = LISTING_MISSING,
		[FILE_DENIED] = LISTING_DENIED,	      [FILE_NOT_REGULAR] = LISTING_NO_TEXT,
		[FILE_TOO_LARGE] = LISTING_TOO_LARGE, [FILE_SLOW] = LISTING_SLOW,
		[FILE_FAILED] = LISTING_FAILED,
	};

	return states[fault];
}

/* A later process's file: is it the one that is known, or, where that could not be read, better than nothing?
 */
static int take_again(struct profile *profile, const struct listing *known, struct listing *listing,
		      size_t *bytes)
{
	struct listing *first = &profile->listings.items.items[known - profile->listings.items.items];

	if (first->state != LISTING_READ && listing->state == LISTING_READ &&
	    listing->len <= BYTES_MAX - *bytes) {
		*bytes += listing->len;
		return listings__put(&profile->listings, listing);
	}
	if (first->state == LISTING_READ && listing->state == LISTING_READ) {
		first->differs |= first->len != listing->len ||
				  (first->len && memcmp(first->text, listing->text, first->len));
		first->changed |= listing->changed;
	}
	free(listing->text);
	return 0;
}

static int take_read(struct profile *profile, const struct code_use *use, const struct file_read *read,
		     size_t *bytes)
{
	struct listing listing = {.file = use->file,
				  .state = state_of(read->fault),
				  .text = read->text,
				  .len = read->len,
				  .changed = read->fault == FILE_READ && use->began_ns &&
					     read->changed_ns > use->began_ns + EARLIER_NS};
	const struct listing *known = listings__get(&profile->listings, use->file);

	if (listing.text && memchr(listing.text, '\0', listing.len)) {
		free(listing.text);
		listing = (struct listing){.file = use->file, .state = LISTING_NO_TEXT};
	}
	if (known)
		return take_again(profile, known, &listing, bytes);
	if (listing.len > BYTES_MAX - *bytes) {
		free(listing.text);
		listing = (struct listing){.file = use->file, .state = LISTING_NOT_READ};
	}
	*bytes += listing.len;
	return listings__put(&profile->listings, &listing);
}

/* Those of one view. 0 or -ENOMEM. */
static int read_view(const struct code_files *files, const struct wanted *wanted, size_t count,
		     struct profile *profile, size_t *bytes, uint64_t until_ns)
{
	uint32_t view = wanted->use.view;
	struct file_read *reads = calloc(count, sizeof(*reads));
	int err = reads ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && !err; i++)
		reads[i].path = strtab__get(profile->strings, wanted[i].use.file);
	if (!err && view < files->views.len)
		file_view__read(&files->views.items[view], reads, count, until_ns);
	for (size_t i = 0; i < count && reads; i++) {
		struct listing none = {.file = wanted[i].use.file,
				       .state = view == NO_VIEW ? LISTING_GONE : LISTING_NOT_READ};

		if (err)
			free(reads[i].text);
		else if (view < files->views.len)
			err = take_read(profile, &wanted[i].use, &reads[i], bytes);
		else if (!listings__get(&profile->listings, none.file))
			err = listings__put(&profile->listings, &none);
	}
	free(reads);
	return err;
}

static int compare_wanted(const void *left, const void *right)
{
	const struct wanted *a = left, *b = right;

	return (a->use.view > b->use.view) - (a->use.view < b->use.view)
		       ?: (a->rank > b->rank) - (a->rank < b->rank);
}

/* Names in brackets are of no file: "<string>", "<frozen importlib._bootstrap>". */
static bool is_no_file(const char *name)
{
	return !*name || *name == '<';
}

/* By view, and within it the hottest first. */
static int find_wanted(const struct code_files *files, const struct heat *heat, struct profile *profile,
		       struct wanted_list *list)
{
	struct hmap ranks = {0};
	int err = 0;

	for (size_t i = 0; i < heat->files.len && i < FILE_READS_MAX && !err; i++) {
		struct listing none = {.file = heat->files.items[i].name, .state = LISTING_NO_FILE};

		if (is_no_file(strtab__get(profile->strings, none.file)))
			err = listings__put(&profile->listings, &none);
		else
			err = hmap__set(&ranks, none.file, i);
	}
	for (size_t i = 0; i < files->uses.len && !err; i++) {
		const uint64_t *rank = hmap__get(&ranks, files->uses.items[i].file);
		struct wanted wanted = {.use = files->uses.items[i], .rank = rank ? *rank : 0};

		err = rank ? vec__push(&list->items, wanted) : 0;
	}
	hmap__free(&ranks);
	if (list->items.len)
		qsort(list->items.items, list->items.len, sizeof(*list->items.items), compare_wanted);
	return err;
}

int code_files__read(struct code_files *files, struct profile *profile)
{
	struct wanted_list list = {0};
	struct heat heat;
	size_t bytes = 0, end;
	/* However many views there are, and however slow their file systems. */
	uint64_t until_ns = now_ns() + FILES_WAIT_NS;
	int err = heat__init(&heat, &profile->trie, &profile->frames, profile->strings);

	listings__free(&profile->listings);
	err = err ?: find_wanted(files, &heat, profile, &list);
	for (size_t i = 0; i < list.items.len && !err; i = end) {
		for (end = i;
		     end < list.items.len && list.items.items[end].use.view == list.items.items[i].use.view;)
			end++;
		err = read_view(files, &list.items.items[i], end - i, profile, &bytes, until_ns);
	}
	vec__free(&list.items);
	heat__free(&heat);
	return err;
}

void code_files__free(struct code_files *files)
{
	for (size_t i = 0; i < files->views.len; i++)
		file_view__close(&files->views.items[i]);
	vec__free(&files->views);
	vec__free(&files->uses);
	vec__free(&files->looks);
	hmap__free(&files->known);
	hmap__free(&files->index);
}
