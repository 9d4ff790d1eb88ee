/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * BTF is a header, then types, then strings. Types are numbered from 1 in the order they come in; each is a
 * struct btf_type and what its kind adds (linux/btf.h, Documentation/bpf/btf.rst).
 */
#include "os/kernel_types.h"

#include "base/util.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define KERNEL_BTF  "/sys/kernel/btf/vmlinux"
#define NESTING_MAX 32
#define TYPES_MAX   100000 /* to be written */
#define BYTES_MAX   (256u << 20)

/* Newer than the headers that this may be built with. */
enum { KIND_DECL_TAG = 17, KIND_TYPE_TAG = 18, KIND_ENUM64 = 19 };

struct kept {
	uint32_t old_id, new_id; /* new_id 0: not copied yet */
};

struct trimmer {
	const uint8_t *types;
	size_t types_len;
	const char *strings;
	size_t strings_len;
	const char *const *names;
	size_t name_count;
	VEC(uint32_t) offsets; /* of type id - 1 */
	VEC(struct kept) kept; /* structs of the wanted names */
	struct buf new_types, new_strings;
	uint32_t new_count;
};

/* --- reading --- */

static int take_header(struct trimmer *t, const uint8_t *data, size_t len)
{
	struct btf_header header;
	uint64_t types, strings;

	if (len < sizeof(header))
		return -EINVAL;
	memcpy(&header, data, sizeof(header));
	types = (uint64_t)header.hdr_len + header.type_off;
	strings = (uint64_t)header.hdr_len + header.str_off;
	if (header.magic != BTF_MAGIC || header.version != BTF_VERSION || types % 4 ||
	    header.type_len > BYTES_MAX || types + header.type_len > len || strings + header.str_len > len ||
	    !header.str_len || data[strings + header.str_len - 1])
		return -EINVAL;
	t->types = data + types;
	t->types_len = header.type_len;
	t->strings = (const char *)data + strings;
	t->strings_len = header.str_len;
	return 0;
}

static const char *name_at(const struct trimmer *t, uint32_t offset)
{
	return offset < t->strings_len ? t->strings + offset : "";
}

static bool is_wanted(const struct trimmer *t, const struct btf_type *type)
{
	const char *name = name_at(t, type->name_off);

	for (size_t i = 0; i < t->name_count; i++)
		if (!strcmp(name, t->names[i]))
			return true;
	return false;
}

/* Bytes that follow the struct btf_type, or -EINVAL for a kind from the future. */
static int64_t extra_bytes(const struct btf_type *type)
{
	int64_t count = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case KIND_TYPE_TAG:
		return 0;
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return count * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return count * sizeof(struct btf_enum);
	case BTF_KIND_FUNC_PROTO:
		return count * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return count * sizeof(struct btf_var_secinfo);
	case KIND_ENUM64:
		return count * 12;
	}
	return -EINVAL;
}

static int index_types(struct trimmer *t)
{
	size_t offset = 0;
	int err = vec__reserve(&t->offsets, t->types_len / sizeof(struct btf_type) + 1);

	while (!err && offset < t->types_len) {
		const struct btf_type *type = (const void *)(t->types + offset);
		int64_t extra;

		if (t->types_len - offset < sizeof(*type))
			return -EINVAL;
		extra = extra_bytes(type);
		if (extra < 0 || (uint64_t)extra > t->types_len - offset - sizeof(*type))
			return -EINVAL;
		t->offsets.items[t->offsets.len++] = offset;
		if (BTF_INFO_KIND(type->info) == BTF_KIND_STRUCT && is_wanted(t, type))
			err = vec__push(&t->kept, ((struct kept){.old_id = t->offsets.len}));
		offset += sizeof(*type) + extra;
	}
	return err;
}

/* What is behind typedefs and qualifiers; *id becomes its id. NULL for void and for nonsense. */
static const struct btf_type *real_type(const struct trimmer *t, uint32_t *id)
{
	for (int hop = 0; hop < NESTING_MAX && *id && *id <= t->offsets.len; hop++) {
		const struct btf_type *type = (const void *)(t->types + t->offsets.items[*id - 1]);

		switch (BTF_INFO_KIND(type->info)) {
		case BTF_KIND_TYPEDEF:
		case BTF_KIND_VOLATILE:
		case BTF_KIND_CONST:
		case BTF_KIND_RESTRICT:
		case KIND_TYPE_TAG:
			*id = type->type;
			break;
		default:
			return type;
		}
	}
	return NULL;
}

/* --- writing: functions return the new type's id, or -EINVAL --- */

static uint32_t add_string(struct trimmer *t, uint32_t old_offset)
{
	const char *text = name_at(t, old_offset);
	uint32_t offset = t->new_strings.len;

	if (!*text)
		return 0;
	buf__add(&t->new_strings, text, strlen(text) + 1);
	return offset;
}

static int add_type(struct trimmer *t, struct btf_type type, const void *extra, size_t extra_len)
{
	buf__add(&t->new_types, &type, sizeof(type));
	buf__add(&t->new_types, extra, extra_len);
	return ++t->new_count;
}

static int copy_type(struct trimmer *t, uint32_t id, int nesting, bool whole);

static int copy_members(struct trimmer *t, const struct btf_type *type, int nesting)
{
	uint32_t count = BTF_INFO_VLEN(type->info);
	const struct btf_member *members = (const void *)(type + 1);
	struct btf_type copy = *type;
	struct btf_member *copies = malloc((count + 1) * sizeof(*copies));
	int id = copies ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < count && id >= 0; i++) {
		bool named = *name_at(t, members[i].name_off);

		id = copy_type(t, members[i].type, nesting, !named);
		copies[i] = members[i];
		copies[i].type = id;
		copies[i].name_off = add_string(t, members[i].name_off);
	}
	copy.name_off = add_string(t, type->name_off);
	id = id < 0 ? id : add_type(t, copy, copies, count * sizeof(*copies));
	free(copies);
	return id;
}

static int copy_record(struct trimmer *t, const struct btf_type *type, uint32_t old_id, int nesting,
		       bool whole)
{
	struct btf_type hollow = {.info = BTF_INFO_KIND(type->info) << 24, .size = type->size};
	int id;

	for (size_t i = 0; i < t->kept.len; i++) {
		if (t->kept.items[i].old_id != old_id)
			continue;
		if (t->kept.items[i].new_id)
			return t->kept.items[i].new_id;
		id = copy_members(t, type, nesting);
		if (id > 0)
			t->kept.items[i].new_id = id;
		return id;
	}
	return whole ? copy_members(t, type, nesting) : add_type(t, hollow, NULL, 0);
}

static int copy_array(struct trimmer *t, const struct btf_type *type, int nesting)
{
	struct btf_array array = *(const struct btf_array *)(type + 1);
	int element = copy_type(t, array.type, nesting, false);
	int index = element < 0 ? element : copy_type(t, array.index_type, nesting, false);

	if (index < 0)
		return index;
	array.type = element;
	array.index_type = index;
	return add_type(t, (struct btf_type){.info = BTF_KIND_ARRAY << 24}, &array, sizeof(array));
}

/* whole: with its members even if it is none of the wanted. */
static int copy_type(struct trimmer *t, uint32_t id, int nesting, bool whole)
{
	const struct btf_type *type = real_type(t, &id);
	struct btf_type scalar;

	if (!type || nesting >= NESTING_MAX || t->new_count >= TYPES_MAX)
		return -EINVAL;
	scalar = (struct btf_type){.info = BTF_INFO_KIND(type->info) << 24, .size = type->size};
	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
		return add_type(t, scalar, type + 1, 4);
	case BTF_KIND_ENUM:
	case KIND_ENUM64:
	case BTF_KIND_FLOAT:
		return add_type(t, scalar, NULL, 0);
	case BTF_KIND_PTR:
		scalar.type = 0;
		return add_type(t, scalar, NULL, 0);
	case BTF_KIND_ARRAY:
		return copy_array(t, type, nesting + 1);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return copy_record(t, type, id, nesting + 1, whole);
	}
	return -EINVAL; /* nothing that a member can be */
}

static void write_out(struct trimmer *t, struct buf *out)
{
	struct btf_header header = {.magic = BTF_MAGIC,
				    .version = BTF_VERSION,
				    .hdr_len = sizeof(header),
				    .type_len = t->new_types.len,
				    .str_off = t->new_types.len,
				    .str_len = t->new_strings.len};

	buf__add(out, &header, sizeof(header));
	buf__add(out, t->new_types.data, t->new_types.len);
	buf__add(out, t->new_strings.data, t->new_strings.len);
}

int kernel_types__trim(const void *data, size_t len, const char *const *names, size_t count, struct buf *out)
{
	struct trimmer t = {.names = names, .name_count = count};
	int err = take_header(&t, data, len) ?: index_types(&t);

	buf__addc(&t.new_strings, '\0');
	for (size_t i = 0; i < t.kept.len && !err; i++) {
		int id = copy_type(&t, t.kept.items[i].old_id, 0, false);

		err = id < 0 ? id : 0;
	}
	err = err ?: t.new_types.err ?: t.new_strings.err;
	if (!err)
		write_out(&t, out);
	buf__free(&t.new_types);
	buf__free(&t.new_strings);
	vec__free(&t.kept);
	vec__free(&t.offsets);
	return err ?: out->err;
}

/* --- the running kernel's --- */

/* Since 6.16 the kernel's BTF can be mapped; before, it comes in pieces of a page. */
static void *read_all(int fd, size_t len)
{
	uint8_t *data = malloc(len ?: 1);
	size_t got = 0;
	ssize_t n = 1;

	while (data && got < len && n > 0) {
		n = read(fd, data + got, len - got);
		got += n > 0 ? n : 0;
	}
	if (got == len)
		return data;
	free(data);
	return NULL;
}

static int trim_file(int fd, const char *const *names, size_t count, struct buf *out)
{
	struct stat stat;
	void *map, *data;
	int err;

	if (fstat(fd, &stat))
		return -errno;
	map = mmap(NULL, stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	data = map == MAP_FAILED ? read_all(fd, stat.st_size) : map;
	err = data ? kernel_types__trim(data, stat.st_size, names, count, out) : -EIO;
	if (map == MAP_FAILED)
		free(data);
	else
		munmap(map, stat.st_size);
	return err;
}

int kernel_types__open(const char *const *names, size_t count)
{
	int fd = open(KERNEL_BTF, O_RDONLY | O_CLOEXEC), memory = -1, err;
	struct buf types = {0};

	if (fd < 0)
		return -errno;
	err = trim_file(fd, names, count, &types);
	close(fd);
	if (!err) {
		memory = memfd_create("kernel types", MFD_CLOEXEC);
		err = memory < 0 ? -errno : buf__write_fd(&types, memory);
	}
	if (err && memory >= 0)
		close(memory);
	buf__free(&types);
	return err ?: memory;
}
