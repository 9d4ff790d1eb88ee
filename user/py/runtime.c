/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Candidates come from the images' ELF headers: section .PyRuntime (3.10+), else symbol _PyRuntime (3.7+,
 * exported, so it survives strip), else, where neither table of the file can be used, from its writable
 * memory by the cookie. The main program and files named like a Python are tried first; the rest, up to
 * hundreds of libraries, only if those hold no live runtime. Every candidate is probed, the best verdict
 * wins; address and order decide nothing. Next: probe.c, what makes a runtime live; old.c, versions without a
 * table.
 */
#include "py/runtime.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/util.h"
#include "py/old.h"
#include "py/probe.h"
#include "py/threads.h"

#include <errno.h>
#include <stdio.h>

#define SCAN_ALIGN	32 /* alignment of _PyRuntime (3.13+: GLOBAL OBJECT, align 32 in every build seen) */
#define SCAN_CHUNK	(1 << 18)  /* bytes read at once */
#define SCAN_MAX_BYTES	(64 << 20) /* per process: a libpython has less than 2 MiB of such memory */
#define COUNTED_THREADS 64
#define SCAN_MAX_HITS	16
/*
 * CPython's static types alone are more writable data than this: a libpython has 210 KiB (3.10) to 1.4 MiB
 * (3.12), relocated read-only data not counted. Most other libraries have less, and need not be opened.
 */
#define MIN_WRITABLE_BYTES (64 << 10)

struct candidate {
	struct py_probe probe;
	const struct image *image;
	py_addr addr;
	uint64_t bias;
	const char *how;
	int threads; /* if live */
};

struct finder {
	struct images images;
	struct remote *remote;
	struct candidate best;	/* verdict NOT_PYTHON: none yet */
	struct image_file file; /* of the best; fd -1 if none */
	size_t live;		/* candidates found live */
	const struct image *closed; /* that is called as a Python's and could not be opened ... */
	int closed_err;		    /* ... for that reason */
	uint64_t scan_bytes;	/* left of SCAN_MAX_BYTES */
};

enum py_attach_error py_attach_errno(int err, char *reason, size_t reason_size)
{
	switch (err) {
	case -ESRCH:
		snprintf(reason, reason_size, "the process is gone");
		return PY_ATTACH_GONE;
	case -EPERM:
	case -EACCES:
		snprintf(reason, reason_size,
			 "permission denied: reading its memory (process_vm_readv) needs CAP_SYS_PTRACE, or "
			 "the same user where kernel.yama.ptrace_scope is 0");
		return PY_ATTACH_DENIED;
	case -ENOSYS:
		snprintf(reason, reason_size,
			 "there is no process_vm_readv here, by which its memory could be read");
		return PY_ATTACH_DENIED;
	default:
		snprintf(reason, reason_size, "cannot read the process: %s", strerror(-err));
		return PY_ATTACH_SYSTEM;
	}
}

static void log_candidate(const struct candidate *candidate, const char *what)
{
	struct buf path = {};

	if (!log_enabled(LOG_DBG))
		return;
	buf__add_escaped(&path, image__path(candidate->image), NULL);
	buf__addc(&path, '\0');
	log_dbg("runtime", "%s 0x%llx (%s, %s): %s", what, (unsigned long long)candidate->addr,
		path.err ? "" : path.data, candidate->how,
		candidate->probe.reason[0] ? candidate->probe.reason : "live");
	buf__free(&path);
}

/* How much a verdict says about the process. */
static int rank(enum py_attach_error verdict)
{
	switch (verdict) {
	case PY_ATTACH_OK:
		return 4;
	case PY_ATTACH_CORRUPT:
		return 3;
	case PY_ATTACH_UNSUPPORTED:
		return 2;
	case PY_ATTACH_STARTING:
		return 1;
	default:
		return 0;
	}
}

/* Of several live ones: the main program's own, else the one with the most threads. */
static bool is_better(const struct candidate *a, const struct candidate *b)
{
	bool a_is_program = a->image && a->image->is_program, b_is_program = b->image && b->image->is_program;

	if (rank(a->probe.verdict) != rank(b->probe.verdict))
		return rank(a->probe.verdict) > rank(b->probe.verdict);
	if (a_is_program != b_is_program)
		return a_is_program;
	return a->threads > b->threads;
}

static int count_threads(struct finder *finder, const struct candidate *candidate)
{
	struct py_thread threads[COUNTED_THREADS];

	return py_threads__list(finder->remote, &candidate->probe.offsets, candidate->addr, threads,
				COUNTED_THREADS);
}

static bool is_final(enum py_attach_error verdict)
{
	return verdict == PY_ATTACH_DENIED || verdict == PY_ATTACH_GONE || verdict == PY_ATTACH_SYSTEM;
}

/*
 * Probe an address and keep it if it is better than the best. `file` (may be NULL) moves to the finder then:
 * *file is emptied. Returns whether the search is over.
 */
static bool try_address(struct finder *finder, struct candidate *candidate, struct image_file *file)
{
	py_probe__run(&candidate->probe, finder->remote, candidate->addr);
	if (candidate->probe.verdict == PY_ATTACH_NOT_PYTHON && file)
		py_old__probe(&candidate->probe, finder->remote, candidate->addr, file, candidate->bias);
	if (is_final(candidate->probe.verdict)) {
		finder->best = *candidate;
		return true;
	}
	if (candidate->probe.verdict == PY_ATTACH_NOT_PYTHON)
		return false;
	log_candidate(candidate, "candidate");
	if (candidate->probe.verdict == PY_ATTACH_OK) {
		candidate->threads = count_threads(finder, candidate);
		finder->live++;
	}
	if (is_better(candidate, &finder->best))
		finder->best = *candidate;
	return false;
}

/* ---- by ELF headers ---- */

/*
 * Link address of the runtime. Names how, or NULL when the file has none. Libraries export the symbol
 * wherever it is needed (before 3.10, where there is no section), so those whose hash table denies it are not
 * searched; a program that was linked with a libpython.a need not.
 */
static const char *find_in_headers(const struct image *image, struct image_file *file, uint64_t *vaddr)
{
	if (!image_file__section(file, ".PyRuntime", vaddr))
		return "section";
	if ((image->is_program || image_file__may_export(file, "_PyRuntime")) &&
	    !image_file__symbol(file, "_PyRuntime", vaddr))
		return "symbol";
	return NULL;
}

static bool try_headers(struct finder *finder, const struct image *image, struct image_file *file,
			uint64_t vaddr, const char *how)
{
	for (size_t i = 0; i < file->biases_cnt; i++) {
		struct candidate candidate = {
			.image = image,
			.addr = file->biases[i] + vaddr,
			.bias = file->biases[i],
			.how = how,
		};

		if (try_address(finder, &candidate, file))
			return true;
	}
	return false;
}

/* ---- by the cookie ---- */

static size_t find_cookies(const uint8_t *bytes, size_t len, py_addr addr, py_addr *hits, size_t max)
{
	size_t count = 0;

	for (size_t i = 0; i + 8 <= len && count < max; i += SCAN_ALIGN) {
		if (!memcmp(bytes + i, "xdebugpy", 8))
			hits[count++] = addr + i;
	}
	return count;
}

/* Mappings begin on pages, so chunks keep the alignment. Unreadable parts are skipped. */
static size_t scan_mapping(struct finder *finder, const struct map_entry *entry, uint8_t *chunk,
			   py_addr *hits, size_t max)
{
	size_t count = 0;

	for (py_addr at = entry->start; at < entry->end && finder->scan_bytes && count < max;
	     at += SCAN_CHUNK) {
		struct remote_segment segment = {
			.addr = at,
			.dest = chunk,
			.len = min_u64(min_u64(entry->end - at, SCAN_CHUNK), finder->scan_bytes),
		};

		if (remote__read_batch(finder->remote, &segment, 1))
			break;
		finder->scan_bytes -= segment.len;
		count += find_cookies(chunk, segment.got, at, hits + count, max - count);
	}
	return count;
}

static bool scan_image(struct finder *finder, const struct image *image, struct image_file *file)
{
	py_addr hits[SCAN_MAX_HITS];
	uint8_t *chunk = malloc(SCAN_CHUNK);
	size_t count = 0;
	bool over = false;

	for (size_t i = 0; chunk && i < image->count; i++) {
		if (image->entries[i]->write)
			count += scan_mapping(finder, image->entries[i], chunk, hits + count,
					      SCAN_MAX_HITS - count);
	}
	free(chunk);
	for (size_t i = 0; i < count && !over; i++) {
		struct candidate candidate = {.image = image, .addr = hits[i], .how = "scan"};

		if (file && file->biases_cnt)
			candidate.bias = file->biases[0];
		over = try_address(finder, &candidate, NULL);
	}
	return over;
}

/* ---- images ---- */

/* The file stays open with the finder if its runtime is the best so far. */
static void keep_or_close(struct finder *finder, const struct image *image, struct image_file *file)
{
	if (finder->best.image == image) {
		image_file__close(&finder->file);
		finder->file = *file;
	} else {
		image_file__close(file);
	}
}

/* Only to name it, so only if nothing else is known. */
static void try_ancient(struct finder *finder, const struct image *image, struct image_file *file)
{
	struct candidate candidate = {
		.probe.verdict = PY_ATTACH_NOT_PYTHON,
		.image = image,
		.how = "name",
	};

	if (finder->best.probe.verdict != PY_ATTACH_NOT_PYTHON)
		return;
	py_old__describe_ancient(&candidate.probe, file, image__path(image));
	if (candidate.probe.verdict != PY_ATTACH_NOT_PYTHON)
		finder->best = candidate;
}

static bool search_image(struct finder *finder, const struct image *image)
{
	struct image_file file;
	const char *how;
	uint64_t vaddr;
	bool over = false;
	int err = image_file__open(&file, finder->images.pid, image);

	if (err == -ENOEXEC)
		return false;
	if (err) { /* unlinked and not ours to open: its memory is still there */
		if (image->looks_python && !finder->closed) {
			finder->closed = image;
			finder->closed_err = err;
		}
		return scan_image(finder, image, NULL);
	}
	how = find_in_headers(image, &file, &vaddr);
	if (how)
		over = try_headers(finder, image, &file, vaddr, how);
	else if (!image_file__has_sections(&file))
		over = scan_image(finder, image, &file);
	if (!how && (image->is_program || image->looks_python))
		try_ancient(finder, image, &file);
	keep_or_close(finder, image, &file);
	return over;
}

/* One pass over the images that are likely, or over the others. Returns whether the search is over. */
static bool search_images(struct finder *finder, bool likely)
{
	for (size_t i = 0; i < finder->images.items.len; i++) {
		const struct image *image = &finder->images.items.items[i];

		if ((image->is_program || image->looks_python) != likely ||
		    image->writable_bytes < (likely ? 1 : MIN_WRITABLE_BYTES))
			continue;
		if (search_image(finder, image))
			return true;
	}
	return finder->best.probe.verdict == PY_ATTACH_OK;
}

/* Threads of the others have no Python frames as far as this one knows, which is nobody's wish. */
static void tell_choice(const struct finder *finder)
{
	char version[24];
	struct buf path = {};

	buf__add_escaped(&path, image__path(finder->best.image), NULL);
	buf__addc(&path, '\0');
	log_warn("process %d has %zu live Python runtimes; taking the one of Python %s in %s",
		 finder->remote->pid, finder->live,
		 py_version_format(finder->best.probe.offsets.version, version, sizeof(version)),
		 path.err ? "" : path.data);
	buf__free(&path);
}

/* To 3.12 the memory alone does not tell where the runtime is. */
static enum py_attach_error explain_closed(const struct finder *finder, char *reason, size_t reason_size)
{
	struct buf path = {};

	buf__add_escaped(&path, image__path(finder->closed), NULL);
	buf__addc(&path, '\0');
	snprintf(reason, reason_size,
		 "its file %s cannot be opened (%s), without which its Python is not found; deleted, "
		 "replaced and hidden files need CAP_CHECKPOINT_RESTORE, and those of another user "
		 "CAP_DAC_READ_SEARCH",
		 path.err ? "" : path.data, strerror(-finder->closed_err));
	buf__free(&path);
	return PY_ATTACH_DENIED;
}

static void fill(struct py_runtime *out, struct finder *finder)
{
	const struct candidate *best = &finder->best;

	out->addr = best->addr;
	out->offsets = best->probe.offsets;
	out->how = best->how;
	snprintf(out->image, sizeof(out->image), "%s", image__path(best->image));
	out->file = finder->file;
	out->bias = best->bias;
	finder->file = (struct image_file){.fd = -1};
}

enum py_attach_error py_runtime__find(struct py_runtime *out, struct remote *remote, char *reason,
				      size_t reason_size)
{
	struct finder finder = {
		.remote = remote,
		.best.probe.verdict = PY_ATTACH_NOT_PYTHON,
		.file.fd = -1,
		.scan_bytes = SCAN_MAX_BYTES,
	};
	int err = images__read(&finder.images, remote->pid);
	enum py_attach_error verdict;

	*out = (struct py_runtime){.file.fd = -1};
	if (err)
		return py_attach_errno(err, reason, reason_size);
	if (!search_images(&finder, true))
		search_images(&finder, false);

	verdict = finder.best.probe.verdict;
	snprintf(reason, reason_size, "%s", finder.best.probe.reason);
	if (finder.live > 1 && verdict == PY_ATTACH_OK)
		tell_choice(&finder);
	if (verdict == PY_ATTACH_OK)
		fill(out, &finder);
	if (verdict == PY_ATTACH_NOT_PYTHON && finder.closed)
		verdict = explain_closed(&finder, reason, reason_size);
	image_file__close(&finder.file);
	images__free(&finder.images);
	return verdict;
}

void py_runtime__close(struct py_runtime *runtime)
{
	if (runtime)
		image_file__close(&runtime->file);
}

int py_runtime__symbol(struct py_runtime *runtime, const char *name, py_addr *addr)
{
	uint64_t vaddr;

	if (runtime->file.fd < 0 || image_file__symbol(&runtime->file, name, &vaddr))
		return -ENOENT;
	*addr = runtime->bias + vaddr;
	return 0;
}
