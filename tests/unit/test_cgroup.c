/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where cgroups are mounted and which one a process is in, by texts as kernels write them, with names as
 * anybody may choose them.
 */
#include "os/cgroup.h"

#include "os/cgroup_walk.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- mounts --- */

static struct cgroup_mounts mounts;

static void parse(const char *text)
{
	cr_assert_eq(cgroup_mounts__parse(&mounts, text), 0);
}

static void expect_mount(size_t index, const char *dir, const char *root, const char *controllers)
{
	cr_assert_lt(index, mounts.items.len);
	cr_expect_str_eq(mounts.items.items[index].dir, dir);
	cr_expect_str_eq(mounts.items.items[index].root, root);
	cr_expect_str_eq(mounts.items.items[index].controllers, controllers);
}

Test(cgroup, mounts_of_a_hybrid)
{
	parse("31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
	      "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
	      "33 31 0:30 / /sys/fs/cgroup/perf_event rw - cgroup cgroup rw,perf_event\n"
	      "34 31 0:31 / /sys/fs/cgroup/systemd rw shared:1 master:2 - cgroup cgroup "
	      "rw,xattr,name=systemd\n"
	      "35 31 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n");
	cr_assert_eq(mounts.items.len, 4);
	expect_mount(0, "/sys/fs/cgroup/unified", "/", "");
	expect_mount(1, "/sys/fs/cgroup/perf_event", "/", "rw,perf_event");
	expect_mount(2, "/sys/fs/cgroup/cpu,cpuacct", "/", "rw,cpu,cpuacct");
	expect_mount(3, "/sys/fs/cgroup/systemd", "/", "rw,xattr,name=systemd");
	cgroup_mounts__free(&mounts);
}

Test(cgroup, mounts_with_escapes)
{
	parse("1 2 0:3 /a\\040b\\134x2d\\011 /mnt/c\\012d\\040- rw - cgroup2 - rw\n");
	expect_mount(0, "/mnt/c\nd -", "/a b\\x2d\t", "");
	cgroup_mounts__free(&mounts);
	parse("1 2 0:3 /a\\04 /mnt/\\999\\ rw - cgroup2 none rw\n");
	expect_mount(0, "/mnt/\\999\\", "/a\\04", "");
	cgroup_mounts__free(&mounts);
}

/* As after "unshare -C", where the old one is still there. */
Test(cgroup, mounts_of_our_namespace_come_first)
{
	parse("1 2 0:3 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	      "3 2 0:4 / /mnt/memory rw - cgroup cgroup rw,memory\n"
	      "4 2 0:3 / /mnt rw - cgroup2 cgroup2 rw\n");
	expect_mount(0, "/mnt", "/", "");
	expect_mount(1, "/mnt/memory", "/", "rw,memory");
	expect_mount(2, "/sys/fs/cgroup", "/../..", "");
	cgroup_mounts__free(&mounts);
}

Test(cgroup, texts_that_are_no_mounts)
{
	static const char *const texts[] = {"",
					    "\n",
					    "- - -",
					    "1 2 0:3 / /x rw - cgroup2 x",
					    "1 2 0:3 / /x rw cgroup2 x rw\n",
					    "1 2 0:3 / - - cgroup2 none rw",
					    "1 2 0:3 / /x rw - cgroup2fs none rw\n"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		parse(texts[i]);
		cr_expect_eq(mounts.items.len, 0, "%s", texts[i]);
		cgroup_mounts__free(&mounts);
	}
}

/* --- a process --- */

static const char hybrid[] = "9:name=systemd:/user.slice\n"
			     "4:memory:/box/in\n"
			     "3:cpu,cpuacct:/\n"
			     "2:perf_event:/a:b\n"
			     "0::/pod/web app\\x2d1 (deleted)\n";

static bool has(const char *controllers, const char *path, const char *text)
{
	return cgroup__has(&(struct cgroup){.controllers = (char *)controllers, .path = (char *)path}, text);
}

Test(cgroup, of_a_process)
{
	cr_expect(has("", "/pod", hybrid));
	cr_expect(has("", "/pod/web app\\x2d1 (deleted)", hybrid));
	cr_expect(has("", "/", hybrid));
	cr_expect(!has("", "/po", hybrid));
	cr_expect(!has("", "/pod/web", hybrid), "the beginning of a name is not a cgroup");
	cr_expect(!has("", "/pod/web app\\x2d1 (deleted)/in", hybrid));
	cr_expect(!has("", "/box", hybrid), "of another hierarchy");
	cr_expect(has("rw,memory", "/box", hybrid));
	cr_expect(has("rw,memory", "/box/in", hybrid));
	cr_expect(!has("rw,memory", "/pod", hybrid));
	cr_expect(has("rw,xattr,name=systemd", "/user.slice", hybrid));
	cr_expect(has("rw,cpu,cpuacct", "/", hybrid));
	cr_expect(!has("rw,cpuset", "/", hybrid));
	cr_expect(has("rw,perf_event", "/a:b", hybrid));
	cr_expect(!has("rw,perf_event", "/b", hybrid));
}

/* What lies outside of the profiler's cgroup namespace. */
Test(cgroup, outside_of_the_namespace)
{
	cr_expect(has("", "/../other", "0::/../other/in\n"));
	cr_expect(!has("", "/in", "0::/../other/in\n"));
	cr_expect(!has("", "/", "0::/../other/in\n"));
	cr_expect(!has("", "/", "0::/..\n"));
	cr_expect(has("", "/", "0::/..in\n"));
}

Test(cgroup, lines)
{
	const char *at = "x\n:\n1:a\n0:::/\n12:cpu,cpuacct:/x\n5:memory:no path\n0::/";
	struct cgroup_line line;

	cr_assert(cgroup_line__next(&at, &line));
	cr_expect_eq(line.path_len, 2);
	cr_expect(cgroup_line__is_of(&line, "rw,cpu,cpuacct"));
	cr_expect(!cgroup_line__is_of(&line, ""));
	cr_expect_eq(cgroup_line__rank(&line), 2);
	cr_assert(cgroup_line__next(&at, &line));
	cr_expect_eq(line.path_len, 1, "the last one need not end");
	cr_expect(cgroup_line__is_of(&line, ""));
	cr_expect(!cgroup_line__is_of(&line, "rw,cpu"));
	cr_expect_eq(cgroup_line__rank(&line), 0);
	cr_expect(!cgroup_line__next(&at, &line));
}

Test(cgroup, own)
{
	static char text[CGROUP_TEXT_BYTES];
	const char *at = text;
	struct cgroup_line line;

	cr_assert_eq(cgroup__read_process(getpid(), text, sizeof(text)), 0);
	cr_expect(cgroup_line__next(&at, &line));
	cr_expect_eq(cgroup__read_process(getpid(), text, 8), -E2BIG);
	cr_expect_eq(cgroup__read_process(0x7ffffff, text, sizeof(text)), -ESRCH);
}

/* --- directories --- */

static char folder[64];

static void make_folder(void)
{
	strcpy(folder, "/tmp/pybpfprof-cgroup.XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	cr_expect_eq(system(command), 0);
}

static void expect_found(const char *name, const char *path)
{
	struct buf reason = {0};
	struct cgroup cgroup;
	int err = cgroup__find(&cgroup, &mounts, name, &reason);

	cr_expect_eq(!err, path != NULL, "%s: %d", name, err);
	if (!err && path)
		cr_expect_str_eq(cgroup.path, path, "%s", name);
	cgroup__close(&cgroup);
	buf__free(&reason);
}

/* As the kernel (and systemctl show) tells it, from where the user is, with slashes behind. */
Test(cgroup, found_by_its_path, .init = make_folder, .fini = remove_folder)
{
	char text[256], path[128];

	snprintf(text, sizeof(text), "9 8 0:3 /pod %s rw - cgroup2 cgroup2 rw\n", folder);
	parse(text);
	snprintf(path, sizeof(path), "%s/box", folder);
	cr_assert_eq(mkdir(path, 0755), 0);
	expect_found(path, "/pod/box");
	strcat(path, "/in");
	cr_assert_eq(mkdir(path, 0755), 0);
	expect_found("/pod/box/in", "/pod/box/in");
	expect_found("/pod/box//", "/pod/box");
	expect_found("/pod", "/pod");
	expect_found("box/", "/pod/box");
	expect_found("in/", "/pod/box/in");
	expect_found("/in", NULL);
	expect_found(".", NULL);
	cr_assert_eq(chdir(path), 0);
	expect_found(".", "/pod/box/in");
	expect_found("../", "/pod/box");
	expect_found("../../..", NULL);
	cr_assert_eq(chdir("/"), 0);
	cgroup_mounts__free(&mounts);
}

static int count(void *context, const char *dir)
{
	size_t *seen = context;

	++*seen;
	return *seen == 3000 ? -EINTR : 0;
}

/* Deeper than there may be descriptors or a path may be long. */
Test(cgroup, walk_deep, .init = make_folder, .fini = remove_folder)
{
	size_t seen = 0, unread = 0;
	int fd = open(folder, O_RDONLY | O_DIRECTORY);

	for (int i = 0; i < 2500; i++) {
		int next;

		cr_assert_eq(mkdirat(fd, "d", 0755), 0);
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY);
		close(fd);
		fd = next;
	}
	close(fd);
	cr_expect_eq(cgroup_walk(folder, count, &seen, &unread), 0);
	cr_expect(seen > 2000 && seen < 2500, "%zu", seen);
	cr_expect_eq(unread, 1, "%zu", unread);
}

Test(cgroup, walk_wide_and_stopped, .init = make_folder, .fini = remove_folder)
{
	size_t seen = 0, unread = 0;
	char path[128];

	for (int i = 0; i < 1400; i++) {
		snprintf(path, sizeof(path), "%s/%d", folder, i);
		cr_assert_eq(mkdir(path, 0755), 0);
		strcat(path, "/a \t\\x2d\033[31m");
		cr_assert_eq(mkdir(path, 0755), 0);
	}
	cr_expect_eq(cgroup_walk(folder, count, &seen, &unread), 0);
	cr_expect(seen == 2801 && !unread, "%zu, %zu unread", seen, unread);
	cr_expect_eq(cgroup_walk(folder, count, &seen, &unread), -EINTR);
	cr_expect_eq(seen, 3000);
	cr_expect_eq(cgroup_walk("/nonesuch", count, &(size_t){0}, &unread), 0);
	cr_expect_eq(unread, 0, "what has gone is no fault");
}
