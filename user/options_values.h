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
int parse_sample_clock(const char *text, enum sampler_clock *out);
int parse_by(const char *text, enum session_by *out);
/* "100M", "10m": capital letters are bytes, small ones (but k) are times. */
int parse_rotation(const char *text, struct record_rotation *out);
/* "12.5", "2m": since the start; "13:05:30", "2026-11-30T13:05:30Z": by the clock. */
int parse_report_time(const char *text, struct report_time *out);
/*
 * In ns since the start of a recording, which is told since 1970. A time of the day is the first one after
 * it, or one up to an hour before.
 */
int64_t report_time__since(const struct report_time *time, uint64_t start_ns);
/* One more, by name or number. */
int parse_user(const char *text, struct filter *filter);
/* One more pattern. A name that is longer than the kernel's ever are would find nobody. */
int parse_comm(const char *text, struct filter *filter);
