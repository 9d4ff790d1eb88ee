/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See doctor.h.
 */
#include "run/doctor.h"

#include "base/util.h"
#include "os/pidns.h"
#include "run/permission.h"
#include "run/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define KERNEL_MAJOR 5
#define KERNEL_MINOR 15

/* First line of a small file, "" when it cannot be read. */
static void read_line(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, out, size - 1);

	if (fd >= 0)
		close(fd);
	out[len > 0 ? len : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
}

static void row(const char *what, bool ok, const char *text)
{
	printf("  %-16s %-4s %s\n", what, ok ? "yes" : "NO", text);
}

static bool check_kernel(void)
{
	struct utsname name;
	int major = 0, minor = 0;
	char text[160];
	bool ok;

	uname(&name);
	sscanf(name.release, "%d.%d", &major, &minor);
	ok = major > KERNEL_MAJOR || (major == KERNEL_MAJOR && minor >= KERNEL_MINOR);
	snprintf(text, sizeof(text), "Linux %.64s %.32s%s", name.release, name.machine,
		 ok ? "" : "; 5.15 or later is needed");
	row("kernel", ok, text);
#ifndef __x86_64__
	row("processor", false, "x86-64 is needed");
	ok = false;
#endif
	return ok;
}

static bool check_btf(void)
{
	bool ok = !access("/sys/kernel/btf/vmlinux", R_OK);

	row("kernel types", ok,
	    ok ? "/sys/kernel/btf/vmlinux"
	       : "no /sys/kernel/btf/vmlinux: a kernel with CONFIG_DEBUG_INFO_BTF is needed");
	return ok;
}

static void check_capabilities(void)
{
	const char *missing = permission__missing(PERMISSION_ALL);

	row("capabilities", !*missing, *missing ? missing : "CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE");
	missing = permission__missing(PERMISSION_FILES);
	row("any binary", !*missing,
	    *missing ? "deleted or replaced libraries need CAP_CHECKPOINT_RESTORE; others are opened by path"
		     : "deleted and replaced libraries can be opened (map_files)");
}

static void check_settings(void)
{
	char text[160], paranoid[32], unprivileged[32], yama[32], lockdown[64];

	read_line("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof(paranoid));
	read_line("/proc/sys/kernel/unprivileged_bpf_disabled", unprivileged, sizeof(unprivileged));
	read_line("/proc/sys/kernel/yama/ptrace_scope", yama, sizeof(yama));
	read_line("/sys/kernel/security/lockdown", lockdown, sizeof(lockdown));
	snprintf(text, sizeof(text), "perf_event_paranoid %s, ptrace_scope %s", *paranoid ? paranoid : "n/a",
		 *yama ? yama : "n/a");
	printf("  %-16s      %s,\n", "settings", text);
	printf("  %-16s      unprivileged_bpf_disabled %s\n", "", *unprivileged ? unprivileged : "n/a");
	if (strstr(lockdown, "[confidentiality]"))
		row("lockdown", false, "confidentiality mode forbids BPF to read memory");
}

static void check_numbers(const char *fault)
{
	row("process numbers", !fault,
	    fault		 ? fault
	    : pidns__is_nested() ? "those of this pid namespace: processes outside of it cannot be seen"
				 : "the machine's own");
}

/* Load the program and put it on a timer of this very process. */
static enum doctor_verdict try_sampler(void)
{
	struct sampler_config config = {.rate_hz = 99};
	struct sampler *sampler = NULL;
	char reason[512];
	int err = sampler__open(&sampler, &config, reason, sizeof(reason));

	if (err)
		permission__add_hint(reason, sizeof(reason));
	row("load BPF", !err,
	    err				      ? reason
	    : *sampler__kernel_notes(sampler) ? sampler__kernel_notes(sampler)
					      : "with bpf_loop");
	if (!err) {
		err = sampler__attach(sampler, getpid());
		row("CPU timer", !err,
		    err ? strerror(-err) : "on the thread where there is one, else on the CPUs");
	}
	sampler__close(sampler);
	return !err				 ? DOCTOR_OK
	       : err == -EPERM || err == -EACCES ? DOCTOR_NOT_PERMITTED
						 : DOCTOR_NOT_POSSIBLE;
}

enum doctor_verdict doctor__run(void)
{
	const char *fault = pidns__proc_fault(), *missing;
	enum doctor_verdict verdict;
	bool possible;

	printf("pybpfprof " PYBPFPROF_VERSION "\n");
	possible = check_kernel();
	possible = check_btf() && possible;
	check_capabilities();
	check_settings();
	check_numbers(fault);
	verdict = try_sampler();
	missing = permission__missing(PERMISSION_BPF);
	if (fault || (!possible && verdict == DOCTOR_NOT_PERMITTED))
		verdict = DOCTOR_NOT_POSSIBLE;
	if (fault)
		printf("=> nothing can be profiled here: process numbers, see above\n");
	else if (verdict == DOCTOR_OK && *permission__missing(PERMISSION_ALL))
		printf("=> profiling works here, for processes of this user only\n");
	else if (verdict == DOCTOR_OK)
		printf("=> profiling works here: pybpfprof -p PID\n");
	else if (verdict == DOCTOR_NOT_PERMITTED)
		printf("=> BPF is not permitted here: %s\n"
		       "   without it, the readv engine serves for processes that you may read (of the same "
		       "user)\n",
		       *missing ? missing : "load BPF, see above");
	else
		printf("=> BPF does not work on this kernel; the readv engine does: pybpfprof -p PID\n");
	return verdict;
}
