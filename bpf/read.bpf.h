/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading the target's memory, and what was read of it.
 */
#pragma once

/*
 * Offsets come from a map that could change under us: they are masked where they are used, not checked
 * before.
 */
static __always_inline __u64 scratch_u64(const __u8 *bytes, __u32 size, __u32 offset)
{
	return *(const __u64 *)(bytes + (offset & (size - 8)));
}

static __always_inline __u32 scratch_u32(const __u8 *bytes, __u32 size, __u32 offset)
{
	return *(const __u32 *)(bytes + (offset & (size - 4)));
}

static __always_inline __u64 read_user_u64(__u64 address)
{
	__u64 value = 0;

	bpf_probe_read_user(&value, sizeof(value), (void *)address);
	return value;
}

/* Read the thread state at `tstate` into scratch. 1 if it is this thread's, 0 if not, -1 if unreadable. */
static __always_inline int read_tstate(const struct pbp_target *target, struct scratch *scratch, __u64 tstate,
				       __u64 fsbase)
{
	if (!tstate)
		return 0;
	if (bpf_probe_read_user(scratch->tstate, target->ts_bytes & (PBP_TSTATE_BYTES - 1), (void *)tstate))
		return -1;
	return scratch_u64(scratch->tstate, PBP_TSTATE_BYTES, target->ts_thread_id) == fsbase;
}
