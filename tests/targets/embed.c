/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A server with Python inside that is not called python: loads LIBPYTHON at run time, so it needs no Python headers.
 *
 *	cc -o embed embed.c -ldl -lpthread
 *	embed LIBPYTHON spin		Python is busy: <string>:<module>;spin
 *	embed LIBPYTHON late SECONDS	busy in C for that long, then loads Python: frames within a second of it
 *	embed LIBPYTHON native		spin, and beside it a thread registered with Python that runs only C:
 *					spin in full, the other thread shown with no Python frames
 *	embed LIBPYTHON two SECOND	spin, and beside it another Python of its own, SECOND, where other() is busy: a
 *					profile of one of them, and the choice is said
 *	embed LIBPYTHON detached	Python is set up, but the only thread has let go of it and waits: no Python code
 *					runs, and the profiler says so
 *
 * PYTHONHOME defaults to the folder above LIBPYTHON's. Ends after PBP_LIMIT (120) seconds.
 */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void *libpython;

static void *symbol(const char *name)
{
	void *found = dlsym(libpython, name);

	if (!found) {
		fprintf(stderr, "embed: no %s: %s\n", name, dlerror());
		exit(1);
	}
	return found;
}

static void *native_thread(void *unused)
{
	int (*ensure)(void) = (int (*)(void))symbol("PyGILState_Ensure");
	void *(*save)(void) = (void *(*)(void))symbol("PyEval_SaveThread");
	volatile unsigned long n = 0;

	ensure();
	save();
	for (;;)
		n++;
	return unused;
}

/* Its symbols are its own: the two know nothing of each other. */
static void *second_python(void *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);

	if (!library) {
		fprintf(stderr, "embed: %s\n", dlerror());
		exit(1);
	}
	((void (*)(void))dlsym(library, "Py_Initialize"))();
	puts("ready");
	fflush(stdout);
	((int (*)(const char *))dlsym(library, "PyRun_SimpleString"))(
		"def other():\n    while True: sum(range(200))\nother()\n");
	return NULL;
}

static void load(const char *path)
{
	char copy[PATH_MAX];

	snprintf(copy, sizeof(copy), "%s", path);
	setenv("PYTHONHOME", dirname(dirname(copy)), 0);
	libpython = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!libpython) {
		fprintf(stderr, "embed: %s\n", dlerror());
		exit(1);
	}
	((void (*)(void))symbol("Py_Initialize"))();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[2] : "spin", *limit = getenv("PBP_LIMIT");
	pthread_t thread;

	if (argc < 2) {
		fprintf(stderr, "usage: embed LIBPYTHON [spin|late SECONDS|native|two SECOND|detached]\n");
		return 2;
	}
	alarm(limit ? atoi(limit) : 120);
	if (!strcmp(mode, "late")) {
		time_t end = time(NULL) + (argc > 3 ? atoi(argv[3]) : 3);

		puts("ready");
		fflush(stdout);
		while (time(NULL) < end)
			;
	}
	load(argv[1]);
	if (strcmp(mode, "late") && strcmp(mode, "two")) {
		puts("ready");
		fflush(stdout);
	}
	if (!strcmp(mode, "detached")) {
		((void *(*)(void))symbol("PyEval_SaveThread"))();
		for (;;)
			pause();
	}
	if (!strcmp(mode, "native") && pthread_create(&thread, NULL, native_thread, NULL))
		return 1;
	if (!strcmp(mode, "two") && pthread_create(&thread, NULL, second_python, argv[3]))
		return 1;
	return ((int (*)(const char *))symbol("PyRun_SimpleString"))(
		"def spin():\n    while True: sum(range(200))\nspin()\n");
}
