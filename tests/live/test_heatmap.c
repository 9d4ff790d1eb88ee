/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The code in a heatmap: read as the target sees its files and with its rights, also when it is over by then,
 * and nothing that it may not read, whatever names it gives. The page itself: test_formats.c.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char page[CHILD_PATH];

#define TRIES	4
#define SAMPLES 300 /* so that each of a dozen files has some */

/* The page of a run that has to succeed; a longer one, if the machine is busy. */
static const char *heatmap_of(struct target *target)
{
	char pid[16], duration[16];
	double seconds = 0.7;
	struct run *run;

	snprintf(pid, sizeof(pid), "%d", target->pid);
	snprintf(page, sizeof(page), "%s/x.heatmap.html", scratch_folder(""));
	for (int i = 0; i < TRIES; i++, seconds *= 2) {
		snprintf(duration, sizeof(duration), "%.1f", seconds);
		run = profiler_run("-p", pid, "-d", duration, "-r", "499", "-q", "-o", page);
		check(run->code == 0, "exit code %d", run->code);
		if (run->report.samples >= SAMPLES)
			return read_text(page);
	}
	check(false, "only %.0f samples", run->report.samples);
	return NULL;
}

/* The words of its code as JSON has them. */
static void check_code(const char *text, const char *words, bool is_there)
{
	check(!strstr(text, words) == !is_there, "%s is %sthere", words, is_there ? "not " : "");
}

/* What is said of the code of a file. */
static void check_note(const char *text, const char *name, const char *note)
{
	char key[CHILD_PATH + 32];
	const char *at, *found;

	snprintf(key, sizeof(key), "{\"name\":\"%s\"", name);
	at = strstr(text, key);
	check(at, "no file %s", name);
	found = strstr(at, "\"note\":");
	check(found && !strncmp(found + 7, note, strlen(note)), "%s: %.200s", name, at);
}

/* A file in the folder of the target's program, as it names it. */
static const char *beside(const struct target *target, const char *name)
{
	static char path[CHILD_PATH + 32];

	snprintf(path, sizeof(path), "%.*s%s", (int)(strrchr(target->file, '/') + 1 - target->file),
		 target->file, name);
	return path;
}

/* Of a file whose name has a byte that is no UTF-8, too. */
LIVE_TEST(heatmap, code)
{
	struct target *target = start(pick("3.15", "debian"), "spin.py", .rename = "b\377d.py");
	const char *text = heatmap_of(target);

	check_note(text, beside(target, "b\\\\xffd.py"), "null");
	check_code(text, "\"    while True: sum(range(200))  # HOT\"", true);
	check_code(text, "\"def middle():\"", true);
}

/* Its own files are there; those of others are not, whatever it calls its code. */
static const char stranger[] =
	"import os, sys\n"
	"folder = os.path.dirname(__file__)\n"
	"if not os.getuid():\n"
	"    os.setgroups([])\n"
	"    os.setgid(65534)\n"
	"    os.setuid(65534)\n"
	"    os.execv(sys.executable, [sys.executable, __file__])\n"
	"names = ['/etc/shadow', folder + '/private/open.py', folder + '/closed.py',\n"
	"         folder + '/fifo', '/proc/self/environ', '/dev/zero', folder,\n"
	"         folder + '/../../../../../../..' + folder + '/closed.py', '<string>',\n"
	"         'none.py', 'x\\ny', 'z' * 10000]\n"
	"code = 'def f():\\n    for i in range(3000): pass\\nf()\\n'\n"
	"codes = [compile(code, name, 'exec') for name in names]\n"
	"print('ready', flush=True)\n"
	"while True:\n"
	"    for c in codes: exec(c, {})\n";

LIVE_TEST(heatmap, hostile_names)
{
	struct target *target = start(pick("3.15", "debian"), "stranger.py", .text = stranger);
	char path[CHILD_PATH + 32];
	const char *text;

	snprintf(path, sizeof(path), "%s/private", target->folder);
	check(!mkdir(path, 0700), "mkdir");
	strcat(path, "/open.py");
	write_file(path, "secret of a folder\n");
	snprintf(path, sizeof(path), "%s/closed.py", target->folder);
	write_file(path, "secret of a file\n");
	check(!chmod(path, 0600), "chmod");
	snprintf(path, sizeof(path), "%s/fifo", target->folder);
	check(!mkfifo(path, 0644), "mkfifo");
	text = heatmap_of(target);
	check_code(text, "secret of", false);
	check_code(text, "root:", false);
	check_code(text, "SUDO_", false);
	check_code(text, "PATH=", false);
	check_note(text, "/etc/shadow",
		   "\"No code: the user that the process runs as may not read the file.\"");
	check_note(text, "/proc/self/environ", "\"No code:");
	check_note(text, "/dev/zero", "\"No code: this is no text.\"");
	check_note(text, "none.py", "\"No code: the process has no file of this name.\"");
	check_note(text, "\\u003cstring>", "\"No file:");
	check_note(text, beside(target, "private/open.py"), "\"No code: the user");
	check_note(text, beside(target, "closed.py"), "\"No code: the user");
	check_note(text, beside(target, "fifo"), "\"No code: this is no text.\"");
	check_note(text, target->file, "null");
	check_code(text, "\"codes = [compile(code, name, 'exec') for name in names]\"", true);
}

/* Of a command that is over there is code, too; and what came there since is said to be, however old it is. */
LIVE_TEST(heatmap, of_a_command)
{
	const char *folder = scratch_folder("");
	char program[CHILD_PATH];
	struct run *run;
	const char *text;

	snprintf(program, sizeof(program), "%s/brief.py", folder);
	write_file(program, "import os, time\n"
			    "def work():\n"
			    "    for i in range(8000000): pass\n"
			    "time.sleep(0.1)\n"
			    "open(__file__ + '~', 'w').write(open(__file__).read() + '# more\\n')\n"
			    "os.utime(__file__ + '~', (1e9, 1e9))\n"
			    "os.replace(__file__ + '~', __file__)\n"
			    "work()\n");
	snprintf(page, sizeof(page), "%s/x.heatmap.html", folder);
	run = profiler_run("-r", "499", "-q", "-o", page, "--", "python3", program);
	check(run->code == 0, "exit code %d", run->code);
	text = read_text(page);
	check_note(text, program, "\"The file was changed after the process began:");
	check_code(text, "\"    for i in range(8000000): pass\"", true);
}
