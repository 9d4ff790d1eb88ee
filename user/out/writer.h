/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of output formats, and writing one of them to a file so that a failure never leaves something
 * that looks like a profile. A format is one file: a `write` function from a const profile to bytes, and a
 * row here.
 */
#pragma once

#include "agg/profile.h"
#include "base/buf.h"

#include <stdbool.h>

struct writer {
	const char *name;	     /* for --format */
	const char *const *suffixes; /* NULL-terminated, longest match wins, e.g. ".collapsed" */
	const char *help;	     /* one line */
	bool binary;		     /* refused on a terminal */
	bool shows_code;	     /* of what is in profile->listings */
	bool replays;		     /* it has every sample by itself (out/replay.h) */
	bool streams;		     /* a run is written while it is sampled (out/recorder.h) */
	/* Append the whole file to buf. Returns 0 or -errno. */
	int (*write)(const struct profile *profile, enum group_by group, struct buf *buf);
};

/*
 * By --format name, or a suffix without its dot; by the longest matching suffix of a path; NULL when there is
 * none.
 */
const struct writer *writer__by_name(const char *name);
const struct writer *writer__by_path(const char *path);
/* All formats, NULL-terminated, for the help text. */
const struct writer *const *writer__all(void);

/* The formats, each in the file of its name. A new one also gets a line in writer.c. */
extern const struct writer flamegraph_writer;
extern const struct writer heatmap_writer;
extern const struct writer collapsed_writer;
extern const struct writer pstats_writer;
extern const struct writer speedscope_writer;
extern const struct writer pprof_writer;
extern const struct writer jsonl_writer;
extern const struct writer gecko_writer;
extern const struct writer pbp_writer;

/*
 * One -o of the command line. Opened before sampling starts, so that an unwritable path is told at once. A
 * regular file is written beside its final name and renamed when complete (an older file of the name stays
 * until then, and passes its owner and mode on); a symbolic link stays and the file it names is replaced. "-"
 * is stdout, and so is any other name of the file that stdout or stderr goes to, such as /dev/stdout.
 * Anything else that is not a regular file (FIFO, device) is written directly.
 */
struct output {
	const char *path; /* as given; borrowed */
	const struct writer *writer; /* NULL: what is written is no profile */
	char *final_path; /* path with links followed; NULL when written directly */
	char *tmp_path;	  /* NULL when there is no temporary file */
	int fd;		  /* -1 = not open */
	bool replaces;	  /* a file that was there before */
	bool is_new;	  /* it replaces none, ever */
	bool written;	  /* at least once, in full */
	uint64_t appended; /* bytes, by output__append */
};

/*
 * 0 or -errno: -EISDIR for a directory, -ENOENT when there is no directory to write in, -EACCES also for an
 * existing file that could be replaced but not written, -ENOTSUP for a binary format on a terminal. Nothing
 * is created under the final name. Opening a FIFO waits for its reader, as in any program. After a failure
 * output__close is allowed but not needed.
 */
int output__open(struct output *out, const char *path, const struct writer *writer);
/* Would one of the two replace what the other has written? */
bool output__is_same(const struct output *a, const struct output *b);
/*
 * The same as output__open for a file of a name that nobody has: what writes it fails with -EEXIST if
 * somebody has it then, a link that leads nowhere included, and may be asked again when it has got another
 * name in the same folder.
 */
int output__open_new(struct output *out, const char *path, const struct writer *writer);
int output__take_name(struct output *out, const char *path);
/*
 * Write the profile and make it visible under its name. May be called again: a file is replaced by the next
 * snapshot, a pipe or device gets it after the one before. 0 or -errno, errors at close and -EPIPE included;
 * on failure no file changes, and a later call may try again.
 */
int output__write(struct output *out, const struct profile *profile, enum group_by group);
/* The same with any text. */
int output__write_text(struct output *out, const struct buf *text);
/*
 * One part after the other, in place of the above: the file has its name from the first one on. 0 or -errno;
 * the file then ends with the last part that is whole.
 */
int output__append(struct output *out, const void *bytes, size_t len);
/* After the last part. 0 or -errno. */
int output__finish(struct output *out);
/* Removes a temporary file that was never renamed. */
void output__close(struct output *out);
