/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Structs cut out of BTF: against libbpf's reading of the whole, on types made for the purpose and on the
 * running kernel's; and what is not BTF.
 */
#include "os/kernel_types.h"

#include "base/util.h"

#include <bpf/btf.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const NAMES[] = {"pid",	"thread_struct", "task_struct",	  "perf_event",
				    "mm_struct", "sched_entity",  "signal_struct"};

/* Members of the whole and the trimmed struct: names, places, and sizes of what is not a pointer. */
static void compare(const struct btf *whole, const struct btf *trimmed, int old_id, int new_id)
{
	const struct btf_type *old = btf__type_by_id(whole, old_id), *new = btf__type_by_id(trimmed, new_id);
	const struct btf_member *a = btf_members(old), *b = btf_members(new);

	cr_assert_eq(new->size, old->size);
	cr_assert_eq(new->info, old->info);
	for (int i = 0; i < btf_vlen(old); i++, a++, b++) {
		const char *name = btf__name_by_offset(whole, a->name_off);

		cr_assert_str_eq(btf__name_by_offset(trimmed, b->name_off), name);
		cr_assert_eq(b->offset, a->offset, "%s", name);
		cr_assert_eq(btf__resolve_size(trimmed, b->type), btf__resolve_size(whole, a->type), "%s",
			     name);
		if (!*name)
			compare(whole, trimmed, a->type, b->type);
	}
}

static struct btf *trim(const void *data, size_t len, const char *const *names, size_t count)
{
	struct buf out = {0};
	struct btf *btf;

	cr_assert_eq(kernel_types__trim(data, len, names, count, &out), 0);
	btf = btf__new(out.data, out.len);
	cr_assert(btf);
	buf__free(&out);
	return btf;
}

Test(kernel_types, of_the_running_kernel)
{
	struct btf *whole = btf__parse("/sys/kernel/btf/vmlinux", NULL), *trimmed;
	char path[64];
	int fd;

	if (!whole)
		cr_skip_test("this kernel has no BTF");
	fd = kernel_types__open(NAMES, ARRAY_SIZE(NAMES));
	cr_assert_geq(fd, 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	trimmed = btf__parse(path, NULL);
	cr_assert(trimmed);
	for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++)
		compare(whole, trimmed, btf__find_by_name_kind(whole, NAMES[i], BTF_KIND_STRUCT),
			btf__find_by_name_kind(trimmed, NAMES[i], BTF_KIND_STRUCT));
	cr_assert_lt(btf__type_cnt(trimmed), 5000);
	btf__free(trimmed);
	btf__free(whole);
	close(fd);
}

/*
 * struct inner { long a : 3; };
 * struct outer { const volatile number n; struct { struct inner in; }; struct inner list[4]; struct outer
 * *next; union other o; };
 */
enum { LONG = 1, NUMBER, VOLATILE, CONST, INNER, ANONYMOUS, LIST, OTHER, OUTER, POINTER };

static struct btf *make(void)
{
	struct btf *btf = btf__new_empty();

	cr_assert_eq(btf__add_int(btf, "long", 8, BTF_INT_SIGNED), LONG);
	cr_assert_eq(btf__add_typedef(btf, "number", LONG), NUMBER);
	cr_assert_eq(btf__add_volatile(btf, NUMBER), VOLATILE);
	cr_assert_eq(btf__add_const(btf, VOLATILE), CONST);
	cr_assert_eq(btf__add_struct(btf, "inner", 8), INNER);
	cr_assert_eq(btf__add_field(btf, "a", LONG, 5, 3), 0);
	cr_assert_eq(btf__add_struct(btf, NULL, 8), ANONYMOUS);
	cr_assert_eq(btf__add_field(btf, "in", INNER, 0, 0), 0);
	cr_assert_eq(btf__add_array(btf, LONG, INNER, 4), LIST);
	cr_assert_eq(btf__add_union(btf, "other", 16), OTHER);
	cr_assert_eq(btf__add_field(btf, "secret", LONG, 0, 0), 0);
	cr_assert_eq(btf__add_struct(btf, "outer", 72), OUTER);
	cr_assert_eq(btf__add_field(btf, "n", CONST, 0, 0), 0);
	cr_assert_eq(btf__add_field(btf, "", ANONYMOUS, 64, 0), 0);
	cr_assert_eq(btf__add_field(btf, "list", LIST, 128, 0), 0);
	cr_assert_eq(btf__add_field(btf, "next", POINTER, 384, 0), 0);
	cr_assert_eq(btf__add_field(btf, "o", OTHER, 448, 0), 0);
	cr_assert_eq(btf__add_ptr(btf, OUTER), POINTER);
	return btf;
}

/* The kind of the type of a member. */
static int kind_of(const struct btf *btf, int id, int member)
{
	return btf_kind(btf__type_by_id(btf, btf_members(btf__type_by_id(btf, id))[member].type));
}

Test(kernel_types, members_of_all_kinds)
{
	static const char *const names[] = {"absent", "outer"};
	struct btf *whole = make(), *trimmed;
	const struct btf_member *members;
	uint32_t size;
	const void *data = btf__raw_data(whole, &size);
	int id;

	trimmed = trim(data, size, names, ARRAY_SIZE(names));
	id = btf__find_by_name_kind(trimmed, "outer", BTF_KIND_STRUCT);
	cr_assert_gt(id, 0);
	compare(whole, trimmed, OUTER, id);
	cr_expect_eq(kind_of(trimmed, id, 0), BTF_KIND_INT);
	cr_expect_eq(kind_of(trimmed, id, 1), BTF_KIND_STRUCT);
	cr_expect_eq(kind_of(trimmed, id, 2), BTF_KIND_ARRAY);
	cr_expect_eq(kind_of(trimmed, id, 3), BTF_KIND_PTR);
	cr_expect_eq(kind_of(trimmed, id, 4), BTF_KIND_UNION);
	/* Not asked for: hollow, and without a name that a search could meet. */
	members = btf_members(btf__type_by_id(trimmed, id));
	cr_expect_eq(btf_vlen(btf__type_by_id(trimmed, members[4].type)), 0);
	cr_expect_lt(btf__find_by_name(trimmed, "other"), 0);
	cr_expect_lt(btf__find_by_name(trimmed, "inner"), 0);
	btf__free(trimmed);
	btf__free(whole);
}

Test(kernel_types, wanted_inside_wanted)
{
	static const char *const names[] = {"outer", "inner"};
	struct btf *whole = make(), *trimmed;
	uint32_t size;
	const void *data = btf__raw_data(whole, &size);
	int inner, outer;

	trimmed = trim(data, size, names, ARRAY_SIZE(names));
	inner = btf__find_by_name_kind(trimmed, "inner", BTF_KIND_STRUCT);
	outer = btf__find_by_name_kind(trimmed, "outer", BTF_KIND_STRUCT);
	compare(whole, trimmed, INNER, inner);
	compare(whole, trimmed, OUTER, outer);
	cr_expect_eq(btf_array(btf__type_by_id(trimmed, btf_members(btf__type_by_id(trimmed, outer))[2].type))
			     ->type,
		     inner);
	btf__free(trimmed);
	btf__free(whole);
}

/* --- what is not BTF --- */

/* From a copy of exactly that length, so that a read beyond it is seen. */
static int trim_copy(const void *data, size_t len)
{
	static const char *const names[] = {"outer", "inner"};
	struct buf out = {0};
	void *copy = malloc(len ?: 1);
	int err;

	memcpy(copy, data, len);
	err = kernel_types__trim(copy, len, names, ARRAY_SIZE(names), &out);
	free(copy);
	buf__free(&out);
	return err;
}

Test(kernel_types, cut_short)
{
	struct btf *btf = make();
	uint32_t size;
	const uint8_t *data = btf__raw_data(btf, &size);

	cr_expect_eq(trim_copy(data, size), 0);
	for (uint32_t len = 0; len < size; len++)
		cr_expect_eq(trim_copy(data, len), -EINVAL, "%u of %u bytes", len, size);
	btf__free(btf);
}

Test(kernel_types, every_byte_changed)
{
	static const uint8_t values[] = {0, 1, 4, 0x0c, 0x7f, 0x80, 0xff};
	struct btf *btf = make();
	uint32_t size;
	uint8_t *data = malloc(4096);
	const void *raw = btf__raw_data(btf, &size);

	cr_assert_leq(size, 4096);
	for (uint32_t i = 0; i < size; i++) {
		for (size_t v = 0; v < ARRAY_SIZE(values); v++) {
			int err;

			memcpy(data, raw, size);
			data[i] = values[v];
			err = trim_copy(data, size);
			cr_expect(!err || err == -EINVAL);
		}
	}
	free(data);
	btf__free(btf);
}

/* By value, twice: without a limit this would take for ever. */
Test(kernel_types, struct_that_holds_itself)
{
	struct btf *btf = btf__new_empty();
	uint32_t size;
	const void *data;

	cr_assert_eq(btf__add_struct(btf, "outer", 8), 1);
	cr_assert_eq(btf__add_field(btf, "", 2, 0, 0), 0);
	cr_assert_eq(btf__add_struct(btf, NULL, 8), 2);
	cr_assert_eq(btf__add_field(btf, "", 2, 0, 0), 0);
	cr_assert_eq(btf__add_field(btf, "", 2, 0, 0), 0);
	data = btf__raw_data(btf, &size);
	cr_expect_eq(trim_copy(data, size), -EINVAL);
	btf__free(btf);
}
