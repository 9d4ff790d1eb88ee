/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What differs between kernels. User space chooses the variant at load (run/sampler_load.c).
 */
#pragma once

/*
 * bpf_loop came with 5.17 (e6f2dd0f8067). Before that (and from 5.13 on, 69c087ba6225) a callback over the
 * elements of an array is a loop whose body the verifier also looks at once; the array is there to be
 * counted, its values are not used. A plain loop of this body is refused as too large from 20 turns on.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * PBP_MAX_FRAMES);
	__type(key, __u32);
	__type(value, __u8);
} loop_turns SEC(".maps");

/* Define NAME_turn(), the form of `step` that bpf_for_each_map_elem calls. */
#define LOOP_BODY(step, type)                                                                                \
	static long step##_turn(void *map, __u32 *turn, void *value, type *context)                          \
	{                                                                                                    \
		return step(*turn, context);                                                                 \
	}

/* Run step(i, context) until it returns 1, at most `steps` times. `use_loop` is a constant at every call. */
#define repeat(use_loop, steps, step, context)                                                               \
	do {                                                                                                 \
		if (use_loop)                                                                                \
			bpf_loop((steps), (step), (context), 0);                                             \
		else                                                                                         \
			bpf_for_each_map_elem(&loop_turns, step##_turn, (context), 0);                       \
	} while (0)
