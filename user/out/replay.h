/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An output of the format that has every sample by itself (out/gecko.h). In a run they are recorded
 * (out/record.h) into a file without a name, and that is read when the output is written.
 */
#pragma once

#include "out/gecko.h"
#include "out/recorder.h"
#include "out/writer.h"

struct replay {
	struct output output;
	enum group_by group;
	/* One of the two: */
	struct recorder *recorder;
	struct gecko *gecko;
	int fd; /* the recording; -1: none */
};

/* As output__open. Close in either case. */
int replay__open(struct replay *replay, const char *name, const struct writer *writer, enum group_by group);
/* As record_output__start; *sink: where samples are to go. What fails is told. */
int replay__start(struct replay *replay, struct recorder_config *config, struct sink **sink);
/* The same for samples whose weights are settled as they come. */
int replay__start_settled(struct replay *replay, const struct profile *profile, struct sink **sink);
/* All that has been taken up to now, as a file; `last`: nothing is taken after it. 0 or -errno; nothing is
 * told. */
int replay__write(struct replay *replay, bool last);
void replay__close(struct replay *replay);

/* The file of a profile: its samples have no times of their own then. 0 or -errno. */
int replay__profile(const struct profile *profile, enum group_by group, struct buf *buf);
