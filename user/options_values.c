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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define COMM_MAX       15
#define RATE_MAX       ENGINE_READV_RATE_MAX
#define DURATION_MAX_S (366.0 * 86400)

#define ROTATE_BYTES_MIN 64e3
#define ROTATE_NS_MIN	 1000000000ull

/* Digits and a point: no sign, "inf", "0x10", "1e3" or leading space. *end: what follows. */
static int parse_decimal(const char *text, char **end, double *out)
{
	*out = strtod(text, end);
	return *end > text && *end == text + strspn(text, ".0123456789") ? 0 : -EINVAL;
}

static int parse_time(const char *text, double least_s, uint64_t *out_ns)
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
		if (!isfinite(seconds) || seconds < least_s || seconds > DURATION_MAX_S)
			return -EINVAL;
		*out_ns = seconds * 1e9;
		return 0;
	}
	return -EINVAL;
}

int parse_duration(const char *text, uint64_t *out_ns)
{
	return parse_time(text, 1e-3, out_ns);
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
		[ENGINE_CPU] = "cpu", [ENGINE_WALL] = "wall", [ENGINE_OFFCPU] = "offcpu",
		[ENGINE_GIL] = "gil"};
	int index = parse_word(text, names, ARRAY_SIZE(names));

	*out = index < 0 ? ENGINE_CPU : (enum engine_mode)index;
	return index < 0 ? index : 0;
}

int parse_sample_clock(const char *text, enum sampler_clock *out)
{
	static const char *const names[] = {[SAMPLER_PERF] = "perf", [SAMPLER_TICK] = "tick"};
	int index = parse_word(text, names, ARRAY_SIZE(names));

	*out = index < 0 ? SAMPLER_PERF : (enum sampler_clock)index;
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

int parse_comm(const char *text, struct filter *filter)
{
	if (!*text || (strlen(text) > COMM_MAX && !strpbrk(text, "*?[\\")))
		return -EINVAL;
	return vec__push(&filter->comms, text);
}

/* A size. */
static int parse_bytes(const char *text, uint64_t *out)
{
	static const struct {
		const char *unit;
		double bytes;
	} units[] = {{"k", 1e3}, {"K", 1e3}, {"kB", 1e3}, {"M", 1e6}, {"MB", 1e6}, {"G", 1e9}, {"GB", 1e9}};
	char *end;
	double value;

	if (parse_decimal(text, &end, &value))
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(end, units[i].unit))
			continue;
		value *= units[i].bytes;
		if (!(value >= ROTATE_BYTES_MIN && value <= 1e15))
			return -EINVAL;
		*out = (uint64_t)value;
		return 0;
	}
	return -EINVAL;
}

int parse_rotation(const char *text, struct record_rotation *out)
{
	size_t len = strlen(text);
	uint64_t ns;

	out->bytes = out->ns = 0;
	if (!parse_bytes(text, &out->bytes))
		return 0;
	/* A number alone could be either. */
	if (!len || isdigit((unsigned char)text[len - 1]) || parse_duration(text, &ns) || ns < ROTATE_NS_MIN)
		return -EINVAL;
	out->ns = ns;
	return 0;
}

#define NS 1000000000ll

/* Who says 13:00 of what began at 13:05 means the hour; of what began in the evening, the next day. */
#define BEFORE_START_NS (3600 * NS)

/* ".25" and the like; *text: what follows. */
static int64_t parse_fraction(const char **text)
{
	int64_t ns = 0, digit = NS / 10;

	if (**text != '.')
		return 0;
	for (++*text; isdigit((unsigned char)**text); ++*text, digit /= 10)
		ns += digit * (**text - '0');
	return ns;
}

/* Is there such a day? Others would be taken for one of the next month. */
static bool is_day(const struct tm *date)
{
	struct tm day = {.tm_year = date->tm_year, .tm_mon = date->tm_mon, .tm_mday = date->tm_mday};

	timegm(&day);
	return day.tm_mon == date->tm_mon && day.tm_mday == date->tm_mday;
}

static int parse_clock(const char *text, struct report_time *out)
{
	struct tm tm = {.tm_isdst = -1};
	const char *rest = strptime(text, "%Y-%m-%d", &tm);
	bool has_date = rest && (*rest == 'T' || *rest == ' '), is_a_day = has_date && is_day(&tm);
	int hour, minute, second = 0, used = 0;
	int64_t fraction_ns = 0;
	time_t since_1970;
	const char *time = has_date ? rest + 1 : text;

	if (sscanf(time, "%2d:%2d%n", &hour, &minute, &used) != 2 || !used)
		return -EINVAL;
	time += used;
	if (*time == ':') {
		if (sscanf(time, ":%2d%n", &second, &used) != 1)
			return -EINVAL;
		time += used;
		fraction_ns = parse_fraction(&time);
	}
	if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
		return -EINVAL;
	tm.tm_hour = hour;
	tm.tm_min = minute;
	tm.tm_sec = second;
	if (!has_date) {
		*out = (struct report_time){TIME_OF_DAY,
					    ((hour * 60ll + minute) * 60 + second) * NS + fraction_ns};
		return *time ? -EINVAL : 0;
	}
	since_1970 = *time == 'Z' ? timegm(&tm) : mktime(&tm);
	if (!is_a_day || since_1970 < 0 || since_1970 >= INT64_MAX / NS)
		return -EINVAL;
	*out = (struct report_time){TIME_AT, since_1970 * NS + fraction_ns};
	return time[*time == 'Z'] ? -EINVAL : 0;
}

int parse_report_time(const char *text, struct report_time *out)
{
	uint64_t ns = 0;

	if (!parse_clock(text, out))
		return 0;
	if (parse_time(text, 0, &ns))
		return -EINVAL;
	*out = (struct report_time){TIME_SINCE, (int64_t)ns};
	return 0;
}

/*
 * That time of the day, so many days after the one that the moment is in. By its fields, since there are days
 * of 23 hours.
 */
static int64_t at_time_of_day(int64_t since_midnight_ns, time_t moment, int days)
{
	int64_t seconds = since_midnight_ns / NS;
	struct tm tm;

	if (!localtime_r(&moment, &tm))
		return 0;
	tm.tm_mday += days;
	tm.tm_hour = (int)(seconds / 3600);
	tm.tm_min = (int)(seconds / 60 % 60);
	tm.tm_sec = (int)(seconds % 60);
	tm.tm_isdst = -1;
	return (int64_t)mktime(&tm) * NS + since_midnight_ns % NS;
}

int64_t report_time__since(const struct report_time *time, uint64_t start_ns)
{
	time_t start_s = (time_t)(start_ns / NS);
	int64_t at = time->ns;

	if (time->kind == TIME_SINCE)
		return at;
	if (time->kind == TIME_OF_DAY) {
		at = at_time_of_day(time->ns, start_s, 0);
		if (at + BEFORE_START_NS < (int64_t)start_ns)
			at = at_time_of_day(time->ns, start_s, 1);
	}
	return at - (int64_t)start_ns;
}
