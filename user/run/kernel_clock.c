/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See kernel_clock.h.
 */
#include "run/kernel_clock.h"

#include "base/clock.h"
#include "os/cpus.h"

#include <errno.h>
#include <stdio.h>

#define TICK_ONE (1u << 16)	/* as in bpf/clock.bpf.h */
#define WAIT_NS	 200000000ull /* ticks are 10 ms apart at most */

uint32_t kernel_clock__hz(void)
{
	uint64_t ns = cpus__tick_ns();

	return ns ? (1000000000ull + ns / 2) / ns : 0;
}

int kernel_clock__check(uint32_t rate_hz, char *reason, size_t reason_size)
{
	uint32_t hz = kernel_clock__hz();
	char tickless[64];

	cpus__tickless(tickless, sizeof(tickless));
	if (*tickless)
		snprintf(reason, reason_size,
			 "--clock tick: some CPUs (%s) have none while they run one task (nohz_full); use "
			 "--clock perf",
			 tickless);
	else if (rate_hz > hz)
		snprintf(reason, reason_size,
			 "--clock tick: the kernel ticks %u times a second, so that is the highest rate; "
			 "-r %u takes --clock perf",
			 hz, rate_hz);
	return *tickless || rate_hz > hz ? -EINVAL : 0;
}

uint32_t kernel_clock__stride(uint32_t rate_hz)
{
	uint64_t stride = 1000000000ull * TICK_ONE / (cpus__tick_ns() * rate_hz);

	return stride < TICK_ONE ? TICK_ONE : stride;
}

/* Busily, since a CPU that is idle does not tick. */
int kernel_clock__wait(const __u64 *function, char *reason, size_t reason_size)
{
	uint64_t until = now_ns() + WAIT_NS;

	while (now_ns() < until)
		if (__atomic_load_n(function, __ATOMIC_RELAXED))
			return 0;
	snprintf(reason, reason_size,
		 "--clock tick: it is not among this kernel's high-resolution timers (as with highres=off); "
		 "use --clock perf");
	return -ENOTSUP;
}
