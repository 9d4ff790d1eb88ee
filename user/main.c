/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parse, open the outputs, run a session, write. Every way out has its exit code:
 * 0 profile written, 1 failure, 2 usage, 3 not a Python process, 4 not permitted, 5 written, but not of all
 * that was found; that of a command is passed on.
 */
#include "base/log.h"
#include "diff_command.h"
#include "exit_codes.h"
#include "options.h"
#include "os/pidns.h"
#include "out/dump_writer.h"
#include "out/name.h"
#include "outputs.h"
#include "print.h"
#include "py/marker.h"
#include "quit.h"
#include "report_command.h"
#include "run/doctor.h"
#include "run/doctor_process.h"
#include "run/dumper.h"
#include "run/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A recording in progress: what the snapshot on SIGUSR1 needs. */
struct recording {
	const struct options *options;
	struct outputs outputs;
	char *report_name;
	struct output report;
	struct session *session;
};

static int open_outputs(struct recording *recording)
{
	const struct options *options = recording->options;
	struct name_facts facts;
	int err;

	outputs__facts(&facts, options->session.pids.len ? options->session.pids.items[0] : getpid());
	err = outputs__open(&recording->outputs, options, &facts);
	if (err || !options->report)
		return err;
	recording->report_name = name__expand(options->report, &facts);
	if (!recording->report_name)
		return -ENOMEM;
	err = output__open(&recording->report, recording->report_name, NULL);
	if (err)
		log_err("cannot write %s: %s", log_shown(recording->report_name), strerror(-err));
	else if (outputs__have(&recording->outputs, &recording->report))
		err = -EEXIST;
	return err;
}

static void close_outputs(struct recording *recording)
{
	outputs__close(&recording->outputs);
	output__close(&recording->report);
	free(recording->report_name);
}

/* What a command writes to stdout is not to be mixed with ours. */
static int summary_fd(const struct recording *recording)
{
	return recording->options->session.command ? STDERR_FILENO : STDOUT_FILENO;
}

static int print_table(const struct recording *recording)
{
	return print__table(session__profile(recording->session), recording->options->group,
			    recording->options->rows, summary_fd(recording));
}

static void print_report(struct session *session)
{
	struct buf text = {0};

	session__report(session, &text);
	print__lines(&text);
}

/* All files; the code of functions is read before, where it is shown. */
static int write_outputs(struct recording *recording, bool snapshot)
{
	int err = recording->options->session.code ? session__read_code(recording->session) : 0;

	if (err)
		log_err("cannot read the code of the functions: %s", strerror(-err));
	return outputs__write(&recording->outputs, session__profile(recording->session), snapshot) ?: err;
}

static void write_snapshot(void *context)
{
	struct recording *recording = context;

	const struct profile *profile = session__profile(recording->session);
	bool files = outputs__take_snapshots(&recording->outputs);

	/* Where no file is asked for, the table is all there is; what goes to a pipe goes there once. */
	if (!profile->samples || (!files && recording->options->quiet))
		return;
	if (files ? write_outputs(recording, true) : print_table(recording))
		return;
	log_info("snapshot of %llu samples %s", (unsigned long long)profile->samples,
		 files ? "written" : "printed");
}

/* What a Ctrl-C that nobody else takes still has to remove; NULL = nothing. */
static const struct recording *unfinished;

/* No temporary file is left behind. Only what is safe in a signal handler. */
static void clean_up(void)
{
	if (unfinished)
		outputs__unlink_temporary(&unfinished->outputs);
	if (unfinished && unfinished->report.tmp_path)
		unlink(unfinished->report.tmp_path);
	marker__clear_all();
}

static void quit_on_signals(const struct recording *recording)
{
	unfinished = recording;
	quit__on_signals(clean_up);
}

/* Also of a run without samples. */
static int write_report(struct recording *recording)
{
	struct buf text = {0};
	int err;

	if (!recording->report.path)
		return 0;
	session__report_json(recording->session, &text);
	err = output__write_text(&recording->report, &text);
	buf__free(&text);
	if (err == -EPIPE && recording->report.fd == STDOUT_FILENO)
		return 0;
	if (err)
		log_err("cannot write %s: %s", log_shown(recording->report.path), strerror(-err));
	return err;
}

static int refuse_not_python(struct recording *recording)
{
	struct buf text = {0};

	session__explain_not_python(recording->session, &text);
	log_err("%.*s", (int)text.len, text.data ? text.data : "");
	buf__free(&text);
	write_report(recording);
	return session__was_denied(recording->session)	     ? EXIT_NOT_PERMITTED
	       : session__ended_too_soon(recording->session) ? EXIT_FAILED
							     : EXIT_NOT_PYTHON;
}

/* Everything that was sampled, to wherever it was asked for. */
static int finish(struct recording *recording, enum session_end end)
{
	bool failed;

	/* While a command runs, the signals are its business. */
	if (!recording->options->session.command || end == SESSION_END_TARGETS)
		quit_on_signals(recording); /* the second one */
	if (!session__found_python(recording->session))
		return end == SESSION_END_ERROR ? EXIT_FAILED : refuse_not_python(recording);
	if (!session__profile(recording->session)->samples) {
		struct buf text = {0};

		session__explain_empty(recording->session, &text);
		log_err("%.*s", (int)text.len, text.data ? text.data : "");
		buf__free(&text);
		print_report(recording->session);
		write_report(recording);
		return EXIT_FAILED;
	}
	failed = write_outputs(recording, false) != 0;
	failed |= write_report(recording) != 0;
	if (!recording->options->quiet)
		failed |= print_table(recording) != 0;
	print_report(recording->session);
	outputs__tell(&recording->outputs);
	if (failed || end == SESSION_END_ERROR)
		return EXIT_FAILED;
	return session__is_partial(recording->session) ? EXIT_PARTIAL : EXIT_WRITTEN;
}

static int exit_code(enum session_error error)
{
	return error == SESSION_COMMAND_NOT_FOUND ? EXIT_NOT_FOUND
	       : error == SESSION_COMMAND_NOT_RUN ? EXIT_NOT_RUN
	       : error == SESSION_NOT_PYTHON	  ? EXIT_NOT_PYTHON
	       : error == SESSION_NOT_PERMITTED	  ? EXIT_NOT_PERMITTED
						  : EXIT_FAILED;
}

/* What a run that has begun ends with; a command that still runs is waited for, since its code is ours. */
static int run(struct recording *recording)
{
	enum session_end end = session__run(recording->session, write_snapshot, recording);
	int code, command_code = 0;

	if (end == SESSION_END_TARGETS)
		command_code = session__wait_command(recording->session);
	code = finish(recording, end);
	if (end != SESSION_END_TARGETS && recording->options->session.command) {
		log_info("the command goes on%s", session__found_python(recording->session)
							  ? "; its exit code will be passed on"
							  : " and is waited for");
		command_code = session__wait_command(recording->session);
	}
	return command_code && (session__found_python(recording->session) ||
				session__ended_too_soon(recording->session))
		       ? command_code
		       : code;
}

/*
 * Recordings get every sample by itself, and what is told apart in files is told apart in a report of them.
 */
static int start_records(struct recording *recording)
{
	const struct session_config *config = &recording->options->session;
	struct record_apart apart = {.processes = session__is_by_process(recording->session),
				     .containers = config->by == SESSION_BY_CONTAINER,
				     .threads = config->by_thread};
	struct sink *sinks;
	int err = outputs__start(&recording->outputs, session__profile(recording->session), apart, &sinks);

	if (!err && sinks)
		session__give_samples(recording->session, sinks);
	return err;
}

static int record(struct options *options)
{
	struct recording recording = {.options = options, .report.fd = -1};
	enum session_error error;
	int err, code = EXIT_FAILED;

	/* Opening a FIFO waits for its reader. */
	quit_on_signals(&recording);
	err = open_outputs(&recording);
	quit__no_more();
	if (!err) {
		options->session.gives_samples = outputs__record(&recording.outputs);
		options->session.no_profile = options->session.gives_samples && options->quiet &&
					      !outputs__want_profile(&recording.outputs);
		error = session__open(&recording.session, &options->session);
		if (!error && start_records(&recording))
			error = SESSION_FAILED;
		code = error ? exit_code(error) : run(&recording);
	}
	unfinished = NULL;
	session__close(recording.session);
	close_outputs(&recording);
	return code;
}

static int write_dump(const struct options *options, const struct dump *result)
{
	struct dump_style style = {.width = print__width(STDOUT_FILENO),
				   .color = print__wants_color(STDOUT_FILENO)};
	struct buf text = {0};
	int err = options->json ? dump__write_json(result, &text) : dump__write_text(result, &style, &text);

	err = err ?: buf__write_fd(&text, STDOUT_FILENO);
	buf__free(&text);
	if (err && err != -EPIPE)
		log_err("cannot write the dump to stdout: %s", strerror(-err));
	return err && err != -EPIPE ? EXIT_FAILED : EXIT_WRITTEN;
}

static int dump(const struct options *options)
{
	struct dumper_config config = {.pid = options->session.pids.items[0], .locals = options->locals};
	struct dump result;
	int code = EXIT_FAILED;

	if (!dump__init(&result, config.pid)) {
		enum session_error error = dumper__run(&result, &config);

		code = error ? exit_code(error) : write_dump(options, &result);
	}
	dump__free(&result);
	return code;
}

static int doctor_of_process(pid_t pid)
{
	struct buf text = {0};
	enum session_error error = doctor_process__run(pid, &text);
	int err = error ? 0 : buf__write_fd(&text, STDOUT_FILENO);

	buf__free(&text);
	if (err && err != -EPIPE)
		log_err("cannot write to stdout: %s", strerror(-err));
	return error ? exit_code(error) : err && err != -EPIPE ? EXIT_FAILED : EXIT_WRITTEN;
}

/* Of what was printed by stdio: the code, unless it did not get out. */
static int finish_text(int code)
{
	if (!fflush(stdout) && !ferror(stdout))
		return code;
	if (errno == EPIPE)
		return code; /* the reader has seen enough */
	log_err("cannot write to stdout: %s", strerror(errno));
	return EXIT_FAILED;
}

static int doctor_code(enum doctor_verdict verdict)
{
	return verdict == DOCTOR_OK ? 0 : verdict == DOCTOR_NOT_PERMITTED ? EXIT_NOT_PERMITTED : EXIT_FAILED;
}

/*
 * A closed standard descriptor must not become an output file's. Reads and writes still fail, as they would
 * have.
 */
static void occupy_standard_fds(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC) < 0)
			_exit(EXIT_FAILED);
}

/* Whatever is asked of a process goes by its number, in system calls and in /proc. */
static bool numbers_are_right(const struct options *options)
{
	bool needed = options->command == COMMAND_RECORD || options->command == COMMAND_DUMP ||
		      (options->command == COMMAND_DOCTOR && options->session.pids.len);
	const char *fault = needed ? pidns__proc_fault() : NULL;

	if (fault)
		log_err("%s", fault);
	return !fault;
}

static void do_nothing(int signal) {}

/* By a handler, since a command would inherit it if it were ignored. */
static void survive(int signum)
{
	if (signal(signum, do_nothing) == SIG_IGN)
		signal(signum, SIG_IGN);
}

int main(int argc, char **argv)
{
	struct options options;
	int code = EXIT_USAGE;

	occupy_standard_fds();
	/* A closed pipe or a file size limit is an error of the write, not the end of the program. */
	survive(SIGPIPE);
	survive(SIGXFSZ);
	/* Before there is anything that a snapshot could be taken of. */
	survive(SIGUSR1);
	if (options__parse(&options, argc, argv))
		goto out;
	log_set_level(options.verbose ? LOG_DBG : LOG_INFO);
	code = EXIT_FAILED;
	if (!numbers_are_right(&options))
		goto out;
	options.session.progress = isatty(STDERR_FILENO) && !options.session.command;
	switch (options.command) {
	case COMMAND_HELP:
		options__print_help();
		code = finish_text(EXIT_WRITTEN);
		break;
	case COMMAND_VERSION:
		puts("pybpfprof " PYBPFPROF_VERSION);
		code = finish_text(EXIT_WRITTEN);
		break;
	case COMMAND_DOCTOR:
		code = options.session.pids.len ? doctor_of_process(options.session.pids.items[0])
						: finish_text(doctor_code(doctor__run()));
		break;
	case COMMAND_DUMP:
		code = dump(&options);
		break;
	case COMMAND_RECORD:
		code = record(&options);
		break;
	case COMMAND_REPORT:
		code = report_command__run(&options);
		break;
	case COMMAND_DIFF:
		code = diff_command__run(&options);
		break;
	}
out:
	options__free(&options);
	return code;
}
