/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * /proc/PID/maps: the text as the kernel writes it and as it would not, and opening the mapped file after its
 * name was deleted, replaced, moved under another root or handed to something else.
 */
#include "os/maps.h"

#include "base/util.h"
#include "entry_at.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- parsing ---- */

/* From a copy of exactly that length. */
static void parse(struct maps *maps, const char *text, size_t len)
{
	char *copy = malloc(len ?: 1);

	memcpy(copy, text, len);
	cr_assert_eq(maps__parse(maps, copy, len), 0);
	free(copy);
}

static const char typical[] =
	"00400000-00425000 r--p 00000000 fe:00 1836109                            /usr/bin/python3.13\n"
	"00425000-00a2b000 r-xp 00025000 fe:00 1836109                            /usr/bin/python3.13\n"
	"01dce000-01f36000 rw-p 00000000 00:00 0                                  [heap]\n"
	"7f0e8c000000-7f0e8c021000 rw-p 00000000 00:00 0 \n"
	"7f0e90a00000-7f0e90b00000 rw-s fffff000 00:01 18446744073709551615       /memfd:a b (deleted)\n"
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";

Test(maps, typical)
{
	struct maps maps;
	struct map_entry *e;

	parse(&maps, typical, strlen(typical));
	cr_assert_eq(maps.entries.len, 6);
	e = maps.entries.items;
	cr_expect(e[0].start == 0x400000 && e[0].end == 0x425000 && e[0].offset == 0);
	cr_expect(e[0].read && !e[0].write && !e[0].exec);
	cr_expect(e[0].dev_major == 0xfe && e[0].dev_minor == 0 && e[0].inode == 1836109);
	cr_expect_str_eq(e[0].path, "/usr/bin/python3.13");
	cr_expect(e[1].offset == 0x25000 && e[1].exec && !e[1].write);
	cr_expect(e[2].write && e[2].inode == 0);
	cr_expect_str_eq(e[2].path, "[heap]");
	cr_expect_str_eq(e[3].path, "");
	cr_expect(e[4].offset == 0xfffff000 && e[4].inode == UINT64_MAX && e[4].dev_minor == 1);
	cr_expect_str_eq(e[4].path, "/memfd:a b (deleted)");
	cr_expect(e[5].start == 0xffffffffff600000 && !e[5].read && e[5].exec);
	maps__free(&maps);
	cr_expect_eq(maps.entries.len, 0);
	maps__free(&maps);
	maps__free(NULL);
}

Test(maps, paths)
{
	static const struct {
		const char *printed, *path;
	} cases[] = {
		{"/a\\012b", "/a\nb"},
		{"/\\012\\012", "/\n\n"},
		{"/a\\01", "/a\\01"},
		{"/a\\0121", "/a\n1"},
		{"/a\\134b", "/a\\134b"}, /* the kernel escapes nothing but newlines */
		{"/with  two blanks ", "/with  two blanks "},
		{"/real (deleted)", "/real (deleted)"},
		{"/\xff\x01", "/\xff\x01"},
		{"[anon:x y]", "[anon:x y]"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char line[256];
		struct maps maps;
		int len = snprintf(line, sizeof(line), "1000-2000 r--p 00000000 08:01 5    %s",
				   cases[i].printed);

		parse(&maps, line, len); /* no newline at the end */
		cr_assert_eq(maps.entries.len, 1);
		cr_expect_str_eq(maps.entries.items[0].path, cases[i].path);
		maps__free(&maps);
	}
}

Test(maps, malformed_lines_are_skipped)
{
	static const char text[] = "\n"
				   "1000-2000 r--p 00000000 08:01 5 /first\n"
				   "\n"
				   "garbage\n"
				   "3000\n"
				   "3000-\n"
				   "3000-4000\n"
				   "3000-4000 r--p\n"
				   "3000-4000 r-- 0 08:01 5 /short permissions\n"
				   "3000-4000 r--p 0 08-01 5 /no colon\n"
				   "3000-4000 r--p 0 08:01 /no inode\n"
				   "4000-3000 r--p 0 08:01 5 /backwards\n"
				   "3000-3000 r--p 0 08:01 5 /empty\n"
				   "10000000000000000-20000000000000000 r--p 0 08:01 5 /over 64 bits\n"
				   "3000-4000 r--p 0 08:01 99999999999999999999 /inode over 64 bits\n"
				   "-4000 r--p 0 08:01 5 /no start\n"
				   "0x3000-4000 r--p 0 08:01 5 /prefix\n"
				   "5000-6000 rwxs 1000 08:01 5 /last\n";
	struct maps maps;

	parse(&maps, text, strlen(text));
	cr_assert_eq(maps.entries.len, 2);
	cr_expect_str_eq(maps.entries.items[0].path, "/first");
	cr_expect_str_eq(maps.entries.items[1].path, "/last");
	maps__free(&maps);
}

Test(maps, cut_off_anywhere)
{
	for (size_t len = 0; len <= strlen(typical); len++) {
		struct maps maps;

		parse(&maps, typical, len);
		cr_expect_leq(maps.entries.len, 6);
		maps__free(&maps);
	}
}

Test(maps, out_of_order)
{
	static const char text[] = "5000-6000 r--p 0 08:01 5 /b\n1000-2000 r--p 0 08:01 5 /a\n";
	struct maps maps;

	parse(&maps, text, strlen(text));
	cr_expect_str_eq(maps.entries.items[0].path, "/a");
	cr_expect_str_eq(maps.entries.items[1].path, "/b");
	maps__free(&maps);
}

Test(maps, random_text)
{
	static const char alphabet[] = "0123456789abcdef-: \nrwxp/\\012\0";
	unsigned int seed = 1;

	for (int round = 0; round < 50000; round++) {
		char text[200];
		struct maps maps;
		size_t len = rand_r(&seed) % sizeof(text);

		for (size_t i = 0; i < len; i++)
			text[i] = alphabet[rand_r(&seed) % sizeof(alphabet)];
		/* Now and then most of a good line. */
		if (round % 2)
			memcpy(text, typical, min_u64(len, 60 + rand_r(&seed) % 30));
		parse(&maps, text, len);
		maps__free(&maps);
	}
}

Test(maps, huge)
{
	enum { COUNT = 100000 };
	size_t len = 0, size = COUNT * 120;
	char *text = malloc(size);
	struct maps maps;

	for (unsigned long i = 0; i < COUNT; i++)
		len += snprintf(text + len, size - len,
				"%lx-%lx rw-p 00000000 08:01 %lu   /lib/file-%lu.so\n", 0x1000 * i + 0x1000,
				0x1000 * i + 0x2000, i + 1, i);
	cr_assert_eq(maps__parse(&maps, text, len), 0);
	for (unsigned long i = 0; i < COUNT; i++)
		cr_assert_eq(maps.entries.items[i].inode, i + 1);
	cr_expect_eq(maps.entries.len, COUNT);
	maps__free(&maps);
	free(text);
}

/* ---- reading ---- */

Test(maps, own)
{
	const struct map_entry *entry;
	struct maps maps;
	int local;

	cr_assert_eq(maps__read(&maps, getpid()), 0);
	cr_expect_gt(maps.entries.len, 10);
	for (size_t i = 1; i < maps.entries.len; i++)
		cr_expect_leq(maps.entries.items[i - 1].end, maps.entries.items[i].start);
	entry = entry_at(&maps, (uintptr_t)maps__read);
	cr_assert(entry && entry->exec && !entry->write && entry->inode);
	entry = entry_at(&maps, (uintptr_t)&local);
	cr_expect(entry && entry->write && !entry->inode);
	maps__free(&maps);
}

Test(maps, gone)
{
	struct maps maps;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitid(P_PID, pid, NULL, WEXITED | WNOWAIT);
	cr_expect_eq(maps__read(&maps, pid), -ESRCH, "a zombie");
	waitpid(pid, NULL, 0);
	cr_expect_eq(maps__read(&maps, pid), -ESRCH);
	cr_expect_eq(maps.entries.len, 0);
}

/* ---- opening ---- */

enum how {
	PLAIN, /* left as it is */
	DELETED,
	REPLACED, /* another file has the name */
	FIFO,	  /* a FIFO has: opening that would wait for a writer for ever */
	CHANGES,
};

static char folder[] = "/tmp/pybpfprof-maps-XXXXXX";

static void make_folder(void)
{
	alarm(30); /* a FIFO that is opened after all would hang */
	cr_assert(mkdtemp(folder));
}

static void remove_folder(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_expect_eq(system(command), 0);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);

	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void *map_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

	close(fd);
	return p;
}

/* What the opened file of our own mapping at p says; "" with the error when it cannot be opened. */
static int open_mapping(void *p, char *text, size_t size)
{
	struct maps maps;
	const struct map_entry *entry;
	int fd;
	ssize_t len;

	text[0] = '\0';
	cr_assert_eq(maps__read(&maps, getpid()), 0);
	entry = entry_at(&maps, (uintptr_t)p);
	cr_assert(entry);
	fd = maps__open_file(getpid(), entry);
	maps__free(&maps);
	if (fd < 0)
		return fd;
	cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	cr_expect_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	len = read(fd, text, size - 1);
	text[len > 0 ? len : 0] = '\0';
	close(fd);
	return 0;
}

static void change(const char *path, enum how how)
{
	if (how != PLAIN)
		cr_assert_eq(unlink(path), 0);
	if (how == REPLACED)
		write_file(path, "impostor");
	if (how == FIFO)
		cr_assert_eq(mkfifo(path, 0644), 0);
}

/* Can we open map_files? */
static bool is_privileged(void)
{
	const struct map_entry *entry;
	struct maps maps;
	char path[64];
	int fd;

	cr_assert_eq(maps__read(&maps, getpid()), 0);
	entry = entry_at(&maps, (uintptr_t)maps__read);
	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", entry->start, entry->end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	close(fd);
	maps__free(&maps);
	return fd >= 0;
}

/* One file, mapped, changed and opened. Says what is wrong, if anything. */
static int try_name(const char *name, enum how how, bool privileged)
{
	char path[PATH_MAX], text[64];
	bool wrong;
	void *p;
	int err;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	write_file(path, "original");
	p = map_file(path);
	change(path, how);
	err = open_mapping(p, text, sizeof(text));
	munmap(p, 4096);
	unlink(path);

	wrong = how == PLAIN || privileged ? err || strcmp(text, "original") : !err;
	if (wrong)
		fprintf(stderr, "'%s', change %d, privileged %d: error %d, text '%s'\n", name, how,
			privileged, err, text);
	return wrong;
}

/*
 * Without the privilege for map_files only names are left, so a nameless file cannot be had, but never may
 * another one come in its place. Returns how many went wrong.
 */
static int try_names(bool privileged)
{
	static const char *const names[] = {
		"plain", "with blank", "real (deleted)", "new\nline", "back\\slash", "\xff\xfe",
	};
	int wrong = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		for (int how = PLAIN; how < CHANGES; how++)
			wrong += try_name(names[i], how, privileged);
	}
	return wrong;
}

Test(maps, open_file, .init = make_folder, .fini = remove_folder)
{
	cr_expect_eq(try_names(is_privileged()), 0);
}

/*
 * Become an ordinary user who may still look at itself. In a child: the folder is to be removed afterwards.
 */
static void drop_privileges(void)
{
	if (!getuid() && setuid(65534))
		_exit(100);
	prctl(PR_SET_DUMPABLE, 1);
	if (is_privileged())
		_exit(101);
}

Test(maps, open_file_unprivileged, .init = make_folder, .fini = remove_folder)
{
	pid_t pid;
	int status;

	cr_assert_eq(chmod(folder, 0777), 0);
	pid = fork();
	if (!pid) {
		drop_privileges();
		_exit(try_names(false));
	}
	waitpid(pid, &status, 0);
	cr_expect_eq(status, 0, "status %x", status);
}

/*
 * maps pads addresses to eight digits, the names in map_files are not padded; ET_EXEC programs lie that low.
 */
Test(maps, low_address, .init = make_folder, .fini = remove_folder)
{
	void *low = (void *)0x2000000;
	char path[PATH_MAX], text[64];
	int fd;

	if (!is_privileged())
		cr_skip_test("needs map_files");
	snprintf(path, sizeof(path), "%s/file", folder);
	write_file(path, "original");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_eq(mmap(low, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0), low);
	close(fd);
	unlink(path);
	cr_expect_eq(open_mapping(low, text, sizeof(text)), 0);
	cr_expect_str_eq(text, "original");
	munmap(low, 4096);
}

Test(maps, main_program)
{
	struct maps maps;
	struct stat opened, exe;
	const struct map_entry *entry;
	int fd;

	cr_assert_eq(maps__read(&maps, getpid()), 0);
	entry = entry_at(&maps, (uintptr_t)maps__read);
	cr_assert(entry);
	fd = maps__open_file(getpid(), entry);
	cr_assert_geq(fd, 0);
	cr_assert(!fstat(fd, &opened) && !stat("/proc/self/exe", &exe));
	cr_expect(opened.st_ino == exe.st_ino && opened.st_dev == exe.st_dev);
	close(fd);
	maps__free(&maps);
}

Test(maps, nothing_to_open)
{
	struct map_entry heap = {.start = 0x1000, .end = 0x2000, .path = "[heap]"};
	struct map_entry device = {.start = 0x1000, .end = 0x2000, .inode = 1, .path = "/dev/null"};
	struct map_entry other = {.start = 0x1000, .end = 0x2000, .inode = 1, .path = "/proc/self/exe"};
	struct map_entry long_path = {.start = 0x1000, .end = 0x2000, .inode = 1};
	struct stat st;

	cr_assert_eq(stat("/dev/null", &st), 0);
	device.inode = st.st_ino;
	device.dev_major = major(st.st_dev);
	device.dev_minor = minor(st.st_dev);
	cr_expect_eq(maps__open_file(getpid(), &heap), -ENOENT);
	cr_expect_lt(maps__open_file(getpid(), &device), 0, "not a regular file");
	cr_expect_lt(maps__open_file(getpid(), &other), 0, "another inode");

	long_path.path = malloc(2 * PATH_MAX);
	memset(long_path.path, '/', 2 * PATH_MAX - 1);
	long_path.path[2 * PATH_MAX - 1] = '\0';
	cr_expect_lt(maps__open_file(getpid(), &long_path), 0);
	free(long_path.path);
}

/* A child in another root, with a file mapped there that our root does not have under that name. */
static pid_t start_in_chroot(const char *root, const char *path, void **mapping)
{
	int pipe_fds[2];
	pid_t pid;

	cr_assert_eq(pipe(pipe_fds), 0);
	pid = fork();
	if (!pid) {
		void *p;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (chroot(root) || chdir("/"))
			_exit(1);
		p = map_file(path);
		if (write(pipe_fds[1], &p, sizeof(p)) == sizeof(p))
			pause();
		_exit(1);
	}
	close(pipe_fds[1]);
	cr_assert_eq(read(pipe_fds[0], mapping, sizeof(*mapping)), sizeof(*mapping));
	close(pipe_fds[0]);
	return pid;
}

static void expect_original(pid_t pid, void *mapping)
{
	const struct map_entry *entry;
	struct maps maps;
	char text[64] = "";
	int fd;

	cr_assert_eq(maps__read(&maps, pid), 0);
	entry = entry_at(&maps, (uintptr_t)mapping);
	cr_assert(entry);
	fd = maps__open_file(pid, entry);
	cr_expect_geq(fd, 0, "%s: %d", entry->path, fd);
	if (fd >= 0)
		cr_expect_gt(read(fd, text, sizeof(text) - 1), 0);
	cr_expect_str_eq(text, "original");
	close(fd);
	maps__free(&maps);
}

Test(maps, another_root, .init = make_folder, .fini = remove_folder)
{
	char path[PATH_MAX];
	void *mapping;
	pid_t pid;

	if (getuid())
		cr_skip_test("chroot needs root");
	snprintf(path, sizeof(path), "%s/file", folder);
	write_file(path, "original");
	pid = start_in_chroot(folder, "/file", &mapping);
	expect_original(pid, mapping);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void in_folder(char path[PATH_MAX], const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", folder, name);
}

/* merged/file from lower; the layers on two file systems, or they would share one device. */
static bool mount_overlay(void)
{
	static const char *const folders[] = {"lower", "merged", "upper", "upper/up", "upper/work"};
	char path[PATH_MAX], options[3 * PATH_MAX];

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		in_folder(path, folders[i]);
		cr_assert_eq(mkdir(path, 0755), 0);
		if (!strcmp(folders[i], "upper") && mount("tmpfs", path, "tmpfs", 0, NULL))
			return false;
	}
	in_folder(path, "lower/file");
	write_file(path, "original");
	in_folder(path, "merged");
	snprintf(options, sizeof(options), "lowerdir=%s/lower,upperdir=%s/upper/up,workdir=%s/upper/work",
		 folder, folder, folder);
	return !chmod(folder, 0755) && !mount("overlay", path, "overlay", 0, options);
}

static void unmount_overlay(void)
{
	char path[PATH_MAX];

	in_folder(path, "merged");
	umount2(path, MNT_DETACH);
	in_folder(path, "upper");
	umount2(path, MNT_DETACH);
	remove_folder();
}

/* On overlayfs stat and maps disagree about the device; a user without map_files must still get the file. */
Test(maps, overlayfs, .init = make_folder, .fini = unmount_overlay)
{
	char path[PATH_MAX], text[64];
	int status;
	pid_t pid;
	void *p;

	if (getuid() || !mount_overlay())
		cr_skip_test("needs root and overlayfs");
	in_folder(path, "merged/file");
	p = map_file(path);
	cr_expect_eq(open_mapping(p, text, sizeof(text)), 0);
	cr_expect_str_eq(text, "original");

	pid = fork();
	if (!pid) {
		drop_privileges();
		_exit(open_mapping(p, text, sizeof(text)) || strcmp(text, "original"));
	}
	waitpid(pid, &status, 0);
	cr_expect_eq(status, 0, "unprivileged: status %x", status);
	munmap(p, 4096);
}
