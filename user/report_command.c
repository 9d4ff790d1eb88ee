/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See report_command.h. Recordings are anybody's: their texts are escaped, as in every output.
 */
#include "report_command.h"

#include "base/log.h"
#include "base/util.h"
#include "exit_codes.h"
#include "options_values.h"
#include "out/name.h"
#include "out/record_sum.h"
#include "outputs.h"
#include "print.h"
#include "quit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NS_OF_S	  1000000000ll
#define NS_OF_DAY (24 * 3600 * NS_OF_S)

#define WAITS_TOLD 8

struct reading {
	const struct options *options;
	struct record_sum sum;
	struct outputs outputs;
	bool failed;
};

/* What Ctrl-C and the like have to remove; NULL: nothing. */
static const struct outputs *unfinished;

/* Only what is safe in a signal handler. */
static void clean_up(void)
{
	if (unfinished)
		outputs__unlink_temporary(unfinished);
}

/* --- reading --- */

/* When it is known when the recording began. */
static int begin(struct record_sum *sum, void *context)
{
	struct reading *reading = context;
	const struct report_options *options = &reading->options->reading;
	uint64_t start_ns = sum->profile.start_realtime_ns;

	sum->filter.has_from = options->from.kind != TIME_NONE;
	sum->filter.has_to = options->to.kind != TIME_NONE;
	sum->filter.from_ns = report_time__since(&options->from, start_ns);
	sum->filter.to_ns = report_time__since(&options->to, start_ns);
	/* Recordings that are written from it say times as it does. */
	sum->profile.start_ns = NS_OF_DAY;
	reading->outputs.settled = true;
	reading->outputs.host = strtab__get(sum->profile.strings, sum->host);
	return outputs__start(&reading->outputs, &sum->profile, sum->apart, &sum->sink);
}

static int open_file(const char *name)
{
	int fd = strcmp(name, "-") ? open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY) : dup(STDIN_FILENO);

	return fd < 0 ? -errno : fd;
}

static const char *reason(int err)
{
	return err == -EINVAL	 ? "it is no recording (.pbp)"
	       : err == -E2BIG	 ? "it has more in it than can be"
	       : err == -ENOTSUP ? "it is a recording of another version of this program"
				 : strerror(-err);
}

int report_command__read(struct record_sum *sum, const char *name, const char **fault)
{
	int fd = open_file(name), err = fd < 0 ? fd : record_sum__add(sum, fd, fault);

	if (err)
		log_err("cannot read %s: %s", log_shown(name), reason(err));
	else if (*fault)
		log_warn("%s: %s; %s", log_shown(name), *fault,
			 sum->is_left_out ? "it is left out" : "what is there up to that is shown");
	return err;
}

/* The same file, by whatever name. */
static bool is_same(const char *name, const char *other)
{
	struct stat a, b;

	if (!strcmp(name, other))
		return true;
	return !stat(name, &a) && !stat(other, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static void read_file(struct reading *reading, size_t number)
{
	const char *const *names = reading->options->reading.files.items, *name = names[number];
	const char *fault = NULL;

	for (size_t i = 0; i < number; i++)
		if (is_same(names[i], name)) {
			log_warn("%s: it is named twice, and counts once", log_shown(name));
			return;
		}
	reading->failed |= report_command__read(&reading->sum, name, &fault) != 0;
}

/* --- what is said --- */

static void add_text(struct buf *out, const char *text)
{
	buf__add_escaped(out, text ?: "", NULL);
}

static void add_clock(struct buf *out, uint64_t realtime_ns)
{
	time_t seconds = (time_t)(realtime_ns / NS_OF_S);
	char text[40];
	struct tm tm;

	if (localtime_r(&seconds, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
		buf__adds(out, text);
}

static void add_head(const struct reading *reading, struct buf *out)
{
	const struct record_sum *sum = &reading->sum;
	const struct profile *profile = &sum->profile;
	const char *host = strtab__get(profile->strings, sum->host);

	if (profile->unit == PROFILE_TIME)
		buf__addf(out, "%.3f s", (double)profile__total(profile) / 1e9);
	else
		buf__addf(out, "%" PRIu64 " sample%s", profile->samples, plural(profile->samples));
	buf__adds(out, " of ");
	if (profile->account.processes == 1 && profile->command && *profile->command)
		buf__adds(out, profile->command); /* escaped by who records, or made harmless by who reads */
	else
		buf__addf(out, "%" PRIu64 " process%s", profile->account.processes,
			  profile->account.processes == 1 ? "" : "es");
	buf__addf(out, " in %.1f s", (double)profile->duration_ns / 1e9);
	if (profile->start_realtime_ns) { /* not so where it was cut off before that */
		buf__adds(out, " from ");
		add_clock(out, profile->start_realtime_ns);
	}
	if (*host) {
		buf__adds(out, " on ");
		add_text(out, host);
	}
	if (profile->account.engine) {
		buf__adds(out, " by the ");
		add_text(out, profile->account.engine);
		buf__adds(out, " engine");
	}
	buf__adds(out, " (");
	add_text(out, profile->account.end ?: "its end is not known");
	buf__adds(out, ")\n");
}

static void add_part(const struct reading *reading, struct buf *out)
{
	const struct record_filter *filter = &reading->sum.filter;

	if (!record_filter__is_set(filter))
		return;
	buf__addf(out, "  part       of %" PRIu64 " samples:", reading->sum.all_samples);
	record_filter__tell(filter, out);
	buf__adds(out, "\n");
}

static void add_count(struct buf *out, uint64_t count, const char *text)
{
	if (count)
		buf__addf(out, ", %" PRIu64 " %s", count, text);
}

static void add_samples(const struct reading *reading, struct buf *out)
{
	const struct profile *profile = &reading->sum.profile;
	const struct account *account = &profile->account;

	buf__addf(out,
		  "  samples    %" PRIu64 " taken, %" PRIu64 " lost%s, %" PRIu64 " truncated, %" PRIu64
		  " unverified",
		  profile->samples, account->lost,
		  record_filter__is_set(&reading->sum.filter) && account->lost ? " (of all)" : "", account->truncated,
		  account->unverified);
	add_count(out, account->code_freed, "with code freed before it was read");
	add_count(out, account->exited, "of processes that ended before all was read");
	add_count(out, account->line_unknown, "with a caller's line unknown");
	add_count(out, account->beyond_size_limit, "beyond the profile's size limit");
	buf__addf(out, ", %" PRIu64 " without Python frames\n", account->without_python);
}

/* "[sleep]" without its brackets. */
static void add_reason(struct buf *out, const char *text)
{
	size_t len = strlen(text);
	char *bare = len > 2 && *text == '[' ? strndup(text + 1, len - 2) : NULL;

	add_text(out, bare ?: text);
	free(bare);
}

/* Of a profile of time: what it was spent on, most first. */
static void add_time(const struct profile *profile, struct buf *out)
{
	uint64_t on_cpu = profile__total(profile);
	struct profile_waits waits;
	const char *comma = "";

	if (profile->unit != PROFILE_TIME)
		return;
	out->err = profile__waits(profile, &waits) ?: out->err;
	for (size_t i = 0; i < waits.items.len; i++)
		on_cpu -= waits.items.items[i].time_ns;
	buf__adds(out, "  time       ");
	/* Of time off the CPU, or with a GIL, nothing is left. */
	if (on_cpu || !waits.items.len) {
		buf__addf(out, "%.3f s on the CPU", (double)on_cpu / 1e9);
		comma = ", ";
	}
	for (size_t i = 0; i < waits.items.len && i < WAITS_TOLD; i++, comma = ", ") {
		buf__addf(out, "%s%.3f s ", comma, (double)waits.items.items[i].time_ns / 1e9);
		add_reason(out, strtab__get(profile->strings, waits.items.items[i].reason));
	}
	buf__adds(out, "\n");
	profile_waits__free(&waits);
}

static void add_state(const struct record_sum *sum, struct buf *out)
{
	double whole = (double)sum->on_cpu / 100;

	if (sum->on_cpu)
		buf__addf(out,
			  "  state      %.1f%% holding the GIL or attached, %.1f%% collecting garbage, "
			  "%.1f%% with an "
			  "exception set, %.1f%% in the kernel\n",
			  (double)sum->attached / whole, (double)sum->collecting / whole,
			  (double)sum->raising / whole, (double)sum->in_kernel / whole);
}

static void print_account(const struct reading *reading)
{
	struct buf text = {0};

	add_head(reading, &text);
	add_part(reading, &text);
	add_samples(reading, &text);
	add_time(&reading->sum.profile, &text);
	add_state(&reading->sum, &text);
	print__lines(&text);
}

/* --- all of it --- */

static int finish(struct reading *reading)
{
	const struct options *options = reading->options;
	const struct profile *profile = &reading->sum.profile;
	bool failed = reading->failed;

	if (!reading->sum.files)
		return EXIT_FAILED;
	record_sum__finish(&reading->sum);
	if (!profile->samples && !profile__total(profile)) {
		print_account(reading);
		log_err("no samples%s",
			record_filter__is_set(&reading->sum.filter) ? " in that part of the recording" : "");
		return EXIT_FAILED;
	}
	failed |= outputs__write(&reading->outputs, profile, false) != 0;
	if (!options->quiet)
		failed |= print__table(profile, options->group, options->rows, STDOUT_FILENO) != 0;
	print_account(reading);
	outputs__tell(&reading->outputs);
	return failed ? EXIT_FAILED : reading->sum.cut_off ? EXIT_PARTIAL : EXIT_WRITTEN;
}

int report_command__run(const struct options *options)
{
	const struct report_options *wanted = &options->reading;
	struct reading reading = {.options = options};
	struct name_facts facts;
	int err, code = EXIT_FAILED;

	outputs__facts(&facts, getpid());
	unfinished = &reading.outputs;
	quit__on_signals(clean_up);
	err = record_sum__init(&reading.sum) ?: outputs__open(&reading.outputs, options, &facts);
	for (size_t i = 0; i < wanted->files.len && !err; i++)
		err = outputs__replace(&reading.outputs, wanted->files.items[i]) ? -EEXIST : 0;
	reading.sum.filter = (struct record_filter){.pids = options->session.pids.items,
						    .pid_count = options->session.pids.len,
						    .threads = wanted->threads.items,
						    .thread_count = wanted->threads.len,
						    .functions = wanted->functions.items,
						    .function_count = wanted->functions.len};
	reading.sum.apart_is_set = wanted->apart_is_set;
	reading.sum.apart = wanted->apart;
	reading.sum.adds_threads = wanted->adds_threads;
	reading.sum.begin = begin;
	reading.sum.context = &reading;
	for (size_t i = 0; i < wanted->files.len && !err; i++)
		read_file(&reading, i);
	if (!err)
		code = finish(&reading);
	unfinished = NULL;
	outputs__close(&reading.outputs);
	record_sum__free(&reading.sum);
	return code;
}
