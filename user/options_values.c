/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See options_values.h.
 */
#include "options_values.h"

#include "base/util.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define RATE_MAX       ENGINE_READV_RATE_MAX
#define DURATION_MAX_S (366.0 * 86400)

/* Digits and a point: no sign, "inf", "0x10", "1e3" or leading space. *end: what follows. */
static int parse_decimal(const char *text, char **end, double *out)
{
	*out = strtod(text, end);
	return *end == text + strspn(text, ".0123456789") ? 0 : -EINVAL;
}

int parse_duration(const char *text, uint64_t *out_ns)
{
	static const struct {
		const char *unit;
		double seconds;
	} units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
	char *end;
	double value;

	if (parse_decimal(text, &end, &value))
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		double seconds = value * units[i].seconds;

		if (strcmp(end, units[i].unit))
			continue;
		if (!isfinite(seconds) || seconds < 1e-3 || seconds > DURATION_MAX_S)
			return -EINVAL;
		*out_ns = seconds * 1e9;
		return 0;
	}
	return -EINVAL;
}

int parse_rate(const char *text, uint32_t *out_hz)
{
	char *end;
	double value;

	if (parse_decimal(text, &end, &value))
		return -EINVAL;
	if (*end == 'k' || *end == 'K') {
		value *= 1000;
		end++;
	}
	if (*end && strcasecmp(end, "hz"))
		return -EINVAL;
	if (!(value >= 1 && value <= RATE_MAX))
		return -EINVAL;
	*out_hz = value;
	return 0;
}

int parse_number(const char *text, long least, long most, long *out)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	*out = strtol(text, &end, 10);
	return errno || *end || *out < least || *out > most ? -EINVAL : 0;
}

int parse_pids(struct options *options, const char *text)
{
	char item[16];
	long pid;

	do {
		size_t len = strcspn(text, ",");

		if (len >= sizeof(item))
			return -EINVAL;
		memcpy(item, text, len);
		item[len] = '\0';
		if (parse_number(item, 1, INT_MAX, &pid))
			return -EINVAL;
		for (size_t i = 0; i < options->session.pids.len; i++)
			if (options->session.pids.items[i] == pid)
				pid = 0; /* named twice */
		if (pid && vec__push(&options->session.pids, (pid_t)pid))
			return -ENOMEM;
		text += len;
		if (*text == ',' && !*++text)
			return -EINVAL;
	} while (*text);
	return 0;
}

/* Index of a word in a list; -EINVAL. */
static int parse_word(const char *text, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(text, words[i]))
			return i;
	return -EINVAL;
}

int parse_program(const char *text, enum sampler_program *out)
{
	static const char *const names[] = {
		[SAMPLER_WALK] = "walk", [SAMPLER_BOUNDED] = "bounded", [SAMPLER_EMPTY] = "empty"};
	int index = parse_word(text, names, ARRAY_SIZE(names));

	*out = index < 0 ? SAMPLER_WALK : (enum sampler_program)index;
	return index < 0 ? index : 0;
}

int parse_engine(const char *text, enum engine_kind *out)
{
	static const char *const names[] = {
		[ENGINE_AUTO] = "auto", [ENGINE_BPF] = "bpf", [ENGINE_READV] = "readv"};
	int index = parse_word(text, names, ARRAY_SIZE(names));

	*out = index < 0 ? ENGINE_AUTO : (enum engine_kind)index;
	return index < 0 ? index : 0;
}

int parse_mode(const char *text, enum engine_mode *out)
{
	static const char *const names[] = {
		[ENGINE_CPU] = "cpu", [ENGINE_WALL] = "wall", [ENGINE_OFFCPU] = "offcpu"};
	int index = parse_word(text, names, ARRAY_SIZE(names));

	*out = index < 0 ? ENGINE_CPU : (enum engine_mode)index;
	return index < 0 ? index : 0;
}

int parse_by(const char *text, enum session_by *out)
{
	static const char *const names[] = {[SESSION_BY_DEFAULT] = "",
					    [SESSION_BY_PROCESS] = "process",
					    [SESSION_BY_CONTAINER] = "container",
					    [SESSION_BY_MERGED] = "merged"};
	int index = parse_word(text, names, ARRAY_SIZE(names));

	*out = index <= 0 ? SESSION_BY_DEFAULT : (enum session_by)index;
	return index <= 0 ? -EINVAL : 0;
}

int parse_user(const char *text, struct filter *filter)
{
	const struct passwd *user = getpwnam(text);
	long number;

	if (!user && parse_number(text, 0, UINT32_MAX - 1l, &number))
		return -EINVAL;
	return vec__push(&filter->users, user ? user->pw_uid : (uid_t)number);
}
