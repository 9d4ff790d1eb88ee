/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See value.h. The form is Python's as far as it goes. Nothing is nested deeper than DEPTH_MAX, so objects
 * that contain themselves end there.
 */
#include "py/value.h"

#include "base/utf8.h"
#include "base/util.h"
#include "py/dict.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define DEPTH_MAX 3
#define ITEMS_MAX 8   /* shown of a container */
#define CHARS_MAX 100 /* ... of a text or bytes object */
#define INT_BITS  30
#define BASE	  1000000000u /* nine decimal digits at a time */

struct describer {
	struct py_objects *objects;
	struct buf *out;
	size_t start; /* of out */
	unsigned int depth;
};

static void describe(struct describer *describer, py_addr object);

/* --- numbers --- */

void py_value__add_int(const uint32_t *digits, size_t count, bool negative, struct buf *out)
{
	/* Each round of the outer loop divides what is left by the base. */
	uint32_t rest[PY_INT_DIGITS_MAX], parts[PY_INT_DIGITS_MAX + 2];
	size_t len = min_u64(count, PY_INT_DIGITS_MAX), used = 0;

	memcpy(rest, digits, len * sizeof(*rest));
	do {
		uint64_t remainder = 0;

		for (size_t i = len; i-- > 0;) {
			uint64_t value = remainder << INT_BITS | (rest[i] & ((1u << INT_BITS) - 1));

			rest[i] = value / BASE;
			remainder = value % BASE;
		}
		parts[used++] = remainder;
		while (len && !rest[len - 1])
			len--;
	} while (len && used < ARRAY_SIZE(parts));
	buf__addf(out, "%s%" PRIu32, negative ? "-" : "", parts[used - 1]);
	while (--used)
		buf__addf(out, "%09" PRIu32, parts[used - 1]);
}

/* The shortest that reads back as the same number. */
void py_value__add_float(double value, struct buf *out)
{
	char text[40];

	if (!isfinite(value)) {
		buf__adds(out, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
		return;
	}
	for (int precision = 1; precision <= 17; precision++) {
		snprintf(text, sizeof(text), "%.*g", precision, value);
		if (strtod(text, NULL) == value)
			break;
	}
	buf__adds(out, text);
	if (!strpbrk(text, ".e"))
		buf__adds(out, ".0");
}

static void add_int(struct describer *describer, py_addr object)
{
	uint32_t digits[PY_INT_DIGITS_MAX];
	uint64_t count;
	bool negative;

	if (py_int__read(describer->objects, object, &negative, digits, PY_INT_DIGITS_MAX, &count))
		buf__adds(describer->out, "<unreadable>");
	else if (count > PY_INT_DIGITS_MAX)
		buf__addf(describer->out, "<%sint of about %" PRIu64 " bits>", negative ? "negative " : "",
			  count * INT_BITS);
	else
		py_value__add_int(digits, max_u64(count, 1), negative, describer->out);
}

static void add_bool(struct describer *describer, py_addr object)
{
	uint32_t digit;
	uint64_t count;
	bool negative;

	if (py_int__read(describer->objects, object, &negative, &digit, 1, &count))
		buf__adds(describer->out, "<unreadable>");
	else
		buf__adds(describer->out, count && digit ? "True" : "False");
}

static void add_float(struct describer *describer, py_addr object)
{
	double value;

	if (py_float__read(describer->objects, object, &value))
		buf__adds(describer->out, "<unreadable>");
	else
		py_value__add_float(value, describer->out);
}

/* --- texts --- */

static void add_code_point(uint32_t code, struct buf *out)
{
	if (code == '\'' || code == '\\')
		buf__addf(out, "\\%c", (char)code);
	else if (code == '\n' || code == '\r' || code == '\t')
		buf__adds(out, code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t");
	else if (code < 0x100 && utf8_is_unsafe(code))
		buf__addf(out, "\\x%02x", code);
	else if (utf8_is_unsafe(code) || (code >= 0xd800 && code <= 0xdfff))
		buf__addf(out, "\\u%04x", code);
	else if (code > 0x10ffff)
		buf__addf(out, "\\U%08x", code);
	else
		py_str__to_utf8(4, (const uint8_t *)&code, 1, out);
}

void py_value__add_text(uint32_t kind, const uint8_t *data, size_t count, struct buf *out)
{
	buf__addc(out, '\'');
	for (size_t i = 0; i < count; i++)
		add_code_point(kind == 1   ? data[i]
			       : kind == 2 ? load_u16(data + 2 * i)
					   : load_u32(data + 4 * i),
			       out);
	buf__addc(out, '\'');
}

void py_value__add_bytes(const uint8_t *data, size_t count, struct buf *out)
{
	buf__adds(out, "b'");
	for (size_t i = 0; i < count; i++) {
		if (data[i] >= 0x7f)
			buf__addf(out, "\\x%02x", data[i]);
		else
			add_code_point(data[i], out);
	}
	buf__addc(out, '\'');
}

static void add_length(struct describer *describer, uint64_t length, const char *unit)
{
	if (length > CHARS_MAX)
		buf__addf(describer->out, "... (%" PRIu64 " %s)", length, unit);
}

static void add_str(struct describer *describer, py_addr object)
{
	uint8_t data[4 * CHARS_MAX];
	struct py_str_info info;

	if (py_text__read(describer->objects, object, &info, data, CHARS_MAX)) {
		buf__adds(describer->out, "<unreadable>");
		return;
	}
	py_value__add_text(info.kind, data, min_u64(info.length, CHARS_MAX), describer->out);
	add_length(describer, info.length, "characters");
}

static void add_bytes(struct describer *describer, py_addr object)
{
	uint8_t data[CHARS_MAX];
	uint64_t size;

	if (py_bytes__read(describer->objects, object, data, CHARS_MAX, &size)) {
		buf__adds(describer->out, "<unreadable>");
		return;
	}
	py_value__add_bytes(data, min_u64(size, CHARS_MAX), describer->out);
	add_length(describer, size, "bytes");
}

/* --- containers --- */

static bool is_full(const struct describer *describer)
{
	return describer->out->len - describer->start > VALUE_BYTES_MAX / 2;
}

/* The comma before an item; false: no more of them. */
static bool begin_item(struct describer *describer, uint64_t index)
{
	if (index)
		buf__adds(describer->out, ", ");
	if (index < ITEMS_MAX && !is_full(describer))
		return true;
	buf__adds(describer->out, "...");
	return false;
}

static void add_sequence(struct describer *describer, py_addr object, enum py_kind kind)
{
	bool is_list = kind == PY_KIND_LIST;
	py_addr items;
	uint64_t count;

	if (py_sequence__open(describer->objects, object, kind, &items, &count)) {
		buf__adds(describer->out, "<unreadable>");
		return;
	}
	buf__addc(describer->out, is_list ? '[' : '(');
	for (uint64_t i = 0; i < count && begin_item(describer, i); i++) {
		py_addr item = 0;

		py_objects__read(describer->objects, items + 8 * i, &item, sizeof(item));
		describe(describer, item);
	}
	if (!is_list && count == 1)
		buf__addc(describer->out, ',');
	buf__addc(describer->out, is_list ? ']' : ')');
	if (count > ITEMS_MAX)
		buf__addf(describer->out, " (%" PRIu64 " items)", count);
}

/* There may be more items, which nobody has looked for. */
static void add_unseen(struct describer *describer)
{
	if (!describer->objects->entries_left)
		buf__adds(describer->out, "...");
}

static void add_dict(struct describer *describer, py_addr object)
{
	struct py_dict_iter iter;
	py_addr key, value;

	if (py_dict__open(describer->objects, object, &iter)) {
		buf__adds(describer->out, "<unreadable>");
		return;
	}
	buf__addc(describer->out, '{');
	for (uint64_t i = 0; py_dict__next(&iter, &key, &value) && begin_item(describer, i); i++) {
		describe(describer, key);
		buf__adds(describer->out, ": ");
		describe(describer, value);
	}
	add_unseen(describer);
	buf__addc(describer->out, '}');
}

static void add_set(struct describer *describer, py_addr object, bool frozen)
{
	struct py_set_iter iter;
	py_addr key;

	if (py_set__open(describer->objects, object, &iter)) {
		buf__adds(describer->out, "<unreadable>");
		return;
	}
	if (!iter.used) {
		buf__adds(describer->out, frozen ? "frozenset()" : "set()");
		return;
	}
	buf__adds(describer->out, frozen ? "frozenset({" : "{");
	for (uint64_t i = 0; i < iter.used && py_set__next(&iter, &key) && begin_item(describer, i); i++)
		describe(describer, key);
	add_unseen(describer);
	buf__adds(describer->out, frozen ? "})" : "}");
	if (iter.used > ITEMS_MAX)
		buf__addf(describer->out, " (%" PRIu64 " items)", iter.used);
}

/* --- all kinds --- */

static void add_class(struct describer *describer, py_addr object)
{
	const struct py_type *type = py_type__read(describer->objects, object);

	buf__addf(describer->out, "<class '%s'>", type ? type->name : "?");
}

static void add_by_kind(struct describer *describer, py_addr object, enum py_kind kind)
{
	switch (kind) {
	case PY_KIND_INT:
		add_int(describer, object);
		break;
	case PY_KIND_FLOAT:
		add_float(describer, object);
		break;
	case PY_KIND_BOOL:
		add_bool(describer, object);
		break;
	case PY_KIND_STR:
		add_str(describer, object);
		break;
	case PY_KIND_BYTES:
		add_bytes(describer, object);
		break;
	case PY_KIND_TUPLE:
	case PY_KIND_LIST:
		add_sequence(describer, object, kind);
		break;
	case PY_KIND_DICT:
		add_dict(describer, object);
		break;
	case PY_KIND_SET:
	case PY_KIND_FROZENSET:
		add_set(describer, object, kind == PY_KIND_FROZENSET);
		break;
	case PY_KIND_TYPE:
		add_class(describer, object);
		break;
	case PY_KIND_NONE:
		buf__adds(describer->out, "None");
		break;
	case PY_KIND_ELLIPSIS:
		buf__adds(describer->out, "Ellipsis");
		break;
	case PY_KIND_NOT_IMPLEMENTED:
		buf__adds(describer->out, "NotImplemented");
		break;
	case PY_KIND_CELL:
	case PY_KIND_OTHER:
		break;
	}
}

static void add_object(struct describer *describer, py_addr object)
{
	const struct py_type *found = py_object__type(describer->objects, object);
	struct py_type type;

	if (!found) {
		buf__adds(describer->out, "<unreadable>");
		return;
	}
	type = *found; /* the next look-up may move it */
	if (type.kind == PY_KIND_OTHER || type.kind == PY_KIND_CELL) {
		buf__addf(describer->out, "<%s object at 0x%" PRIx64 ">", type.name, object);
		return;
	}
	/* Of a subclass: what it inherits, with its own name. A class of a metaclass is a class still. */
	if (!type.exact && type.kind != PY_KIND_TYPE)
		buf__addf(describer->out, "%s(", type.name);
	add_by_kind(describer, object, type.kind);
	if (!type.exact && type.kind != PY_KIND_TYPE)
		buf__addc(describer->out, ')');
}

static void describe(struct describer *describer, py_addr object)
{
	if (describer->depth >= DEPTH_MAX || is_full(describer)) {
		buf__adds(describer->out, "...");
		return;
	}
	describer->depth++;
	add_object(describer, object);
	describer->depth--;
}

void py_value__add(struct py_objects *objects, py_addr object, struct buf *out)
{
	struct describer describer = {.objects = objects, .out = out, .start = out->len};

	describe(&describer, object);
	/* One last item may have been long. */
	if (out->len - describer.start > VALUE_BYTES_MAX) {
		const char *text = out->data + describer.start;

		out->len = describer.start +
			   utf8_fit_bytes(text, out->len - describer.start, VALUE_BYTES_MAX - 3);
		buf__adds(out, "...");
	}
}
