/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Batched reads: of this process, which the kernel treats like any other, with holes in its address space
 * made for the purpose; and of processes that are gone or not ours.
 */
#include "os/remote.h"

#include "base/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* Pages filled with their numbers (1, 2, ...); those in `holes` (bit n = page n) are unmapped. */
static uint8_t *make_pages(size_t count, unsigned int holes)
{
	uint8_t *pages = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(pages, MAP_FAILED);
	for (size_t i = 0; i < count; i++) {
		memset(pages + i * PAGE, i + 1, PAGE);
		if (holes >> i & 1)
			munmap(pages + i * PAGE, PAGE);
	}
	return pages;
}

static py_addr addr_of(const void *p)
{
	return (uintptr_t)p;
}

Test(remote, one_call_for_a_batch)
{
	uint8_t *pages = make_pages(4, 0), a[10], b[PAGE], c[1];
	struct remote_segment segments[] = {
		{addr_of(pages), a, sizeof(a), 99},
		{addr_of(pages + PAGE - 1), b, sizeof(b), 99},
		{addr_of(pages + 4 * PAGE - 1), c, 1, 99},
	};
	struct remote remote;

	remote__init(&remote, getpid());
	cr_assert_eq(remote__read_batch(&remote, segments, 3), 0);
	cr_expect(segments[0].got == 10 && segments[1].got == PAGE && segments[2].got == 1);
	cr_expect(a[9] == 1 && b[0] == 1 && b[1] == 2 && b[PAGE - 1] == 2 && c[0] == 4);
	cr_expect_eq(remote.stats.calls, 1);
	cr_expect_eq(remote.stats.segments, 3);
	cr_expect_eq(remote.stats.bytes, 10 + PAGE + 1);
	cr_expect_eq(remote.stats.faults, 0);
}

Test(remote, goes_on_behind_faults)
{
	/* 1 _ 3 _ _ 6 */
	uint8_t *pages = make_pages(6, 1 << 1 | 1 << 3 | 1 << 4), dest[6][PAGE] = {};
	struct remote_segment segments[6];
	struct remote remote;

	for (int i = 0; i < 6; i++)
		segments[i] = (struct remote_segment){addr_of(pages + i * PAGE), dest[i], PAGE, 99};
	remote__init(&remote, getpid());
	cr_assert_eq(remote__read_batch(&remote, segments, 6), 0);
	for (int i = 0; i < 6; i++) {
		bool hole = i == 1 || i == 3 || i == 4;

		cr_expect_eq(segments[i].got, hole ? 0 : PAGE, "segment %d", i);
		cr_expect_eq(dest[i][PAGE - 1], hole ? 0 : i + 1, "segment %d", i);
	}
	cr_expect_eq(remote.stats.faults, 3);
	cr_expect_leq(remote.stats.calls, 4);
	cr_expect_eq(remote.stats.bytes, 3 * PAGE);
}

Test(remote, short_segment_keeps_its_front)
{
	uint8_t *pages = make_pages(4, 1 << 2), long_dest[3 * PAGE] = {}, last[8];
	struct remote_segment segments[] = {
		{addr_of(pages + 100), long_dest, 3 * PAGE, 0}, /* into the hole */
		{addr_of(pages + 3 * PAGE), last, sizeof(last), 0},
	};
	struct remote remote;

	remote__init(&remote, getpid());
	cr_assert_eq(remote__read_batch(&remote, segments, 2), 0);
	cr_expect_eq(segments[0].got, 2 * PAGE - 100);
	cr_expect_eq(long_dest[2 * PAGE - 101], 2);
	cr_expect_eq(long_dest[2 * PAGE - 100], 0);
	cr_expect_eq(segments[1].got, sizeof(last));
	cr_expect_eq(last[7], 4);
}

Test(remote, empty_segments)
{
	uint8_t *pages = make_pages(2, 1 << 1), a[4], b[4];
	struct remote_segment segments[] = {
		{0, NULL, 0, 99},	   {addr_of(pages + PAGE), b, 4, 99}, /* the first byte faults */
		{UINT64_MAX, NULL, 0, 99}, {addr_of(pages), a, 4, 99},	      {0, NULL, 0, 99},
	};
	struct remote remote;

	remote__init(&remote, getpid());
	cr_expect_eq(remote__read_batch(&remote, segments, 0), 0);
	cr_expect_eq(remote__read_batch(&remote, segments, 1), 0);
	cr_assert_eq(remote__read_batch(&remote, segments, 5), 0);
	cr_expect(segments[0].got == 0 && segments[1].got == 0 && segments[2].got == 0 &&
		  segments[3].got == 4 && segments[4].got == 0);
	cr_expect_eq(a[3], 1);
	cr_expect_eq(remote.stats.faults, 1);
}

Test(remote, more_than_iov_max)
{
	enum { COUNT = 3 * IOV_MAX + 7 };
	struct remote_segment *segments = calloc(COUNT, sizeof(*segments));
	uint64_t *source = calloc(COUNT, sizeof(*source)), *dest = calloc(COUNT, sizeof(*dest));
	struct remote remote;

	for (size_t i = 0; i < COUNT; i++) {
		source[i] = i * i + 1;
		segments[i] = (struct remote_segment){addr_of(&source[i]), &dest[i], sizeof(*dest), 0};
	}
	segments[IOV_MAX - 1].addr = 8; /* faults at both sides of a window */
	segments[IOV_MAX].addr = 8;
	remote__init(&remote, getpid());
	cr_assert_eq(remote__read_batch(&remote, segments, COUNT), 0);
	for (size_t i = 0; i < COUNT; i++) {
		bool hole = i == IOV_MAX - 1 || i == IOV_MAX;

		cr_assert_eq(segments[i].got, hole ? 0 : sizeof(*dest), "segment %zu", i);
		cr_assert_eq(dest[i], hole ? 0 : source[i], "segment %zu", i);
	}
	/* Four windows, and one more where a fault came first. */
	cr_expect_eq(remote.stats.calls, 5);
	cr_expect_eq(remote.stats.segments, COUNT);
	free(segments);
	free(source);
	free(dest);
}

/* Every segment bad: one call each at most, and an end. */
Test(remote, all_fault)
{
	enum { COUNT = IOV_MAX + 1 };
	static struct remote_segment segments[COUNT];
	static uint8_t dest[16];
	struct remote remote;

	for (size_t i = 0; i < COUNT; i++)
		segments[i] = (struct remote_segment){i % 2 ? 16 : UINT64_MAX - 7, dest, sizeof(dest), 99};
	remote__init(&remote, getpid());
	cr_assert_eq(remote__read_batch(&remote, segments, COUNT), 0);
	for (size_t i = 0; i < COUNT; i++)
		cr_assert_eq(segments[i].got, 0);
	cr_expect_eq(remote.stats.faults, COUNT);
	cr_expect_leq(remote.stats.calls, COUNT);
}

Test(remote, read_is_whole_or_nothing)
{
	uint8_t *pages = make_pages(2, 1 << 1), dest[16];
	struct remote remote;

	remote__init(&remote, getpid());
	cr_expect_eq(remote__read(&remote, addr_of(pages), dest, 16), 0);
	cr_expect_eq(dest[15], 1);
	cr_expect_eq(remote__read(&remote, addr_of(pages + PAGE - 8), dest, 16), -EFAULT, "short");
	cr_expect_eq(remote__read(&remote, 0, dest, 16), -EFAULT);
	cr_expect_eq(remote__read(&remote, UINT64_MAX - 3, dest, 16), -EFAULT, "wraps around");
	cr_expect_eq(remote__read(&remote, 0xffffffff81000000, dest, 16), -EFAULT, "kernel");
	cr_expect_eq(remote__read(&remote, addr_of(pages), dest, 0), 0);
	cr_expect_eq(remote.stats.calls, 6);
	cr_expect_eq(remote.stats.segments, 6);
	cr_expect_eq(remote.stats.faults, 4);
	cr_expect_eq(remote.stats.bytes, 16 + 8);
}

Test(remote, another_process)
{
	uint8_t *pages = make_pages(1, 0), dest[8];
	struct remote remote;
	int ready[2];
	pid_t pid;
	char c;

	cr_assert_eq(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		memset(pages, 77, PAGE);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	cr_assert_eq(read(ready[0], &c, 1), 1);
	remote__init(&remote, pid);
	cr_expect_eq(remote__read(&remote, addr_of(pages), dest, 8), 0);
	cr_expect_eq(dest[7], 77, "its memory, not ours");

	kill(pid, SIGKILL);
	waitid(P_PID, pid, NULL, WEXITED | WNOWAIT);
	cr_expect_eq(remote__read(&remote, addr_of(pages), dest, 8), -ESRCH, "a zombie");
	waitpid(pid, NULL, 0);
	cr_expect_eq(remote__read(&remote, addr_of(pages), dest, 8), -ESRCH);

	struct remote_segment segments[2] = {{addr_of(pages), dest, 8, 99}, {addr_of(pages), dest, 8, 99}};

	cr_expect_eq(remote__read_batch(&remote, segments, 2), -ESRCH);
	cr_expect(segments[0].got == 0 && segments[1].got == 0);
}

Test(remote, not_permitted)
{
	uint8_t dest[8];
	struct remote_segment segment = {addr_of(dest), dest, 8, 99};
	struct remote remote;
	pid_t pid = fork();
	int status;

	/* Not the parent as an unprivileged user; pid 1 if that is what we are. */
	if (!pid) {
		remote__init(&remote, getuid() ? 1 : getppid());
		if (!getuid() && setuid(65534))
			_exit(2);
		_exit(remote__read_batch(&remote, &segment, 1) == -EPERM && segment.got == 0 &&
				      remote__read(&remote, addr_of(dest), dest, 8) == -EPERM
			      ? 0
			      : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
}

static void *wait_for_ever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

/* From now on the kernel answers reads of memory as for a thread that has none. */
static void refuse_reads(void)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ESRCH),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = ARRAY_SIZE(steps), .filter = steps};

	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* Threads that are held up while they exit live, as far as /proc tells, and have no memory: there is an end. */
Test(remote, threads_without_memory)
{
	struct remote_segment segment = {8, &segment, 8, 99};
	struct remote remote;
	uint64_t value;
	pthread_t thread;
	int ready[2];
	pid_t pid;
	char c;

	cr_assert_eq(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!pthread_create(&thread, NULL, wait_for_ever, NULL) && write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	cr_assert_eq(read(ready[0], &c, 1), 1);
	remote__init(&remote, pid);
	refuse_reads();
	alarm(20);
	cr_expect_eq(remote__read(&remote, addr_of(&value), &value, 8), -ESRCH);
	cr_expect_eq(remote__read_batch(&remote, &segment, 1), -ESRCH);
	cr_expect_eq(segment.got, 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
