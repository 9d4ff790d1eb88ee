/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See diff_command.h. Processes and threads have other numbers each time: they are not told apart.
 */
#include "diff_command.h"

#include "base/log.h"
#include "exit_codes.h"
#include "out/diff.h"
#include "out/record_sum.h"
#include "print.h"
#include "quit.h"
#include "report_command.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct differing {
	const struct options *options;
	struct record_sum sums[COMPARE_SIDES];
	struct diff_side sides[COMPARE_SIDES];
	struct compare compare;
	struct output output;
};

/* What Ctrl-C and the like have to remove; NULL: nothing. */
static const struct output *unfinished;

/* Only what is safe in a signal handler. */
static void clean_up(void)
{
	if (unfinished && unfinished->tmp_path)
		unlink(unfinished->tmp_path);
}

/* 0, or -errno, which has been told. */
static int read_side(struct differing *differing, int side)
{
	const char *name = differing->options->reading.files.items[side], *fault = NULL;
	struct record_sum *sum = &differing->sums[side];
	int err = record_sum__init(sum);

	sum->apart_is_set = true;
	if (!err)
		err = report_command__read(sum, name, &fault);
	if (err)
		return err;
	record_sum__finish(sum);
	differing->sides[side] = (struct diff_side){.name = name, .profile = &sum->profile};
	if (profile__total(&sum->profile))
		return 0;
	log_err("%s: no samples", log_shown(name));
	return -ENODATA;
}

static int write_page(struct differing *differing)
{
	struct buf page = {0};
	int err;

	if (!differing->output.path)
		return 0;
	err = diff__page(differing->sides, &differing->compare, &page);
	err = err ?: output__write_text(&differing->output, &page);
	buf__free(&page);
	if (err == -EPIPE && differing->output.fd == STDOUT_FILENO)
		return 0;
	if (err)
		log_err("cannot write %s: %s", log_shown(differing->output.path), strerror(-err));
	return err;
}

static int print_table(const struct differing *differing)
{
	struct summary_style style = {.max_rows = differing->options->rows,
				      .width = print__width(STDOUT_FILENO),
				      .color = print__wants_color(STDOUT_FILENO)};
	struct buf text = {0};
	int err;

	if (differing->options->quiet)
		return 0;
	diff__table(&differing->compare, &style, &text);
	err = buf__write_fd(&text, STDOUT_FILENO);
	buf__free(&text);
	if (err && err != -EPIPE)
		log_err("cannot write the table: %s", strerror(-err));
	return err == -EPIPE ? 0 : err;
}

/* The two have been read. */
static int tell(struct differing *differing)
{
	struct buf head = {0};
	int err = compare__init(&differing->compare, differing->sides[COMPARE_BASE].profile,
				differing->sides[COMPARE_NEW].profile);

	if (err) {
		log_err("cannot compare them: %s", strerror(-err));
		return EXIT_FAILED;
	}
	err = write_page(differing) ?: print_table(differing);
	diff__head(differing->sides, &differing->compare, &head);
	print__lines(&head);
	if (err)
		return EXIT_FAILED;
	if (differing->output.path && differing->output.fd != STDOUT_FILENO)
		log_info("wrote %s%s", log_shown(differing->output.path),
			 differing->output.replaces ? ", in place of the file that was there" : "");
	return differing->sums[COMPARE_BASE].cut_off || differing->sums[COMPARE_NEW].cut_off ? EXIT_PARTIAL
											     : EXIT_WRITTEN;
}

static const char *mode_of(const struct differing *differing, int side)
{
	return log_shown(differing->sums[side].profile.account.mode ?: "not known");
}

static int open_output(struct differing *differing)
{
	const struct options *options = differing->options;
	int err;

	if (!options->outputs.len)
		return 0;
	err = output__open(&differing->output, options->outputs.items[0].path, NULL);
	if (err)
		log_err("cannot write %s: %s", log_shown(options->outputs.items[0].path), strerror(-err));
	return err;
}

int diff_command__run(const struct options *options)
{
	struct differing differing = {.options = options, .output.fd = -1};
	const char *reason;
	int err, code = EXIT_FAILED;

	unfinished = &differing.output;
	quit__on_signals(clean_up);
	err = open_output(&differing);
	for (int i = 0; i < COMPARE_SIDES && !err; i++)
		err = read_side(&differing, i);
	reason = err ? NULL : diff__refuse(differing.sides);
	if (reason) {
		log_err("these two cannot be compared (%s, %s): %s", mode_of(&differing, COMPARE_BASE),
			mode_of(&differing, COMPARE_NEW), reason);
		code = EXIT_USAGE;
	} else if (!err) {
		code = tell(&differing);
	}
	compare__free(&differing.compare);
	for (int i = 0; i < COMPARE_SIDES; i++)
		record_sum__free(&differing.sums[i]);
	unfinished = NULL;
	output__close(&differing.output);
	return code;
}
