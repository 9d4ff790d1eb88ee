/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A chain that grows or shrinks at the leaf end is followed from copy to copy. Only where it has left the old
 * one is it searched for, and that not often.
 */
#include "py/frame_copies.h"

#include "base/util.h"

#include <stdbool.h>
#include <stdlib.h>

#define SEARCHES_MAX 64

static int read_all(struct frame_copies *copies, struct remote *remote)
{
	size_t count = copies->addresses.len, len = copies->frame_len;
	struct remote_segment *segments = calloc(count + 1, sizeof(*segments));
	int err = segments ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && !err; i++)
		segments[i] = (struct remote_segment){.addr = copies->addresses.items[i],
						      .dest = copies->bytes.items + i * len,
						      .len = len};
	if (!err)
		err = remote__read_batch(remote, segments, count);
	for (size_t i = 0; i < count && !err; i++)
		if (segments[i].got < len)
			copies->addresses.items[i] = 0;
	free(segments);
	return err;
}

int frame_copies__read(struct frame_copies *copies, struct remote *remote, const py_addr *addresses,
		       size_t count, size_t len)
{
	int err;

	copies->frame_len = len;
	copies->searches = SEARCHES_MAX;
	copies->addresses.len = copies->bytes.len = 0;
	err = vec__reserve(&copies->addresses, count) ?: vec__reserve(&copies->bytes, count * len);
	if (err || !count)
		return err;
	memcpy(copies->addresses.items, addresses, count * sizeof(*addresses));
	copies->addresses.len = count;
	err = read_all(copies, remote);
	if (err)
		copies->addresses.len = 0;
	return err;
}

static bool is_at(const struct frame_copies *copies, size_t i, py_addr address)
{
	return i < copies->addresses.len && copies->addresses.items[i] == address;
}

const uint8_t *frame_copies__find(struct frame_copies *copies, py_addr address, size_t *hint)
{
	size_t at = is_at(copies, *hint, address) ? *hint : *hint + 1;

	if (!is_at(copies, at, address)) {
		if (!copies->searches)
			return NULL;
		copies->searches--;
		for (at = 0; at < copies->addresses.len && !is_at(copies, at, address);)
			at++;
		if (at == copies->addresses.len)
			return NULL;
	}
	*hint = at;
	return copies->bytes.items + at * copies->frame_len;
}

void frame_copies__free(struct frame_copies *copies)
{
	vec__free(&copies->addresses);
	vec__free(&copies->bytes);
}
