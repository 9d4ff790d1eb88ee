/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tree that is drawn: the profile's, merged by what a box is (a function, or one of its lines), of all
 * stacks or of one process or thread, from callers to callees or the other way round. As in the profile, a
 * parent stands before its children, so most questions are one pass over arrays.
 */

const NOTHING = 0xffffffff;
const INVERTED_NODES_MAX = 1500000;
const INVERTED_STEPS_MAX = 30000000;

class Tree {
	constructor(profile, options, expected) {
		this.profile = profile;
		this.byLine = options.by === "line";
		this.inverted = options.inverted;
		this.scope = options.scope;
		/* One more than there are keys: stands for callers that are left out. */
		this.more = (this.byLine ? profile.frames : profile.functions).line.length;
		this.size = 1;
		this.allocate(Math.max(1024, expected));
		this.key[0] = NOTHING;
		this.sorted = new Map();
	}

	allocate(capacity) {
		const grow = (Type, old) => {
			const array = new Type(capacity);
			if (old)
				array.set(old);
			return array;
		};
		this.capacity = capacity;
		this.key = grow(Uint32Array, this.key);
		this.parent = grow(Uint32Array, this.parent);
		this.depth = grow(Uint32Array, this.depth);
		this.first = grow(Uint32Array, this.first); /* child; 0: none */
		this.next = grow(Uint32Array, this.next); /* sibling */
		this.self = grow(Float64Array, this.self);
		this.total = grow(Float64Array, this.total);
		if (this.profile.sides)
			this.sides = [0, 1].map(side => ({
				self: grow(Float64Array, this.sides?.[side].self),
				total: grow(Float64Array, this.sides?.[side].total),
			}));
		this.slots = new Uint32Array(2 ** Math.ceil(Math.log2(capacity * 2)));
		for (let id = 1; id < this.size; id++)
			this.slots[this.slot(this.parent[id], this.key[id])] = id;
	}

	/* Where the child of a node is, or belongs: open addressing over (parent, key). */
	slot(parent, key) {
		const mask = this.slots.length - 1;
		let i = (Math.imul(parent, 0x9e3779b1) ^ Math.imul(key + 1, 0x85ebca6b)) >>> 0;
		i = (i ^ (i >>> 15)) & mask;
		for (;; i = (i + 1) & mask) {
			const id = this.slots[i];
			if (!id || (this.parent[id] === parent && this.key[id] === key))
				return i;
		}
	}

	child(parent, key) {
		const slot = this.slot(parent, key);
		if (this.slots[slot])
			return this.slots[slot];
		if (this.size === this.capacity) {
			this.allocate(this.capacity * 2);
			return this.child(parent, key);
		}
		const id = this.size++;
		this.slots[slot] = id;
		this.key[id] = key;
		this.parent[id] = parent;
		this.depth[id] = this.depth[parent] + 1;
		this.next[id] = this.first[parent];
		this.first[parent] = id;
		return id;
	}

	/* --- what a node is --- */

	keyOf(raw) {
		return this.byLine ? this.profile.frame[raw] : this.profile.functionOf(raw);
	}

	/* Its function; -1: the root, or callers that are left out. */
	functionOf(id) {
		const key = this.key[id];
		if (id === 0 || key === this.more)
			return -1;
		return this.byLine ? this.profile.frames.function[key] : key;
	}

	lineOf(id) {
		const key = this.key[id];
		if (this.functionOf(id) < 0)
			return 0;
		return this.byLine ? this.profile.frames.line[key] : this.profile.functions.line[key];
	}

	name(id) {
		if (id === 0)
			return this.inverted ? "all, by what was executing" : "all";
		const fn = this.functionOf(id);
		return fn < 0 ? "[more callers]" : this.profile.functionName(fn);
	}

	place(id) {
		const fn = this.functionOf(id);
		return fn < 0 ? "" : this.profile.place(fn, this.lineOf(id));
	}

	/* The name as it stands in a box. */
	label(id) {
		const line = this.byLine ? this.lineOf(id) : 0;
		const change = this.sides && id ? ` ${points(this.change(id))}` : "";
		return (line ? `${this.name(id)}:${line < 0 ? "~" : ""}${Math.abs(line)}` : this.name(id)) + change;
	}

	/* Of two profiles: how much the share of a box has grown, of 1. */
	change(id) {
		return this.sides[1].total[id] - this.sides[0].total[id];
	}

	/* Children of at least that weight, the heaviest first. */
	children(id, least) {
		const known = this.sorted.get(id);
		if (known && known.least <= least)
			return known.ids;
		const ids = [];
		for (let child = this.first[id]; child; child = this.next[child])
			if (this.total[child] >= least && this.total[child] > 0)
				ids.push(child);
		ids.sort((a, b) => this.total[b] - this.total[a] || a - b);
		this.sorted.set(id, {least, ids});
		return ids;
	}

	/* For each node, whether it is `top` or below it. */
	below(top) {
		const is = new Uint8Array(this.size);
		is[top] = 1;
		for (let id = top + 1; id < this.size; id++)
			is[id] = is[this.parent[id]];
		return is;
	}

	/* Weight of the stacks in which a function is marked, each once. */
	matched(marks) {
		const covered = new Uint8Array(this.size);
		let sum = 0;
		for (let id = 1; id < this.size; id++) {
			const fn = this.functionOf(id), parent = covered[this.parent[id]];
			covered[id] = parent || (fn >= 0 && marks[fn]);
			if (covered[id] && !parent)
				sum += this.total[id];
		}
		return sum;
	}
}

/*
 * options: by "function" or "line", inverted, scope (a node of the profile, 0: all; -1: all, processes and
 * threads merged).
 */
function buildTree(profile, options) {
	const tree = new Tree(profile, options, Math.min(profile.size, 1 << 18));
	if (options.inverted)
		fillInverted(tree, profile, options.scope);
	else
		fillTree(tree, profile, options.scope);
	return tree;
}

function fillTree(tree, profile, scope) {
	const nodes = new Uint32Array(profile.size).fill(NOTHING);
	nodes[0] = scope > 0 ? NOTHING : 0;
	for (let raw = 1; raw < profile.size; raw++) {
		const parent = raw === scope ? 0 : nodes[profile.parent[raw]];
		if (parent === NOTHING)
			continue;
		const id = scope < 0 && profile.isRoot(raw) ? parent : tree.child(parent, tree.keyOf(raw));
		nodes[raw] = id;
		tree.self[id] += profile.self[raw];
		tree.sides?.forEach((side, k) => { side.self[id] += profile.sides[k][raw]; });
	}
	tree.nodeOf = nodes;
	for (const weights of [tree, ...(tree.sides ?? [])]) {
		for (let id = tree.size - 1; id > 0; id--) {
			weights.total[id] += weights.self[id];
			weights.total[tree.parent[id]] += weights.total[id];
		}
		weights.total[0] += weights.self[0];
	}
}

/* All stacks go one caller up at a time, until there are too many of them. */
function fillInverted(tree, profile, scope) {
	const inScope = new Uint8Array(profile.size);
	inScope[Math.max(scope, 0)] = 1;
	tree.inScope = inScope;
	let stacks = [];
	for (let raw = 1; raw < profile.size; raw++) {
		inScope[raw] ||= inScope[profile.parent[raw]];
		if (inScope[raw] && (profile.self[raw] || profile.sides?.some(side => side[raw])))
			stacks.push({at: raw, node: 0, raw, weight: profile.self[raw]});
	}
	const add = (what, stack) => {
		tree[what][stack.node] += stack.weight;
		tree.sides?.forEach((side, k) => { side[what][stack.node] += profile.sides[k][stack.raw]; });
	};
	for (const stack of stacks)
		add("total", stack);
	for (let steps = 0; stacks.length; steps += stacks.length) {
		const full = tree.size > INVERTED_NODES_MAX || steps > INVERTED_STEPS_MAX;
		const on = [];
		for (const stack of stacks) {
			while (scope < 0 && stack.at && profile.isRoot(stack.at))
				stack.at = profile.parent[stack.at];
			if (!stack.at || !inScope[stack.at]) {
				add("self", stack);
				continue;
			}
			stack.node = tree.child(stack.node, full ? tree.more : tree.keyOf(stack.at));
			add("total", stack);
			stack.at = profile.parent[stack.at];
			if (full)
				add("self", stack);
			else
				on.push(stack);
		}
		stacks = on;
	}
}
