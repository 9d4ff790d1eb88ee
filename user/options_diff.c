/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options of `diff`.
 */
#include "options_parts.h"

#include <getopt.h>
#include <string.h>

static const struct option LONG_OPTIONS[] = {
	{"output", required_argument, NULL, 'o'},
	{"limit", required_argument, NULL, 'l'},
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{0},
};

static bool is_page(const char *path)
{
	size_t len = strlen(path);

	return !strcmp(path, "-") || (len > 5 && !strcmp(path + len - 5, ".html"));
}

static int take_option(struct options *options, int option, const char *value)
{
	if (option != 'o')
		return take_common_option(options, option, value, NULL);
	if (!is_page(value))
		return bad_value("-o", value, "a page, with a name that ends in .html, or - for stdout");
	if (options->outputs.len)
		return refuse("-o twice: there is one page");
	options->quiet |= !strcmp(value, "-");
	return vec__push(&options->outputs, ((struct output_option){.path = value}));
}

int options_parse_diff(struct options *options, int argc, char **argv)
{
	int option, err = 0;

	opterr = 0;
	optind = 0;
	while (!err && (option = getopt_long(argc, argv, "-:o:l:qvhV", LONG_OPTIONS, NULL)) != -1) {
		if (option == '?' || option == ':')
			return refuse_word(option, argv[optind - 1]);
		err = option == 1 ? vec__push(&options->reading.files, optarg)
				  : take_option(options, option, optarg);
	}
	if (err || options->command == COMMAND_HELP || options->command == COMMAND_VERSION)
		return err;
	for (; optind < argc && !err; optind++)
		err = vec__push(&options->reading.files, argv[optind]);
	if (!err && options->reading.files.len != 2)
		return refuse("which two recordings? diff BASE.pbp NEW.pbp (--help explains)");
	return err;
}
