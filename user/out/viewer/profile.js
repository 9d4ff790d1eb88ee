/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The profile as user/out/flamegraph.c has written it, as arrays: the stack trie, in which a parent stands
 * before its children, and what its nodes are. Number 0 is the root.
 */

const KIND_PYTHON = 0;
const KIND_NOTE = 1;
const KIND_PROCESS = 2;
const KIND_THREAD = 3;
const KIND_CONTAINER = 4;
const CROWD_SHARE = 1 / 1000; /* of a window's width: about the least that can be seen */

class Profile extends Figures {
	constructor(data) {
		super(data);
		this.group = data.group;
		this.texts = data.texts;
		this.functions = data.functions;
		this.frames = data.frames;
		this.size = data.nodes.frame.length + 1;
		this.frame = new Uint32Array(this.size);
		this.parent = new Uint32Array(this.size);
		this.self = new Float64Array(this.size);
		this.total = new Float64Array(this.size);
		this.diff = data.diff ?? null;
		for (let id = 1; id < this.size; id++) {
			this.frame[id] = data.nodes.frame[id - 1];
			this.parent[id] = id - data.nodes.back[id - 1];
			this.self[id] = data.nodes.self[id - 1];
		}
		/* Of two profiles, base and new: what each node weighs as a share of all of its side. */
		this.sides = this.diff && [this.diff.base, this.diff.new].map((weights, side) =>
			Float64Array.from({length: this.size}, (_, id) =>
				id ? weights[id - 1] / this.diff.sides[side].total : 0));
		this.weigh("both");
	}

	/* Of two profiles a node weighs what it does in the "new" one, in the "base", or in "both" together. */
	weigh(by) {
		if (this.sides) {
			const [base, now] = this.sides, factor = [by !== "new", by !== "base"].map(Number);
			for (let id = 1; id < this.size; id++)
				this.self[id] = factor[0] * base[id] + factor[1] * now[id];
		}
		this.total.set(this.self);
		for (let id = this.size - 1; id > 0; id--)
			this.total[this.parent[id]] += this.total[id];
		this.whole = this.total[0];
	}

	weight(weight) {
		return this.sides ? this.share(weight) : super.weight(weight);
	}

	functionOf(id) {
		return this.frames.function[this.frame[id]];
	}

	kindOf(id) {
		return this.functions.kind[this.functionOf(id)];
	}

	isRoot(id) {
		const kind = this.kindOf(id);
		return kind === KIND_PROCESS || kind === KIND_THREAD || kind === KIND_CONTAINER;
	}

	/* Processes, threads and containers, at whose stacks a reader may want to look alone. */
	roots() {
		const roots = [];
		for (let id = 1; id < this.size; id++)
			if (this.isRoot(id))
				roots.push(id);
		return roots.sort((a, b) => this.total[b] - this.total[a]);
	}

	/* Are they so many that most of the time is of those which are too narrow to draw? */
	isCrowded() {
		const least = this.whole * CROWD_SHARE;
		let narrow = 0;
		for (let id = 1; id < this.size; id++)
			if (this.total[id] < least && this.total[this.parent[id]] >= least && this.isRoot(id))
				narrow += this.total[id];
		return narrow > this.whole / 2;
	}

	functionName(fn) {
		return this.texts[this.functions.name[fn]] || "[unnamed]";
	}

	functionFile(fn) {
		return this.functions.kind[fn] === KIND_PYTHON ? this.texts[this.functions.file[fn]] : "";
	}

	/* "app.py:12"; "app.py:~12" where the line is approximate. */
	place(fn, line) {
		const file = this.functionFile(fn);
		return line ? `${file}:${line < 0 ? "~" : ""}${Math.abs(line)}` : file;
	}
}
