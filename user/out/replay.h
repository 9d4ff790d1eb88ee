/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An output of a format that has every sample by itself: they are recorded (out/record.h) into a file without a name
 * while it is sampled, and that is read when the output is written.
 */
#pragma once

#include "out/recorder.h"
#include "out/writer.h"

struct replay {
	struct output output;
	struct recorder *recorder;
	int fd; /* the recording; -1: none */
};

/* As output__open; `writer` has write_samples. Close in either case. */
int replay__open(struct replay *replay, const char *name, const struct writer *writer);
/* As record_output__start. */
int replay__start(struct replay *replay, struct recorder_config *config);
/* All that has been taken up to now, as a file; `last`: nothing is taken after it. 0 or -errno; nothing is told. */
int replay__write(struct replay *replay, enum group_by group, bool last);
void replay__close(struct replay *replay);

/* The same of a profile: its samples have no times of their own then. For writer.write. */
int replay__profile(const struct writer *writer, const struct profile *profile, enum group_by group,
		    struct buf *buf);
