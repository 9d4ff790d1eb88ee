/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For py/code*.c only: a list of code objects that are read together. code.c makes it and keeps what comes of
 * it, code_round.c reads.
 */
#pragma once

#include "base/vec.h"
#include "os/remote.h"
#include "py/code.h"
#include "py/target.h"

#include "pybpfprof.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* three segments each stay within IOV_MAX; hundreds of long ones, or of named ones, take a call more */
#define ROUND_CODES  340
#define HEADER_BYTES 256 /* at least sizeof(PyCodeObject) without its bytecode */
#define STRING_BYTES 256 /* first read of a string object */
#define TABLE_BYTES  512 /* first read of a line table */

/* One object that is read in two parts, because its length is in it. */
struct part {
	py_addr address;
	uint8_t *bytes;	  /* what was read, from the start of the object */
	size_t len;	  /* bytes there */
	size_t want;	  /* length of the whole object, known after the first part */
	size_t offered;	  /* ... of which the kernel side sent this many */
	uint8_t *rest;	  /* a larger copy, owned, when the first part was not enough */
	size_t rest_len;  /* bytes of it that the last call brought */
	size_t again_len; /* bytes of `again` */
};

/* A code object that is to become known. */
struct pending {
	struct py_code code;
	const struct pbp_code *offer; /* what the kernel side sent of it; NULL: nothing */
	bool was_read;		      /* something of it was read from the process */
	py_addr type;
	uint8_t header[HEADER_BYTES];
	size_t header_len;
	struct part name, file, table;
	uint8_t name_bytes[STRING_BYTES], file_bytes[STRING_BYTES], table_bytes[TABLE_BYTES];
	uint8_t ident_again[PBP_IDENT_BYTES];
	size_t ident_len;
	uint8_t name_again[STRING_BYTES], file_again[STRING_BYTES];
};

struct round {
	struct code_cache *cache;
	struct py_target *target;
	bool readable;	   /* may the process be read? */
	size_t rest_bytes; /* allocated for what is long */
	struct pending *items;
	size_t count;
	VEC(struct remote_segment) segments;
	VEC(size_t *) lengths; /* where the length that came of each segment goes */
	/*
	 * Is the type of code objects not known yet, the first one's is looked at: it must be named "code".
	 */
	py_addr type;
	uint8_t type_name_pointer[8];
	char type_name[sizeof("code")];
	size_t type_len;
};

/* code_round.c: read all that is on the list, store it, and empty the list. 0 or -errno. */
int code_load_round(struct round *round);

/* code.c: all that is on the list into the cache, also that nothing was found. 0 or -ENOMEM. */
int code_store_round(struct round *round);
