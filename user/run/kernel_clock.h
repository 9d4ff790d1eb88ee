/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's own tick as a clock (bpf/clock.bpf.h): how often it comes, and whether it can serve.
 */
#pragma once

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

/* How often it ticks on each CPU that is not idle; 0: not known. */
uint32_t kernel_clock__hz(void);
/* Can samples be taken at this rate? 0; or -EINVAL with the reason. */
int kernel_clock__check(uint32_t rate_hz, char *reason, size_t reason_size);
/* Ticks to one sample, as the kernel side counts them. */
uint32_t kernel_clock__stride(uint32_t rate_hz);
/* Until the kernel side has met it. 0, or -ENOTSUP with the reason. */
int kernel_clock__wait(const __u64 *function, char *reason, size_t reason_size);
