/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What every thread of a process does at one moment, as data: made by run/dumper.c, written by
 * out/dump_text.c and out/dump_json.c. All texts are ids of `strings`; names and paths in it are as the
 * target has them, so that a writer has to escape them.
 */
#pragma once

#include "base/strtab.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum dump_run {
	DUMP_RUN_UNKNOWN,
	DUMP_RUNNING,
	DUMP_WAITING,
	DUMP_STOPPED, /* with the process, by a signal or a debugger */
	DUMP_FROZEN,  /* with its cgroup */
};
enum dump_gil { DUMP_GIL_UNKNOWN, DUMP_GIL_NONE, DUMP_GIL_WAITS, DUMP_GIL_HOLDS };
enum dump_exception {
	DUMP_EXCEPTION_UNKNOWN,
	DUMP_EXCEPTION_NONE,
	DUMP_EXCEPTION_RAISED,	/* set, on its way to a handler */
	DUMP_EXCEPTION_HANDLED, /* an except or finally block runs */
};

/* How the reading of a stack came out. */
enum dump_stack {
	DUMP_STACK_READ,
	DUMP_STACK_EMPTY,      /* the thread runs no Python code */
	DUMP_STACK_CHANGING,   /* it changed during every reading: there are no frames */
	DUMP_STACK_UNREADABLE, /* it leads to memory that cannot be read: there are no frames */
};

struct dump_local {
	uint32_t name;
	uint32_t value; /* safe to print as it is (py/value.h) */
	bool argument;
	bool changed; /* was another at the reading before */
};

struct dump_frame {
	uint32_t function;   /* qualified name, or a text in brackets that says why there is none */
	uint32_t file;	     /* 0: not known */
	uint32_t line;	     /* executing line; 0: not known */
	bool approximate;    /* ... but may be a former one: the code is one that the JIT made */
	uint32_t first_line; /* 0: not known */
	uint32_t source;     /* that line of the file, without its indentation; 0: not there */
	bool from_c;	     /* called by C code, and not by the next frame directly */
	bool collects;	     /* started the garbage collection that runs */
	bool has_locals;     /* they were asked for and could be read */
	size_t first_local, local_count; /* in the thread's locals */
};

struct dump_thread {
	pid_t tid;	   /* as this process numbers it; 0: cannot be told */
	uint64_t inner_id; /* ... and its own pid namespace; 0: not known */
	uint64_t ident;	   /* threading.get_ident() */
	uint32_t name;
	bool name_is_python; /* threading's, else the kernel's */
	bool main;	     /* the process's first thread */
	enum dump_run run;
	const char *wait; /* the system call that it waits in; static; NULL: none or not known */
	enum dump_gil gil;
	enum dump_exception exception;
	bool collects;
	enum dump_stack stack;
	bool consistent;	       /* two successive readings agree */
	bool truncated;		       /* the base of the stack is cut off */
	VEC(struct dump_frame) frames; /* innermost first */
	VEC(struct dump_local) locals;
};

struct dump_interpreter {
	int64_t id;
	bool collecting;		 /* garbage */
	VEC(struct dump_thread) threads; /* the main thread first, then by id */
};

/* A thread that runs no Python code and never did, as far as CPython knows. */
struct dump_native {
	pid_t tid;
	pid_t inner_id; /* in its own pid namespace; 0: the same, or not known */
	uint32_t name;
	enum dump_run run;
	const char *wait;
};

struct dump {
	struct strtab *strings;
	pid_t pid;
	pid_t inner_pid; /* in its own pid namespace; 0: the same, or not known */
	uint32_t command;
	uint32_t halted;  /* what keeps it from running, safe to print; 0: nothing */
	char version[24]; /* of Python */
	bool with_locals;
	bool locals_known; /* those of this version can be read */
	uint32_t readings;
	bool consistent;			   /* all threads are */
	VEC(struct dump_interpreter) interpreters; /* by id */
	VEC(struct dump_native) natives;
};

/* 0 or -ENOMEM; free in either case. */
int dump__init(struct dump *dump, pid_t pid);
void dump__free(struct dump *dump);
void dump_thread__free(struct dump_thread *thread);

/* Number of threads in all interpreters. */
size_t dump__thread_count(const struct dump *dump);
