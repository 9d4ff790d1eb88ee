/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What this kernel, user and container can do, on stdout, and for what cannot be done, how to enable it.
 * Tries the real thing where it can be tried (loads the BPF program, opens a timer on itself) instead of
 * concluding from settings.
 */
#pragma once

enum doctor_verdict {
	DOCTOR_OK,
	DOCTOR_NOT_PERMITTED,
	DOCTOR_NOT_POSSIBLE, /* the kernel lacks something */
};

enum doctor_verdict doctor__run(void);
