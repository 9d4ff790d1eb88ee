/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See service.h.
 */
#include "service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void service__add(struct service *service, const char *word)
{
	check(service->count + 1 < SERVICE_WORDS, "too many words");
	service->argv[service->count++] = word;
}

static void add_all(struct service *service, const char *const *words)
{
	while (*words)
		service__add(service, *words++);
}

static void add_python(struct service *service, const struct python *python)
{
	char *rest = service->words;

	snprintf(service->words, sizeof(service->words), "%s", python->command);
	for (char *word; (word = strsep(&rest, " "));)
		service__add(service, word);
}

struct service *service__profiled(const char *const *options)
{
	struct service *service = calloc(1, sizeof(*service));

	snprintf(service->file, sizeof(service->file), "%s/x.collapsed", scratch_folder(""));
	add_all(service, (const char *const[]){profiler_path(), "-r", "999", "-o", service->file, NULL});
	if (by_readv())
		service__add(service, "--engine=readv");
	add_all(service, options);
	return service;
}

/* With the program written; its words follow. */
static struct service *of_python(const struct python *python, const char *const *options, const char *text)
{
	struct service *service = service__profiled(options);
	char path[CHILD_PATH + 16];

	service->folder = scratch_folder(python->root);
	snprintf(path, sizeof(path), "%s/service.py", service->folder);
	if (strchr(text, '\n'))
		write_file(path, text);
	else
		copy_file(text, path);
	snprintf(service->program, sizeof(service->program), "%s", path + strlen(python->root));
	service__add(service, "--");
	return service;
}

struct service *service__command(const struct python *python, const char *const *options, const char *text)
{
	struct service *service = of_python(python, options, text);

	add_python(service, python);
	service__add(service, service->program);
	return service;
}

struct service *service__script(const struct python *python, const char *const *options, const char *script,
				const char *text)
{
	struct service *service = of_python(python, options, text);

	add_all(service, (const char *const[]){"sh", "-c", script, NULL});
	add_python(service, python);
	service__add(service, service->program);
	return service;
}

struct child *service__begin(struct service *service)
{
	return child__start(&(struct child_config){.argv = service->argv, .env = {"PBP_LIMIT=100"}});
}

struct run *service__finish(struct child *child, const struct service *service)
{
	struct run *run = calloc(1, sizeof(*run));
	const char *fault;

	check(child__wait(child, 100), "it does not end: %s", child__err(child));
	run->child = child;
	run->code = child__code(child);
	run->out = child__out(child);
	run->err = child__err(child);
	run->report.samples = number_before(run->err, " taken");
	run->report.wall_s = number_before(run->err, " s by the ");
	run->report.resident_mb = number_before(run->err, " MB resident");
	if (access(service->file, F_OK))
		return run;
	fault = stacks__parse(&run->stacks, service->file);
	check(!fault, "%s %s", service->file, fault);
	return run;
}

struct run *service__run(struct service *service)
{
	return service__finish(service__begin(service), service);
}

void check_profile(const struct run *run, int code)
{
	check(run->code == code, "exit code %d, not %d: %s", run->code, code, run->err);
	check(run->stacks.total, "there is no profile: %s", run->err);
	check(run->stacks.total == run->report.samples, "the file has %llu samples, the report %.0f",
	      (unsigned long long)run->stacks.total, run->report.samples);
}

void check_profile_of_all(const struct run *run)
{
	enum { PARTIAL = 5 };

	check_profile(run, run->code == PARTIAL ? PARTIAL : 0);
}

uint64_t of_process(const struct run *run, pid_t pid, const char *name)
{
	uint64_t weight = 0;
	char root[32];

	snprintf(root, sizeof(root), "process %d", pid);
	for (size_t i = 0; i < run->stacks.len; i++) {
		const struct stack *stack = &run->stacks.items[i];

		if (!strcmp(stack->frames[0].name, root) && (!name || stack__count(stack, name)))
			weight += stack->weight;
	}
	return weight;
}

size_t processes_with(const struct run *run, const char *name)
{
	size_t count = 0;

	for (size_t i = 0; i < run->stacks.len; i++) {
		const char *root = run->stacks.items[i].frames[0].name;
		bool seen = !stack__count(&run->stacks.items[i], name);

		for (size_t j = 0; j < i && !seen; j++)
			seen = !strcmp(run->stacks.items[j].frames[0].name, root) &&
			       stack__count(&run->stacks.items[j], name);
		count += !seen;
	}
	return count;
}

uint64_t of_file(const struct run *run, const char *part)
{
	uint64_t weight = 0;

	for (size_t i = 0; i < run->stacks.len; i++) {
		const struct stack *stack = &run->stacks.items[i];
		bool found = false;

		for (size_t j = 0; j < stack->len; j++)
			found |= strstr(stack->frames[j].file, part) != NULL;
		weight += found ? stack->weight : 0;
	}
	return weight;
}

bool tells_apart(const struct run *run)
{
	for (size_t i = 0; i < run->stacks.len; i++)
		if (!strncmp(run->stacks.items[i].frames[0].name, "process ", 8))
			return true;
	return false;
}
