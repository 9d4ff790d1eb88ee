/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See stacks.h. Stricter than a flame graph tool: a line that such a tool would skip is a fault here.
 */
#include "stacks.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_file(const char *path, size_t *len)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	long size;

	if (!file)
		return NULL;
	if (!fseek(file, 0, SEEK_END) && (size = ftell(file)) >= 0 && !fseek(file, 0, SEEK_SET)) {
		text = malloc(size + 1);
		*len = fread(text, 1, size, file);
		text[*len] = '\0';
	}
	fclose(file);
	return text;
}

/* "name (file:line)", "name (file:~line)", "name (file)", "[annotation]". */
static bool parse_frame(struct stack_frame *frame, char *text)
{
	size_t len = strlen(text);
	char *file, *colon, *end;

	*frame = (struct stack_frame){.name = text, .file = ""};
	if (!len)
		return false;
	if (text[len - 1] != ')')
		return text[0] == '[' && text[len - 1] == ']';
	text[len - 1] = '\0';
	for (file = text + len - 1; file > text && strncmp(file, " (", 2); file--)
		;
	if (file == text)
		return false;
	*file = '\0';
	frame->file = file + 2;
	colon = strrchr(file + 2, ':');
	frame->approximate = colon && colon[1] == '~' && isdigit((unsigned char)colon[2]);
	if (colon && isdigit((unsigned char)colon[1 + frame->approximate])) {
		frame->line = strtoul(colon + 1 + frame->approximate, &end, 10);
		if (*end)
			return false;
		*colon = '\0';
	}
	return true;
}

static bool parse_stack(struct stack *stack, char *line)
{
	char *space = strrchr(line, ' '), *end;
	size_t depth = 1;

	if (!space || !isdigit((unsigned char)space[1]))
		return false;
	*space = '\0';
	*stack = (struct stack){.weight = strtoull(space + 1, &end, 10)};
	if (*end || !stack->weight)
		return false;
	for (const char *c = line; *c; c++)
		depth += *c == ';';
	stack->frames = calloc(depth, sizeof(*stack->frames));
	for (char *frame; (frame = strsep(&line, ";"));)
		if (!parse_frame(&stack->frames[stack->len++], frame))
			return false;
	return true;
}

static bool is_utf8(const char *text, size_t len)
{
	for (size_t i = 0; i < len;) {
		unsigned char c = text[i];
		size_t more = c < 0x80 ? 0 : c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;

		if ((c >= 0x80 && c < 0xc2) || c > 0xf4 || (c < 0x20 && c != '\n') || c == 0x7f)
			return false;
		if (c == 0xed && (unsigned char)text[i + 1] >= 0xa0)
			return false; /* a surrogate */
		for (i++; more; more--, i++)
			if (i >= len || (text[i] & 0xc0) != 0x80)
				return false;
	}
	return true;
}

const char *stacks__parse(struct stacks *stacks, const char *path)
{
	static char fault[64];
	size_t len, lines = 0;
	char *next, *line;

	*stacks = (struct stacks){.text = read_file(path, &len)};
	if (!stacks->text)
		return "cannot be read";
	if (!len || stacks->text[len - 1] != '\n')
		return len ? "does not end in a newline" : "is empty";
	if (strlen(stacks->text) != len || !is_utf8(stacks->text, len))
		return "is not printable UTF-8";
	for (const char *c = stacks->text; *c; c++)
		lines += *c == '\n';
	stacks->items = calloc(lines, sizeof(*stacks->items));
	stacks->text[len - 1] = '\0';
	next = stacks->text;
	while ((line = strsep(&next, "\n"))) {
		if (!parse_stack(&stacks->items[stacks->len], line)) {
			snprintf(fault, sizeof(fault), "line %zu is no stack", stacks->len + 1);
			return fault;
		}
		stacks->total += stacks->items[stacks->len++].weight;
	}
	return NULL;
}

bool stack__ends_in(const struct stack *stack, const char *names)
{
	size_t count = 1, at;

	for (const char *c = names; *c; c++)
		count += *c == ';';
	if (count > stack->len)
		return false;
	for (at = stack->len - count; at < stack->len; at++) {
		size_t len = strcspn(names, ";");

		if (strlen(stack->frames[at].name) != len || strncmp(stack->frames[at].name, names, len))
			return false;
		names += len + 1;
	}
	return true;
}

bool stack__is(const struct stack *stack, const char *names)
{
	size_t count = 1;

	for (const char *c = names; *c; c++)
		count += *c == ';';
	return stack->len == count && stack__ends_in(stack, names);
}

size_t stack__count(const struct stack *stack, const char *name)
{
	size_t count = 0;

	for (size_t i = 0; i < stack->len; i++)
		count += !strcmp(stack->frames[i].name, name);
	return count;
}

const struct stack_frame *stack__leaf(const struct stack *stack)
{
	return &stack->frames[stack->len - 1];
}

const char *stack__text(const struct stack *stack)
{
	static char text[2048];
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < stack->len && used < sizeof(text) - 1; i++) {
		const struct stack_frame *frame = &stack->frames[i];

		if (i == 8 && stack->len > 16) {
			used += snprintf(text + used, sizeof(text) - used, ";...");
			i = stack->len - 8;
			frame = &stack->frames[i];
		}
		used += snprintf(text + used, sizeof(text) - used, "%s%.60s:%u", i ? ";" : "", frame->name,
				 frame->line);
	}
	return text;
}

uint64_t stacks__exactly(const struct stacks *stacks, const char *names)
{
	uint64_t weight = 0;

	for (size_t i = 0; i < stacks->len; i++)
		weight += stack__is(&stacks->items[i], names) ? stacks->items[i].weight : 0;
	return weight;
}

uint64_t stacks__ending_in(const struct stacks *stacks, const char *names)
{
	uint64_t weight = 0;

	for (size_t i = 0; i < stacks->len; i++)
		weight += stack__ends_in(&stacks->items[i], names) ? stacks->items[i].weight : 0;
	return weight;
}

uint64_t stacks__with(const struct stacks *stacks, const char *name)
{
	uint64_t weight = 0;

	for (size_t i = 0; i < stacks->len; i++)
		weight += stack__count(&stacks->items[i], name) ? stacks->items[i].weight : 0;
	return weight;
}

double stacks__percent(const struct stacks *stacks, uint64_t weight)
{
	return stacks->total ? 100.0 * weight / stacks->total : 0;
}
