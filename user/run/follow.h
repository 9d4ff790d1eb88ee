/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which processes are profiled, and what happens to them: found, forked, another program after an exec,
 * ended. Those that the user asked for by number have to be Python. Those that are found may be anything:
 * what is not Python is followed (it may start one, or become one) but not profiled, and counted.
 */
#pragma once

#include "base/strtab.h"
#include "os/filter.h"
#include "run/containers.h"
#include "run/engine.h"
#include "run/processes.h"
#include "run/scope.h"
#include "run/strangers.h"
#include "run/symbolize.h"
#include "run/waits.h"

#include <stdbool.h>
#include <stdint.h>

struct follow_config {
	bool subprocesses;    /* of those that were asked for, and theirs */
	bool command;	      /* one was started by us */
	bool all;	      /* every process of the machine */
	struct scope *scope;  /* all that is in these cgroups; borrowed; NULL: it is not about cgroups */
	struct containers *containers; /* which one a Python is in is looked up; borrowed; NULL: it is not */
	struct filter filter; /* of those that are found */
	bool no_slot;	      /* for tests: see struct process */
};

#define FOLLOW_NAMED_MAX 4

struct follow_number {
	pid_t pid;
	uint32_t looks;
};

struct follower {
	struct follow_config config;
	struct processes processes;
	VEC(struct follow_number) late; /* without BPF: given out, and nobody's so far */
	VEC(pid_t) unseen;	    /* found by a pass over everything, and not looked at yet */
	struct strangers strangers; /* what called exec a moment ago; without BPF, what was no Python */
	struct engine *engine; /* borrowed, as the next three */
	struct symbolizer *symbolizer;
	struct waits *waits;
	struct strtab *strings;
	int epoll_fd;
	pid_t last_pid; /* without BPF: tasks up to this one are known */
	uint64_t poll_ns, retry_ns, sweep_ns, scan_ns; /* when each is due; of those that wait, the first */
	uint64_t names_ns; /* ... the next look for a name of a forked process */
	uint32_t polls;
	uint64_t scope_ns; /* without BPF: when to look for what was moved */
	uint64_t left;	   /* Pythons that were moved out of the cgroups */
	uint64_t cpu_ns;   /* without BPF: when CPU times are to be looked at again */
	uint64_t lost;					  /* records of processes, as of the last scan */
	uint64_t denied, unsupported, unopened, excluded; /* processes that were found and are not profiled */
	uint64_t beyond;      /* ... since there are too many: the most of one pass */
	uint64_t beyond_now;  /* ... in the last one, and since */
	uint64_t denied_pythons;			  /* of the denied ones, by their names ... */
	char denied_names[FOLLOW_NAMED_MAX * 192];	  /* ... of which these are the first */
	char unsupported_first[512];			  /* of the unsupported ones, and why */
	uint64_t cpu_unknown; /* processes that were gone before their last CPU time was read */
	bool unwatched;	      /* there are processes without a pidfd */
	bool settled;	      /* all that was there at the start has been looked at */
	int err;	      /* out of memory and the like: the end of the run */
};

/* What epoll reports of a process is its address; smaller numbers are the caller's. */
#define FOLLOW_WATCH_MIN 4096

/* Watches the end of a process that the caller has opened, and takes it over. 0 or -errno, and it is the
 * caller's. */
int follower__take(struct follower *follower, struct process *process);
/* Looks for processes that there are already: to be called once those are sampled that start them. */
void follower__scan(struct follower *follower);

/* One that was there already, if it is not known yet. */
void follower__add_found(struct follower *follower, pid_t pid);

/* What a record of the engine says (all that are of struct pbp_process but PBP_BIRTH). */
void follower__handle(struct follower *follower, const struct pbp_process *record);
/* It has become another program. */
void follower__exec(struct follower *follower, struct process *process);
void follower__exit(struct follower *follower, struct process *process);
/* Looks at the CPU time of every process. */
void follower__update_cpu(struct follower *follower);

/* Tells the engine how a process that was attached is to be walked. 0 or -errno. */
int follower__set_target(struct follower *follower, struct process *process);

/* Whatever is due: looks at those that are no Python yet, for new ones, at those that have ended. */
void follower__turn(struct follower *follower, uint64_t now);
/* When to call that again; UINT64_MAX: there is nothing to wait for. */
uint64_t follower__next_ns(const struct follower *follower);

void follower__free(struct follower *follower);
