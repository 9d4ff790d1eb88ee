/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The auxiliary vector of a process: what the kernel told it at exec. Tells its main program from its
 * libraries by address, whatever the files are called and in whichever namespace they lie.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/*
 * Address of the main program's ELF program headers (AT_PHDR): lies inside its image. 0 or -errno (-ENOENT:
 * none).
 */
int auxv__program_headers(pid_t pid, uint64_t *addr);
