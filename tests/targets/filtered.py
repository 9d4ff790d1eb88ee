# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""filtered.py NUMBER:ERRNO,... COMMAND...: runs a command with a seccomp filter, as containers have one.

The system calls of those numbers (x86-64) fail with that errno there.
"""
import ctypes
import os
import struct
import sys

LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # BPF_LD | BPF_W | BPF_ABS; BPF_JMP | BPF_JEQ | BPF_K; BPF_RET | BPF_K
ALLOW, FAIL = 0x7FFF0000, 0x00050000  # SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO

program = struct.pack("HBBI", LOAD, 0, 0, 0)  # the number of the system call
for rule in sys.argv[1].split(","):
    number, errno = map(int, rule.split(":"))
    program += struct.pack("HBBI", EQUAL, 0, 1, number) + struct.pack("HBBI", RETURN, 0, 0, FAIL | errno)
program += struct.pack("HBBI", RETURN, 0, 0, ALLOW)
buffer = ctypes.create_string_buffer(program, len(program))
filter = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
# PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP with SECCOMP_MODE_FILTER
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, filter):
    raise OSError(ctypes.get_errno(), "prctl")
os.execv(sys.argv[2], sys.argv[2:])
