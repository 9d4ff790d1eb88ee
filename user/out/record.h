/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Recordings, `.pbp`: every sample by itself, written while it is sampled. recorder.h writes them,
 * record_reader.h reads them, record_sum.h adds them up to a profile. The format, version 1:
 *
 * A file is RECORD_MAGIC, one byte with the version, and chunks. A reader refuses other versions. A chunk is
 *
 *	kind	1 byte, RECORD_CHUNK_*; chunks of a kind that is not known are left out
 *	length	of the payload: varint, RECORD_PACKED_MAX at most
 *	check	CRC-32 (as zlib's) of the chunk before it and behind it, 4 bytes, little-endian
 *	payload	what follows in one stream of raw deflate (RFC 1951) that all chunks share, flushed at the
 *		end of each (Z_SYNC_FLUSH), without the 00 00 ff ff that it ends with then; less than
 *		RECORD_CHUNK_MAX bytes when unpacked. Nothing at all if there is nothing in it
 *
 * A varint has 7 bits a byte, least significant first, and the top bit set in all bytes but the last. A
 * signed one is folded: 0, -1, 1, -2, ... are 0, 1, 2, 3. A text is its length, a varint, and so many bytes
 * of UTF-8, without NUL; names of files and command lines may have bytes that are none. A file ends with an
 * END chunk; one that does not was cut off, and is good up to its last whole chunk.
 *
 * META: pairs of a name and a value, both texts, to the end of the chunk. The last value of a name counts. No
 * more than RECORD_META_MAX bytes in all.
 *	program, version, engine, mode (as --mode has it), command, host, end (why it ended)
 *	unit		"samples", or "microseconds" for a profile of time
 *	apart		what was told apart, of "processes", "containers", "threads", with spaces
 *	rate_hz, period_ns, start_ns (since 1970) and time_unit_ns, decimal; the last comes before any sample
 *
 * ACCOUNT: pairs of a name (text) and a number (varint), as META: the counts of agg/account.h by their names,
 *	left_out, processes, cpu_ns, duration_ns. They are of this file alone; what was not told is 0.
 *
 * TABLES: entries, each with its kind first (1 byte, RECORD_*). Those of a kind are numbered in their order,
 * from 0, and references are such numbers, of what came before, or, "back", how many came after it. Numbers
 * are varints:
 *	STRING	text. (Number 0 is "", and is not in the file.)
 *	FRAME	1 byte, its enum frame_kind (agg/frame.h), plus 16 if the line is approximate, 32 if it is a
 *		wait; function, a string; of a Python frame also: file, a string; first line, 0 if not known;
 *		line (0 if not known) less first line, signed
 *	NODE	a frame and the path that it is called from: that path, a node, back; frame, back. (Number 0
 *		is the root, and is not in the file.)
 *	STACK	a path that has samples: node, back
 *	PROCESS	pid; three texts: command, and what stands above its stacks where processes are told apart
 *		("process 12 (python app.py)"), and where containers are ("container web", "" if not looked
 *		up)
 *	THREAD	process; tid; two texts: name, and what stands above its stacks where threads are told apart
 *	CONTEXT	thread + 1, 0 for none; state, see SINK_* in agg/sink.h; share, 1 byte, RECORD_SHARE_*
 * RESET: no payload. All tables are empty again.
 *
 * SAMPLES: varints:
 *	number of samples
 *	1 if times are by thread, else 0
 *	number of settlements, and of each: kind; what extras of that kind came to; what they stand for, both
 *		in ns. An extra of such a kind counts as its share of that, one of another kind as itself
 *	of each sample its context
 *	... its stack
 *	... its time, signed: in units of time_unit_ns since the start, less that of the sample before (of its
 *		context's thread if times are by thread), less period_ns / time_unit_ns. The first one follows
 *		the time 0
 *	of those whose context says so, weight, extra and kind: see RECORD_SHARE_*; in ns
 *
 * The time of a sample on the CPU is when it was taken; of a wait, when it began. A wait that lasts is told
 * in parts.
 *
 * END: number of samples in the file that are not SINK_CONTINUED (varint). Nothing follows.
 */
#pragma once

#define RECORD_MAGIC	   "\x89pbp\r\n\x1a\n"
#define RECORD_MAGIC_BYTES 8
#define RECORD_VERSION	   1

#define RECORD_CHUNK_MAX  (1u << 20)
#define RECORD_PACKED_MAX (RECORD_CHUNK_MAX + RECORD_CHUNK_MAX / 8)
#define RECORD_META_MAX	  (1u << 20) /* unpacked, of all META chunks: they come at the start and at the end */

enum {
	RECORD_CHUNK_META = 1,
	RECORD_CHUNK_ACCOUNT,
	RECORD_CHUNK_TABLES,
	RECORD_CHUNK_RESET,
	RECORD_CHUNK_SAMPLES,
	RECORD_CHUNK_END,
};

enum {
	RECORD_STRING = 1,
	RECORD_FRAME,
	RECORD_NODE,
	RECORD_STACK,
	RECORD_PROCESS,
	RECORD_THREAD,
	RECORD_CONTEXT,
};

#define RECORD_FRAME_APPROXIMATE 16
#define RECORD_FRAME_WAIT	 32

enum {
	RECORD_SHARE_PERIOD, /* weight: period_ns */
	RECORD_SHARE_WEIGHT, /* weight */
	RECORD_SHARE_EXTRA,  /* weight, extra, kind */
};

/* Kinds of extras. */
#define RECORD_KINDS 16
