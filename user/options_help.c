/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What --help prints. The formats are the writers' own words.
 */
#include "options.h"

#include <stdio.h>

static const char HELP_HEAD[] =
	"Usage: pybpfprof [record] -p PID[,PID...] [-s] [-d TIME] [-r HZ] [-o FILE]...\n"
	"       pybpfprof [record] -a | --container NAME | --cgroup PATH [options]\n"
	"       pybpfprof [record] [options] -- COMMAND [ARG...]\n"
	"       pybpfprof report FILE.pbp... [-o FILE]... [options]\n"
	"       pybpfprof dump -p PID [--json] [--locals]\n"
	"       pybpfprof doctor [-p PID]\n"
	"\n"
	"Where does a running Python process spend its time? Samples its stacks on the\n"
	"CPU clock, without stopping it, and prints a table. CPython 3.8 to 3.15, x86-64.\n"
	"As root, or with CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, on Linux 5.15 and later\n"
	"by BPF; else by reading the memory of processes of the same user.\n"
	"\n"
	"  -p, --pid PID[,PID...]  processes to profile, all their threads\n"
	"  -- COMMAND [ARG...]     start that and profile it from its first frame to its\n"
	"                          end; its exit code is passed on, the table goes to\n"
	"                          stderr. Under sudo it is run as who called sudo\n"
	"      --as-root           ... or as root\n"
	"  -s, --subprocesses      and what those processes start, and what that starts\n"
	"  -a, --all               every Python process that there is, or starts\n"
	"      --container NAME    every Python process in a container, by its name or id\n"
	"                          (its beginning will do), or in a pod, by its UID; may\n"
	"                          be given several times\n"
	"      --cgroup PATH       every one in a cgroup and in those below, v1 or v2: a\n"
	"                          directory, or the end of a path; may be given several\n"
	"                          times\n"
	"      --exclude PATTERN   where processes are found: none that has this in its\n"
	"                          command line. PATTERN is one of a shell (*, ?, [a-z]),\n"
	"                          here of any part\n"
	"      --comm PATTERN      ... only those whose name (as ps -o comm has it) is\n"
	"                          that, as a whole: 'python3*', gunicorn\n"
	"      --user NAME         ... only those of that user, by name or number; of\n"
	"                          several of these three any counts\n"
	"      --by NAME           process: tell processes apart (the default where there\n"
	"                          may be several); container: tell containers apart;\n"
	"                          merged: all as one\n"
	"      --mode NAME         cpu (default): time on the CPU, by samples. offcpu:\n"
	"                          off it, every wait with its length and reason. wall:\n"
	"                          all the time of all threads. With these two, files\n"
	"                          have microseconds in place of samples\n"
	"      --idle NAME         hide: with these, leave out what pools, event loops\n"
	"                          and servers wait for work; show (default)\n"
	"  -d, --duration TIME     30, 30s, 2m, 1h, 500ms (1 ms to a year); without it\n"
	"                          until Ctrl-C or until the processes end\n"
	"  -r, --rate HZ           samples per second of CPU time: 99, 1000, 10k\n"
	"                          (default 99, at most 20k; readv engine 1000k)\n"
	"  -o, --output FILE       write the profile; may be given several times, the\n"
	"                          suffix chooses the format; - is stdout, without the\n"
	"                          table then. %p in it is the PID, %t the time, %h the\n"
	"                          host; a file that is there is replaced\n"
	"      --format NAME       the format of every -o, whatever its suffix\n"
	"                          (without one: collapsed)\n"
	"      --rotate SIZE|TIME  recordings (.pbp): another file whenever one is so\n"
	"                          large (100M) or long (10m, 1h): x.0001.pbp, ...\n"
	"      --keep N            ... of which only the last N stay\n"
	"      --line              group by executing line (default)\n"
	"      --function          group by function\n"
	"  -t, --threads           tell threads apart, by id and by the name that the\n"
	"                          kernel knows (Python gives it from 3.14 on)\n"
	"  -l, --limit ROWS        rows of the table (default 15)\n"
	"  -q, --quiet             no table\n"
	"  -v, --verbose           say what is found and done, and time the kernel side\n"
	"      --engine NAME       bpf: sampled in the kernel. readv: read from outside,\n"
	"                          without BPF; needs only the right to read the memory\n"
	"                          of the process (the same user). auto (default): bpf if\n"
	"                          permitted\n"
	"      --blocking          readv engine: stop each thread while its stack is\n"
	"                          read; it stops where it next leaves the kernel, so\n"
	"                          system calls get too large a share\n"
	"      --frame-marker      readv engine, Python 3.15: let the interpreter tell\n"
	"                          which frames are new, so that deep stacks cost less.\n"
	"                          Writes 8 bytes into each thread's state, taken back at\n"
	"                          the end\n"
	"      --report FILE       the end report as JSON, with all statistics; - is\n"
	"                          stdout, without the table then; %p, %t, %h as in -o\n"
	"      --stats             tell what was read and what the caches did\n"
	"      --kernel-frames N   frames walked in the kernel at most (default: 1 % of a\n"
	"                          CPU's time at the rate); deeper stacks are completed\n"
	"                          from user space\n"
	"  -h, --help              this text\n"
	"      --version\n"
	"\n"
	"report prints the table of a recording (-o x.pbp; of several files of one in\n"
	"their order), and writes it in any format; -o, --format, -t, -l, -q as above:\n"
	"      --from, --to TIME   what lies between: seconds since the start, 2m, or a\n"
	"                          clock time, 13:05:30 or 2026-11-30T13:05:30Z\n"
	"      --thread NAME       a thread, by its id or name; NAME and FUNCTION may be\n"
	"                          patterns of a shell (*, ?, [a-z])\n"
	"  -p, --pid PID           a process\n"
	"      --function FUNCTION samples with that function on the stack, by its\n"
	"                          qualified name or the last part of that\n"
	"      --by NAME           line (default) or function: what a row is; process,\n"
	"                          container, thread: tell apart; merged: nothing\n"
	"\n"
	"dump prints what every thread does now, the innermost function first. It needs\n"
	"only the right to read the process's memory (the same user, or root):\n"
	"      --json              for programs\n"
	"      --locals            values of arguments and variables, too\n"
	"\n"
	"doctor says what this machine and user can do; with -p, what was found of that\n"
	"process and what can be told of it.\n"
	"\n"
	"Formats:\n";

static const char HELP_TAIL[] =
	"\n"
	"SIGUSR1 writes the files with what there is so far; without any, it prints the\n"
	"table. Exit codes: 0 profile written, 1 failure or no samples, 2 usage, 3 no\n"
	"Python that can be profiled, 4 not permitted, 5 written, but some of what -s,\n"
	"-a, --cgroup or --container found could not be profiled, or a recording is not\n"
	"whole. With a COMMAND: its own, 128 + N if signal N killed it; 127 it was not\n"
	"found, 126 it could not be run.\n";

void options__print_help(void)
{
	const struct writer *const *writers = writer__all();

	fputs(HELP_HEAD, stdout);
	for (; *writers; writers++) {
		printf("  %-11s %s\n             ", (*writers)->name, (*writers)->help);
		for (const char *const *suffix = (*writers)->suffixes; *suffix; suffix++)
			printf(" %s", *suffix);
		putchar('\n');
	}
	fputs(HELP_TAIL, stdout);
}
