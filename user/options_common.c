/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the options of all commands have in common: those that say what is written and printed, and what is
 * said of mistakes.
 */
#include "options_parts.h"

#include "base/log.h"
#include "options_values.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

int bad_value(const char *option, const char *value, const char *want)
{
	log_err("%s %s: %s", option, log_shown(value), want);
	return -EINVAL;
}

int refuse(const char *text)
{
	log_err("%s", text);
	return -EINVAL;
}

/* What getopt would say, which prints words as they are. A long option has no letter, unless it is known. */
int refuse_word(int option, const char *word)
{
	char letter[3] = {'-', (char)optopt};
	bool is_long = !strncmp(word, "--", 2);

	if (option == ':')
		log_err("%s: it needs a value (--help explains)", log_shown(is_long ? word : letter));
	else if (is_long && optopt)
		log_err("%s: it takes no value (--help explains)", log_shown(word));
	else
		log_err("%s: there is no such option, or several begin so (--help lists them)",
			log_shown(is_long ? word : letter));
	return -EINVAL;
}

int take_common_option(struct options *options, int option, const char *value, const struct writer **format)
{
	long number;

	switch (option) {
	case 'o':
		return *value ? vec__push(&options->outputs, ((struct output_option){.path = value}))
			      : bad_value("-o", value, "a file name, or - for stdout");
	case OPTION_FORMAT:
		*format = writer__by_name(value);
		return *format ? 0 : bad_value("--format", value, "unknown format; --help lists them");
	case OPTION_LINE:
		options->group = GROUP_LINE;
		return 0;
	case 'l':
		if (parse_number(value, 1, 1000000, &number))
			return bad_value("-l", value, "a number of rows, from 1 to 1000000");
		options->rows = (unsigned int)number;
		return 0;
	case 'q':
		options->quiet = true;
		return 0;
	case 'v':
		options->verbose = true;
		return 0;
	case 'h':
		options->command = COMMAND_HELP;
		return 0;
	case 'V':
		options->command = COMMAND_VERSION;
		return 0;
	}
	return -EINVAL;
}

/* For a name that has no suffix at all; a suffix that means nothing here is more likely a mistake. */
static const struct writer *default_writer(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strchr(slash ? slash : path, '.') ? NULL : writer__by_name("collapsed");
}

int choose_writers(struct options *options, const struct writer *format)
{
	size_t streams = 0;

	for (size_t i = 0; i < options->outputs.len; i++) {
		struct output_option *output = &options->outputs.items[i];

		output->writer = format ? format : writer__by_path(output->path);
		if (!output->writer)
			output->writer = default_writer(output->path);
		/* Two formats in one stream would be neither. */
		options->quiet |= !strcmp(output->path, "-");
		streams += !strcmp(output->path, "-");
		if (!output->writer) {
			log_err("-o %s: the suffix names no format; use --format (--help lists them)",
				log_shown(output->path));
			return -EINVAL;
		}
		options->session.code |= output->writer->shows_code;
		if (!strcmp(output->path, "-") && options->report && !strcmp(options->report, "-"))
			return refuse("-o - and --report -: stdout takes one of them");
	}
	if (format && !options->outputs.len)
		return refuse("--format is for -o: without it no file is written");
	if (streams > 1)
		return refuse("-o - twice: stdout takes one profile");
	options->quiet |= options->report && !strcmp(options->report, "-");
	return 0;
}
