/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Profiles that no process made, by name: for golden files, for tests of what reads the files, and for figures.
 * The same name is always the same profile.
 *
 *	tiny	one sample of one frame
 *	shop	a hundred samples: recursion, lines, annotations, a line that is approximate
 *	changed	the same after a change: more of one thing, less of another, one that is new and one that is gone
 *	threads	of three processes and a container
 *	waits	time on the CPU and off it, by what was waited for
 *	hostile	names that something could stumble over
 *	deep	a recursion of 20,000 calls that is sampled at each depth
 *	NUMBER	so many distinct stacks, with ten samples each on average
 */
#pragma once

#include "agg/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct made_frame {
	const char *function, *file;
	uint32_t line, first_line;
	enum frame_kind kind;
};

static inline uint32_t made_text(struct profile *profile, const char *s)
{
	return s ? strtab__add(profile->strings, s, strlen(s)) : 0;
}

static inline uint32_t made_add_frame(struct profile *profile, uint32_t parent, struct made_frame made)
{
	struct frame frame = {.function = made_text(profile, made.function),
			      .file = made_text(profile, made.file),
			      .line = made.line,
			      .first_line = made.first_line,
			      .kind = made.kind};

	return trie__child(&profile->trie, parent, frame_table__add(&profile->frames, &frame));
}

static inline void made_add_weight(struct profile *profile, uint32_t node, uint64_t weight)
{
	trie__add(&profile->trie, node, weight * profile__unit(profile));
	profile->samples += weight;
}

#define MADE_FRAME(...)	      ((struct made_frame){__VA_ARGS__, FRAME_PYTHON})
#define MADE_NOTE(text, kind) ((struct made_frame){text, NULL, 0, 0, kind})
#define MADE_STACK(profile, weight, ...)                                                                     \
	made_add_stack((profile), (weight), (const struct made_frame[]){__VA_ARGS__},                        \
		       sizeof((const struct made_frame[]){__VA_ARGS__}) / sizeof(struct made_frame))

static inline void made_add_stack(struct profile *profile, uint64_t weight, const struct made_frame *frames,
				  size_t len)
{
	uint32_t node = TRIE_ROOT;

	for (size_t i = 0; i < len; i++)
		node = made_add_frame(profile, node, frames[i]);
	made_add_weight(profile, node, weight);
}

static inline void made_tiny(struct profile *profile)
{
	MADE_STACK(profile, 1, MADE_FRAME("only", "one.py", 1, 1));
}

/* Code of a file, for formats that show it; NULL: why there is none. */
static inline void made_add_code(struct profile *profile, const char *name, enum listing_state state, const char *text)
{
	struct listing listing = {.file = made_text(profile, name), .state = state};

	listing.len = text ? strlen(text) : 0;
	listing.text = text ? malloc(listing.len + 1) : NULL;
	if (text)
		memcpy(listing.text, text, listing.len);
	listings__put(&profile->listings, &listing);
}

#define MADE_MODULE MADE_FRAME("<module>", "/srv/shop/main.py", 90, 1)
#define MADE_SERVE  MADE_FRAME("serve", "/srv/shop/main.py", 61, 60)
#define MADE_DECODE MADE_FRAME("JSONDecoder.decode", "/usr/lib/python3.12/json/decoder.py", 338, 332)
#define MADE_TREE   MADE_FRAME("total", "/srv/shop/tree.py", 8, 5)

static inline void made_shop_code(struct profile *profile)
{
	char text[8192], *at = text, *end = text + sizeof(text);

	for (int line = 1; line <= 95; line++)
		at += snprintf(at, end - at, line == 61 ? "\tserve(queue)\n" : line == 90 ? "while \"<b>\":\r\n" : "line %d\n",
			       line);
	made_add_code(profile, "/srv/shop/main.py", LISTING_READ, text);
	made_add_code(profile, "/srv/shop/tree.py", LISTING_READ,
		      "# one\n\n\n\ndef total(node):\n    return node.weight\n\n    total(node.next)");
	profile->listings.items.items[1].changed = true;
	made_add_code(profile, "/srv/shop/price.py", LISTING_DENIED, NULL);
	made_add_code(profile, "/opt/lib/site-packages/ink/page.py", LISTING_READ, "import this\n");
}

/* With recursion, lines, annotations, and a line that is approximate. */
static inline void made_shop(struct profile *profile)
{
	uint32_t node;
	struct frame hot = {.function = made_text(profile, "price"),
			    .file = made_text(profile, "/srv/shop/price.py"),
			    .line = 14,
			    .first_line = 12,
			    .approximate = true};

	MADE_STACK(profile, 40, MADE_MODULE, MADE_SERVE, MADE_DECODE,
		   MADE_FRAME("raw_decode", "/usr/lib/python3.12/json/decoder.py", 353, 345));
	MADE_STACK(profile, 10, MADE_MODULE, MADE_SERVE, MADE_DECODE);
	MADE_STACK(profile, 20, MADE_MODULE, MADE_SERVE, MADE_TREE, MADE_TREE, MADE_TREE,
		   MADE_FRAME("total", "/srv/shop/tree.py", 6, 5));
	MADE_STACK(profile, 5, MADE_MODULE, MADE_SERVE, MADE_TREE);
	MADE_STACK(profile, 7, MADE_MODULE, MADE_FRAME("serve", "/srv/shop/main.py", 64, 60),
		   MADE_FRAME("render", "/opt/lib/site-packages/ink/page.py", 0, 0));
	MADE_STACK(profile, 3, MADE_NOTE("[no Python frames]", FRAME_SPECIAL));
	MADE_STACK(profile, 2, MADE_NOTE("[truncated]", FRAME_SPECIAL), MADE_TREE);
	node = trie__child(&profile->trie, made_add_frame(profile, TRIE_ROOT, MADE_MODULE),
			   frame_table__add(&profile->frames, &hot));
	made_add_weight(profile, node, 13);
	made_shop_code(profile);
}

static inline void made_changed(struct profile *profile)
{
	MADE_STACK(profile, 20, MADE_MODULE, MADE_SERVE, MADE_DECODE,
		   MADE_FRAME("raw_decode", "/usr/lib/python3.13/json/decoder.py", 360, 350));
	MADE_STACK(profile, 10, MADE_MODULE, MADE_SERVE, MADE_DECODE);
	MADE_STACK(profile, 40, MADE_MODULE, MADE_SERVE, MADE_TREE, MADE_TREE, MADE_TREE,
		   MADE_FRAME("total", "/srv/shop/tree.py", 6, 5));
	MADE_STACK(profile, 5, MADE_MODULE, MADE_SERVE, MADE_TREE);
	MADE_STACK(profile, 22, MADE_MODULE, MADE_SERVE, MADE_FRAME("cached", "/srv/shop/cache.py", 5, 2));
	MADE_STACK(profile, 3, MADE_NOTE("[no Python frames]", FRAME_SPECIAL));
}

/* A second in all. */
static inline void made_waits(struct profile *profile)
{
	static const struct {
		const char *reason;
		uint64_t ms;
	} waits[] = {{"[sleep]", 300}, {"[lock]", 200}, {"[I/O: recvfrom]", 150}, {"[GIL]", 100},
		     {"[child process]", 60}, {"[waits for a CPU]", 50}, {"[system call: fsync]", 20}};

	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		struct frame wait = {.kind = FRAME_SPECIAL, .function = made_text(profile, waits[i].reason), .wait = true};
		uint32_t node = made_add_frame(profile, made_add_frame(profile, TRIE_ROOT, MADE_MODULE), MADE_SERVE);

		node = trie__child(&profile->trie, node, frame_table__add(&profile->frames, &wait));
		made_add_weight(profile, node, waits[i].ms * 1000);
	}
	MADE_STACK(profile, 110000, MADE_MODULE, MADE_SERVE, MADE_DECODE);
	MADE_STACK(profile, 10000, MADE_MODULE, MADE_SERVE, MADE_NOTE("[GC]", FRAME_SPECIAL));
	profile->samples = 9; /* one of each */
}

static inline void made_threads(struct profile *profile)
{
	MADE_STACK(profile, 6, MADE_NOTE("container shop-1 (docker)", FRAME_CONTAINER), MADE_MODULE, MADE_SERVE);
	for (int process = 0; process < 3; process++)
		for (int thread = 0; thread <= process; thread++) {
			char first[64], second[64];

			snprintf(first, sizeof(first), "process %d (python3 worker.py)", 100 + process);
			snprintf(second, sizeof(second), "thread %d (pool-%d)", 100 + 10 * process + thread,
				 thread);
			MADE_STACK(profile, 10 + (uint64_t)thread, MADE_NOTE(first, FRAME_PROCESS),
				   MADE_NOTE(second, FRAME_THREAD), MADE_MODULE, MADE_SERVE, MADE_TREE);
			MADE_STACK(profile, 5, MADE_NOTE(first, FRAME_PROCESS),
				   MADE_NOTE(second, FRAME_THREAD), MADE_MODULE,
				   MADE_FRAME("<genexpr>", "/srv/shop/main.py", 70, 70));
		}
}

/* None of them is wide enough to be seen. */
static inline void made_crowd(struct profile *profile)
{
	for (int thread = 0; thread < 3000; thread++) {
		char name[64];

		snprintf(name, sizeof(name), "thread %d (worker-%d)", 1000 + thread, thread);
		MADE_STACK(profile, 1, MADE_NOTE(name, FRAME_THREAD), MADE_MODULE, MADE_SERVE);
	}
}

/* Every name is one that something could stumble over. */
static inline void made_hostile(struct profile *profile)
{
	static const char *const names[] = {
		"</script><script>window.broken = 1</script>",
		"<img src=x onerror=\"window.broken = 1\">",
		"<!--<script>",
		"]]>&amp;&#x27;&lt;",
		"\"quotes\" 'and' `ticks` ${window.broken = 1} \\u003c \\",
		"\x1b[31mred\x1b[0m\x07\x08\r\n\t",
		"\xe2\x80\xae"
		"reversed"
		"\xe2\x80\xac\xe2\x81\xa6",
		"\xe2\x80\xa8line\xe2\x80\xa9paragraph",
		"\xff\xfe not UTF-8 \xc0\x80",
		"\xed\xa0\x80 surrogate",
		"\xd0\xb8\xd0\xbc\xd1\x8f \xe5\x90\x8d\xe5\x89\x8d \xf0\x9f\x90\x8d e\xcc\x81",
		"__proto__",
		"constructor",
		"@PROFILE@",
		"",
		"~",
	};
	char *longest = malloc(10001);

	memset(longest, 'L', 10000);
	longest[10000] = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		MADE_STACK(profile, 10, MADE_MODULE, MADE_FRAME(names[i], names[i], 7, 5),
			   MADE_FRAME(names[(i + 1) % 16], names[i], 0, 0));
		made_add_code(profile, names[i], LISTING_READ, names[i]);
	}
	made_add_code(profile, longest, LISTING_READ, longest);
	MADE_STACK(profile, 10, MADE_MODULE, MADE_FRAME(longest, longest, 1, 1));
	/* These two are one function for pstats. */
	MADE_STACK(profile, 1, MADE_NOTE("[truncated]", FRAME_SPECIAL));
	MADE_STACK(profile, 1, MADE_FRAME("[truncated]", "~", 0, 0));
	made_add_weight(profile, TRIE_ROOT, 4);
	free(longest);
}

static inline uint64_t made_next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* 400 lines in each of the 200 files. */
static inline void made_many_code(struct profile *profile)
{
	char text[20000], name[60];
	size_t len = 0;

	for (int line = 1; line <= 400; line++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "    total = line_%d(total, \"<%d>\")\n", line, line);
	for (int number = 0; number < 200; number++) {
		snprintf(name, sizeof(name), "/srv/application/package_%d/module_%d.py", number % 20, number);
		made_add_code(profile, name, LISTING_READ, text);
	}
}

/* 5 to 60 frames deep, of 4000 functions in 200 files; neighbours share most of their paths. */
static inline void made_many(struct profile *profile, size_t stacks)
{
	uint64_t random = 88172645463325252ull;
	uint32_t nodes[60] = {TRIE_ROOT}, depth = 0;
	size_t made = 0;

	while (made < stacks) {
		uint32_t from = depth - (uint32_t)(made_next_random(&random) % (made % 100 ? 9 : depth + 1));

		from = from > depth ? 0 : from;
		depth = from + 1 + (uint32_t)(made_next_random(&random) % 7);
		depth = depth < 5 ? 5 : depth > 60 ? 60 : depth;
		from = from < depth ? from : depth - 1;
		for (uint32_t i = from; i < depth; i++) {
			/* A function calls one of five, so that branches are of very different sizes. */
			uint32_t number = (i * 67 + (uint32_t)(made_next_random(&random) %
							       (made_next_random(&random) % 5 + 1)) *
							    13) %
					  4000;
			char function[40], file[60];

			snprintf(function, sizeof(function), "Class%u.method_%u", number % 37, number);
			snprintf(file, sizeof(file), "/srv/application/package_%u/module_%u.py", number % 20,
				 number % 200);
			nodes[i] = made_add_frame(profile, i ? nodes[i - 1] : TRIE_ROOT,
						  MADE_FRAME(function, file, 10 + number % 7, 10));
		}
		made += !profile->trie.nodes.items[nodes[depth - 1]].self;
		made_add_weight(profile, nodes[depth - 1], 1 + made_next_random(&random) % 19);
	}
	made_many_code(profile);
}

static inline void made_deep(struct profile *profile)
{
	uint32_t node = TRIE_ROOT;

	for (int i = 0; i < 20000; i++) {
		node = made_add_frame(profile, node, MADE_FRAME("down", "/srv/shop/deep.py", 4, 3));
		made_add_weight(profile, node, 1);
	}
}

/* Into an empty profile. */
static inline void make_profile(struct profile *profile, const char *name)
{
	profile->period_ns = 10101010;
	profile->unit = !strcmp(name, "waits") ? PROFILE_TIME : PROFILE_SAMPLES;
	if (!strcmp(name, "tiny"))
		made_tiny(profile);
	else if (!strcmp(name, "shop"))
		made_shop(profile);
	else if (!strcmp(name, "changed"))
		made_changed(profile);
	else if (!strcmp(name, "threads"))
		made_threads(profile);
	else if (!strcmp(name, "crowd"))
		made_crowd(profile);
	else if (!strcmp(name, "waits"))
		made_waits(profile);
	else if (!strcmp(name, "hostile"))
		made_hostile(profile);
	else if (!strcmp(name, "deep"))
		made_deep(profile);
	else
		made_many(profile, strtoull(name, NULL, 10));
	profile->start_realtime_ns = 1700000000000000000ull;
	profile->duration_ns = 1500000000;
	profile->command =
		!strcmp(name, "hostile") ? "</title><script>window.broken = 1</script>" : "python3 shop.py";
	profile->account = (struct account){.engine = "bpf",
					    .mode = profile->unit == PROFILE_TIME ? "wall" : "cpu",
					    .end = "duration over",
					    .rate_hz = 99,
					    .processes = strcmp(name, "threads") ? 1 : 3,
					    .cpu_ns = 1010101010,
					    .lost = 3,
					    .truncated = 2,
					    .unverified = 1};
}
