/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For options.c: the values of options, from text. All give 0 or -EINVAL (or -ENOMEM) and change nothing
 * else; what is wanted is for the caller to say.
 */
#pragma once

#include "options.h"

int parse_number(const char *text, long least, long most, long *out);
/* "12,13": those that are not in the list yet. */
int parse_pids(struct options *options, const char *text);
int parse_program(const char *text, enum sampler_program *out);
int parse_engine(const char *text, enum engine_kind *out);
int parse_mode(const char *text, enum engine_mode *out);
int parse_by(const char *text, enum session_by *out);
/* One more, by name or number. */
int parse_user(const char *text, struct filter *filter);
