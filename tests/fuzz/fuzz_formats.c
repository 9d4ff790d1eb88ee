/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every format of profiles whose names and shape are any bytes: what is JSON is valid, no name is markup, and
 * none leaves its line.
 */
#include "fuzz.h"
#include "out/writer.h"
#include "unit/json_check.h"

#define TEXT_MAX 24

static uint32_t take_text(struct profile *profile, const uint8_t **data, size_t *len)
{
	char text[TEXT_MAX];
	uint8_t size;

	fuzz_take(data, len, &size, 1);
	size %= TEXT_MAX;
	fuzz_take(data, len, text, size);
	return strtab__add(profile->strings, text, strnlen(text, size));
}

/* One more frame on one of the stacks there are, with samples. */
static void take_frame(struct profile *profile, const uint8_t **data, size_t *len)
{
	struct {
		uint8_t parent, weight, line, kind;
	} how;
	struct frame frame = {0};
	uint32_t node;

	fuzz_take(data, len, &how, sizeof(how));
	frame.function = take_text(profile, data, len);
	frame.kind = how.kind % (FRAME_CONTAINER + 1);
	frame.approximate = how.kind & 0x80;
	if (frame.kind == FRAME_PYTHON) {
		struct listing listing = {.len = how.weight};

		frame.file = take_text(profile, data, len);
		frame.line = how.line;
		frame.first_line = how.line / 2;
		listing.file = frame.file;
		listing.state = how.parent % (LISTING_NOT_READ + 1);
		listing.text = listing.state == LISTING_READ ? malloc(listing.len + 1) : NULL;
		if (listing.text)
			fuzz_take(data, len, listing.text, listing.len);
		check(!listings__put(&profile->listings, &listing));
	}
	node = trie__child(&profile->trie, how.parent % (uint32_t)profile->trie.nodes.len,
			   frame_table__add(&profile->frames, &frame));
	check(node != TRIE_FULL);
	trie__add(&profile->trie, node, how.weight);
	profile->samples += how.weight;
}

static void check_lines(const struct buf *file)
{
	const char *line = file->data, *end = file->data + file->len, *next;

	for (; line < end; line = next) {
		next = memchr(line, '\n', (size_t)(end - line));
		check(next++);
		check(json_is_valid(line, (size_t)(next - line)));
	}
}

/* The page has the same elements whatever is in it, and its profile is between two of them. */
static void check_page(const struct buf *file)
{
	static const char before[] = "<script type=\"application/json\" id=\"profile\">";
	const char *from = memmem(file->data, file->len, before, strlen(before)), *to;

	check(from);
	from += strlen(before);
	to = memchr(from, '<', (size_t)(file->data + file->len - from));
	check(to && !strncmp(to, "</script>", strlen("</script>")));
	check(json_is_valid(from, (size_t)(to - from)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct profile profile;

	check(!profile__init(&profile, 1u << 20));
	profile.period_ns = 1000000;
	profile.command = "command";
	while (len)
		take_frame(&profile, &data, &len);
	for (const struct writer *const *writer = writer__all(); *writer; writer++) {
		for (int group = GROUP_LINE; group <= GROUP_FUNCTION; group++) {
			struct buf file = {0};

			check(!(*writer)->write(&profile, group, &file) && !file.err);
			if (*writer == &speedscope_writer)
				check(json_is_valid(file.data, file.len));
			else if (*writer == &jsonl_writer)
				check_lines(&file);
			else if (*writer == &flamegraph_writer || *writer == &heatmap_writer)
				check_page(&file);
			buf__free(&file);
		}
	}
	profile__free(&profile);
	return 0;
}
