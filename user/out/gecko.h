/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a file for the Firefox Profiler (https://profiler.firefox.com) is made of: each sample with its time,
 * in the thread that it is of. A sink of samples whose weights are settled, as record_sum gives them.
 */
#pragma once

#include "agg/profile.h"
#include "agg/sink.h"
#include "base/buf.h"

struct gecko;

/* `profile`: that the samples' nodes are of; borrowed. GROUP_FUNCTION leaves lines out. 0 or -ENOMEM. */
int gecko__new(struct gecko **out, const struct profile *profile, enum group_by group);
struct sink *gecko__sink(struct gecko *gecko);
/* The file, when all samples have come and the profile's metadata are there. 0 or -errno. */
int gecko__write(struct gecko *gecko, struct buf *buf);
void gecko__free(struct gecko *gecko);
