/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Containers: real ones of the OCI runtimes, and cgroups and state files laid out as Docker, Podman and
 * Kubernetes lay them out. A test has a mount namespace of its own, so that neither the machine's files nor
 * its containers are touched.
 */
#include "groups.h"
#include "service.h"

#include "base/util.h"
#include "os/proc.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FAILED = 1 };

#define A   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define B   "01239876543210fedcba9876543210fedcba9876543210fedcba987654321001"
#define POD "6b1ff6e0_7a3c_4c55_8a4e_0f3a1c2d3e4f"

static void mount_empty(const char *dir)
{
	check(!mount("none", dir, "tmpfs", 0, NULL), "cannot mount %s: %s", dir, strerror(errno));
}

/* A machine without containers. */
static void have_own_files(void)
{
	check(!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL),
	      "no mount namespace: %s", strerror(errno));
	mount_empty("/run");
	mount_empty("/var/lib");
	mount_empty("/home");
}

static void make_folders(char *path)
{
	for (char *at = path + 1; (at = strchr(at, '/')); *at++ = '/') {
		*at = '\0';
		check(!mkdir(path, 0755) || errno == EEXIST, "cannot make %s: %s", path, strerror(errno));
	}
}

/* With the folders that it is in. */
static void put_file(const char *text, const char *format, ...)
{
	char path[CHILD_PATH];
	va_list args;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	make_folders(path);
	write_file(path, text);
}

static void put_docker(const char *id, const char *name)
{
	char text[512];

	snprintf(text, sizeof(text), "{\"State\":{\"Running\":true},\"ID\":\"%s\",\"Name\":\"/%s\"}", id,
		 name);
	put_file(text, "/var/lib/docker/containers/%s/config.v2.json", id);
}

static struct target *spin_in(const char *group)
{
	struct target *target = start(pick("3.14", "debian"), "spin.py");

	enter_group(group, target->pid);
	return target;
}

/* That process has samples, and no other has. */
static void check_only(const struct run *run, const struct target *target)
{
	check_profile(run, 0);
	check(of_process(run, target->pid, "spin") >= 10 &&
		      of_process(run, target->pid, NULL) == run->stacks.total,
	      "process %d has %llu of %llu samples: %s", target->pid,
	      (unsigned long long)of_process(run, target->pid, "spin"), (unsigned long long)run->stacks.total,
	      run->err);
}

static struct run *run_of(const char *container)
{
	return service__run(service__profiled(OPTIONS("-q", "-d", "1", "--container", container)));
}

static void check_unknown(const char *container, const char *why)
{
	struct run *run = run_of(container);

	check(run->code == FAILED && strstr(run->err, why), "%s: exit code %d: %s", container, run->code,
	      run->err);
}

static void check_names(const char *mount)
{
	const char *top = make_group(mount, NULL), *docker = make_group(top, "docker");
	struct target *first = spin_in(make_group(docker, A)), *second = spin_in(make_group(docker, B));

	put_docker(A, "testweb");
	put_docker(B, "testdb");
	put_docker("5" A, "no-id");
	put_docker("fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210", "stopped");
	check_only(run_of("testweb"), first);
	check_only(run_of(A), first);
	check_only(run_of("012398765432"), second);
	check_only(run_of("01239876543210FE"), second);
	check_unknown("0123", "2 may be meant: ");
	check_unknown("012", "no process is in a container");
	check_unknown("stopped", "Docker knows it, but no process");
	check_unknown("other", "no process is in a container");
	check_unknown(strrchr(top, '/') + 1, "there is a cgroup of that name");
}

GROUP_TEST(containers, names)
{
	have_own_files();
	check_names(unified_mount());
}

/* Where version 2 has them all in its root. */
GROUP_TEST(containers, names_on_v1)
{
	have_own_files();
	check_names(legacy_mount());
}

/* Two with the same name, and one name that is in Kubernetes' as well. */
GROUP_TEST(containers, pods)
{
	const char *top, *pod;
	struct target *first, *second;
	struct run *run;

	have_own_files();
	top = make_group(unified_mount(), NULL);
	pod = make_group(make_group(top, "kubepods.slice"), "kubepods-burstable-pod" POD ".slice");
	first = spin_in(make_group(pod, "crio-" A ".scope"));
	second = spin_in(make_group(pod, "cri-containerd-" B ".scope"));
	put_file("[{\"id\":\"" A "\",\"names\":[\"k8s_testweb_testshop_prod_" POD "_0\"]}]",
		 "/var/lib/containers/storage/overlay-containers/containers.json");
	put_file("{\"annotations\":{\"io.kubernetes.cri.container-name\":\"log\","
		 "\"io.kubernetes.cri.sandbox-name\":\"testshop\",\"io.kubernetes.cri.sandbox-namespace\":"
		 "\"prod\"}}",
		 "/run/containerd/io.containerd.runtime.v2.task/k8s.io/" B "/config.json");
	check_only(run_of("testweb"), first);
	check_only(run_of("testshop/log"), second);
	run = run_of("6b1ff6e0-7a3c-4c55-8a4e-0f3a1c2d3e4f");
	check_profile(run, 0);
	check(of_process(run, first->pid, "spin") >= 10 && of_process(run, second->pid, "spin") >= 10,
	      "the pod: %s", run->err);
	put_docker(B, "testweb");
	check_unknown("testweb", "2 may be meant: ");
}

/* crun takes nearly any name, and a cgroup that has another. */
GROUP_TEST(containers, odd_names)
{
	char longest[200] = "", text[CHILD_PATH], path[CHILD_PATH];
	const char *const names[] = {".testweb", longest};
	const char *mount = unified_mount(), *group;
	struct proc_stat stat;
	struct target *target;

	have_own_files();
	memset(longest, 'x', sizeof(longest) - 1);
	group = make_group(make_group(mount, NULL), "group");
	target = spin_in(group);
	check(!proc__stat(target->pid, &stat), "no stat of %d", target->pid);
	snprintf(text, sizeof(text), "{\"pid\":%d,\"process-start-time\":%llu,\"cgroup-path\":\"%s\"}", target->pid,
		 (unsigned long long)stat.start_ticks, group + strlen(mount));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "/run/crun/%s", names[i]);
		put_file(text, "%s/status", path);
		check_only(run_of(names[i]), target);
		check(!unlink(strcat(path, "/status")), "unlink: %s", strerror(errno));
	}
}

#define STORAGE "/.local/share/containers/storage/overlay-containers/containers.json"

/* Users have containers, too; but what a user plants there instead of a file is not looked at. */
GROUP_TEST(containers, files_of_users)
{
	struct target *target;

	have_own_files();
	target = spin_in(make_group(make_group(unified_mount(), NULL), "libpod-" A ".scope"));
	put_file("[{\"id\":\"" A "\",\"names\":[\"testshop\"]}]", "/home/bob" STORAGE);
	put_file("", "/home/eve/.local/share/docker/containers/" A "/x");
	put_file("", "/home/eve/.local/share/containers/storage/overlay-containers/x");
	check(!mkfifo("/home/eve/.local/share/docker/containers/" A "/config.v2.json", 0644), "mkfifo: %s",
	      strerror(errno));
	check_only(run_of("testshop"), target);
	check(!rename("/home/bob" STORAGE, "/home/file"), "rename: %s", strerror(errno));
	check(!symlink("/home/file", "/home/eve" STORAGE), "symlink: %s", strerror(errno));
	check_unknown("testshop", "no process is in a container");
}

/* Everything, by the container that it is in. */
GROUP_TEST(containers, told_apart)
{
	const char *top, *report = NULL;
	struct service *service;
	struct run *run;
	char path[CHILD_PATH], of_web[16];

	have_own_files();
	top = make_group(unified_mount(), NULL);
	start(pick("3.13", "debian"), "spin.py");
	snprintf(of_web, sizeof(of_web), "%d", spin_in(make_group(top, "docker-" A ".scope"))->pid);
	spin_in(make_group(make_group(top, "libpod-" B ".scope"), "container"));
	put_docker(A, "web;1 \\u001b[31m");
	snprintf(path, sizeof(path), "%s/report.json", scratch_folder(""));
	service = service__profiled(
		OPTIONS("-q", "-a", "-d", "2", "--by", "container", "--report", path, "--comm", "python3*"));
	run = service__run(service);
	check_profile_of_all(run);
	check(stacks__with(&run->stacks, "[host]") > 10, "host: %s", run->err);
	check(strstr(run->err, "container  web;1 \\x1b[31m (0123456789ab): 1 process") &&
		      strstr(run->err, "container  012398765432 (unnamed):") &&
		      strstr(run->err, "none (host)"),
	      "it says: %s", run->err);
	run = service__run(service__profiled(OPTIONS("-q", "-d", "1", "--by", "container", "-p", of_web)));
	check_profile(run, 0);
	check(stacks__with(&run->stacks, "container web\\x3b1 \\x1b[31m") == run->stacks.total,
	      "of one process: %s", run->err);
	report = read_text(path);
	check(strstr(report, "\"id\": \"" A "\", \"name\": \"web;1 \\u001b[31m\""), "the report has: %s", report);
	check(strstr(report, "\"id\": \"" B "\", \"name\": null"), "the report has: %s", report);
}

/* --- real ones --- */

#define CONFIG                                                                                               \
	"{\"ociVersion\":\"1.0.2\",\"process\":{\"terminal\":false,\"user\":{\"uid\":0,\"gid\":0},\"cwd\":"  \
	"\"/\","                                                                                             \
	"\"args\":[\"%s\",\"%s\"],\"env\":[\"PATH=/usr/"                                                     \
	"bin\",\"PBP_LIMIT=100\"]},\"root\":{\"path\":\"%s\"},"                                              \
	"\"mounts\":[{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"}],"                    \
	"\"linux\":{\"cgroupsPath\":\"%s/box\",\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"mount\"},"     \
	"{\"type\":\"ipc\"},{\"type\":\"uts\"}]}}"

struct box {
	const struct python *python;
	const char *cgroup;	  /* of this test, as the runtime wants it: they are shown version 2 only */
	const char *interpreter;  /* inside */
	char program[CHILD_PATH]; /* inside */
};

static struct box prepare_box(const char *runtime)
{
	struct box box = {.python = pick("3.14", "debian")};
	char text[CHILD_PATH];

	snprintf(text, sizeof(text), "command -v %s >/dev/null", runtime);
	if (system(text))
		cr_skip_test("SKIPPED: %s is not installed (scripts/setup --test)", runtime);
	unified_mount();
	have_own_files();
	check(!umount2("/sys/fs/cgroup", MNT_DETACH) && !mount("none", "/sys/fs/cgroup", "cgroup2", 0, NULL),
	      "version 2 alone: %s", strerror(errno));
	box.cgroup = make_group("/sys/fs/cgroup", NULL) + strlen("/sys/fs/cgroup");
	box.interpreter = strrchr(box.python->command, ' ') + 1;
	snprintf(text, sizeof(text), "%s/spin.py", scratch_folder(box.python->root));
	copy_file("tests/targets/spin.py", text);
	snprintf(box.program, sizeof(box.program), "%s", text + strlen(box.python->root));
	return box;
}

/* What `argv` starts is the only thing in the container called `name`. */
static void check_container(const char *const *argv, const char *name)
{
	struct target *stranger = start(pick("3.14", "debian"), "spin.py");
	struct child *container = child__start(&(struct child_config){.argv = argv});
	struct run *run;

	check(child__wait_line(container, "ready", 60), "%s does not start it: %s", argv[0],
	      child__err(container));
	run = run_of(name);
	check_profile(run, 0);
	check(percent(run, stacks__with(&run->stacks, "spin")) > 90 && !of_process(run, stranger->pid, NULL),
	      "spin has %.1f %%: %s", percent(run, stacks__with(&run->stacks, "spin")), run->err);
	check(strstr(run->err, "1 process, "), "it says: %s", run->err);
}

/* A container of its own root, pids and cgroup. */
static void check_runtime(const char *runtime, const char *state, const char *name)
{
	struct box box = prepare_box(runtime);
	const char *folder = scratch_folder("");
	char path[CHILD_PATH], text[4096];

	snprintf(text, sizeof(text), CONFIG, box.interpreter, box.program, box.python->root, box.cgroup);
	snprintf(path, sizeof(path), "%s/config.json", folder);
	write_file(path, text);
	check_container(
		(const char *const[]){runtime, "--root", state, "run", "--bundle", folder, name, NULL}, name);
}

GROUP_TEST(containers, runc)
{
	check_runtime("runc", "/run/runc", "test-1");
}

/* It was told to keep its files elsewhere. */
GROUP_TEST(containers, crun)
{
	check_runtime("crun", "/run/other", "test-2");
}

/* By its name, which stands in Podman's files, and these are elsewhere: its monitor has it, too. What it may
 * not do as root in a container is switched off. */
GROUP_TEST(containers, podman)
{
	struct box box = prepare_box("podman");
	char root[CHILD_PATH], parent[128];

	snprintf(root, sizeof(root), "%s:O", box.python->root);
	snprintf(parent, sizeof(parent), "--cgroup-parent=%s", box.cgroup);
	check_container((const char *const[]){"podman", "--root=/run/other", "--cgroup-manager=cgroupfs",
					      "--runtime=runc", "--events-backend=file", "run",
					      "--name=testshop", "--network=none", "--pids-limit=-1",
					      "--ulimit=nofile=1000:1000", "--ulimit=nproc=1000:1000",
					      "--security-opt=seccomp=unconfined", parent, "--rootfs", root,
					      box.interpreter, box.program, NULL},
			"testshop");
}
