/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What boxes are filled with. Texts in them are nearly black on light boxes, nearly white on dark ones, so
 * every fill keeps to a lightness: at least 70 % in the light theme, at most 26 % in the dark one.
 */

/* By enum frame_kind: hue and saturation. */
const KIND_COLORS = {
	1: [230, 8], /* annotations, but for: */
	2: [215, 22], /* processes */
	3: [200, 22], /* threads */
	4: [235, 22], /* containers */
};

/*
 * Annotations that are what a thread did instead of running its code, by how they begin: in words, hue,
 * saturation, and where it is in the range of lightness. What comes first counts.
 */
const REASONS = [
	["[holds the GIL", "holds the GIL", 130, 60, 0.5],
	["[holder", "holder of the GIL", 85, 45, 1],
	["[GIL]", "waits for the GIL", 0, 90, 0],
	["[waits for the GIL]", "waits for the GIL", 0, 90, 0],
	["[stop-the-world]", "stop-the-world", 345, 60, 0.5],
	["[lock]", "lock", 268, 75, 0.5],
	["[I/O: ", "I/O", 212, 90, 0.3],
	["[sleep]", "sleep", 195, 35, 1],
	["[child process]", "child process", 170, 60, 0],
	["[waits for a CPU]", "waits for a CPU", 28, 95, 0.3],
	["[stopped]", "stopped", 50, 30, 0],
	["[in the kernel]", "in the kernel", 235, 30, 0.2],
	["[system call: ", "system call", 235, 30, 0.2],
	["[GC]", "GC", 60, 85, 0.5],
].map(([begin, words, ...color]) => ({begin, words, color}));

const THEMES = {
	light: {
		text: "#111114",
		page: "#ffffff",
		lightness: [74, 84],
		rest: "#c9c9d0", /* boxes too narrow to draw */
		match: "#f08cf0",
		mark: "#00256e",
	},
	dark: {
		text: "#f6f6fa",
		page: "#16171b",
		lightness: [18, 26],
		rest: "#3d3f47",
		match: "#8a1f8a",
		mark: "#d2e3fc",
	},
};

/* Hues of modules, without those about 305, which are of matches. */
const HUES = 24;
const HUES_FROM = 325;
const HUES_RANGE = 320;

const PACKAGES = "(?:site|dist)-packages";
const FOREIGN = new RegExp(`(?:/${PACKAGES}|/lib(?:64)?/python3?[.\\d]*t?)/(?:${PACKAGES}/)?([^/]+)`);

function hash(text) {
	let h = 2166136261;
	for (let i = 0; i < text.length; i++)
		h = Math.imul(h ^ text.charCodeAt(i), 16777619) >>> 0;
	return h;
}

/*
 * The module that a file belongs to: the package below site-packages or the library, else the folder that it
 * is in. And whether it is of somebody else.
 */
function moduleOf(file) {
	const foreign = FOREIGN.exec(file);
	if (foreign)
		return {name: foreign[1].replace(/\.py$/, ""), foreign: true};
	if (file.startsWith("<"))
		return {name: file, foreign: true};
	const parts = file.split("/");
	return {name: parts.length > 1 ? parts[parts.length - 2] || "/" : file, foreign: false};
}

class Colors {
	constructor(profile) {
		this.profile = profile;
		const files = new Map();
		this.moduleOfFunction = profile.functions.name.map((_, fn) => {
			const file = profile.functionFile(fn);
			if (!files.has(file))
				files.set(file, moduleOf(file));
			return files.get(file);
		});
		this.reasonOfFunction = profile.functions.kind.map((kind, fn) =>
			kind === KIND_NOTE ? REASONS.find(({begin}) => profile.functionName(fn).startsWith(begin)) : undefined);
		this.fills = new Map();
		this.hues = this.chooseHues();
	}

	/* Those that the profile has: [words, fill]. */
	reasons() {
		const known = new Map();
		for (const reason of REASONS)
			if (this.reasonOfFunction.includes(reason))
				known.set(reason.words, this.hsl(...reason.color));
		return [...known];
	}

	/* By name of a module. Those that take most time get hues of their own, the nearest to their hash. */
	chooseHues() {
		const weights = new Map(), hues = new Map(), taken = new Set();
		for (let id = 1; id < this.profile.size; id++) {
			const {name} = this.moduleOfFunction[this.profile.functionOf(id)];
			if (this.profile.kindOf(id) === KIND_PYTHON)
				weights.set(name, (weights.get(name) ?? 0) + this.profile.self[id]);
		}
		for (const [name] of [...weights].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))) {
			let slot = hash(name) % HUES;
			while (taken.size < HUES && taken.has(slot))
				slot = (slot + 1) % HUES;
			taken.add(slot);
			hues.set(name, Math.round(HUES_FROM + (slot + 0.5) * HUES_RANGE / HUES) % 360);
		}
		return hues;
	}

	use(theme, scheme) {
		this.theme = THEMES[theme];
		this.scheme = scheme;
		this.fills.clear();
	}

	fill(tree, id) {
		const fn = tree.functionOf(id);
		if (this.scheme === "change")
			return this.changeFill(tree, id);
		const key = this.scheme === "self" ? `self${this.selfStep(tree, id)}` : fn;
		let fill = this.fills.get(key);
		if (!fill) {
			fill = this.scheme === "self" ? this.selfFill(this.selfStep(tree, id)) : this.moduleFill(fn);
			this.fills.set(key, fill);
		}
		return fill;
	}

	hsl(hue, saturation, step) {
		const [from, to] = this.theme.lightness;
		return `hsl(${hue} ${saturation}% ${from + (to - from) * step}%)`;
	}

	moduleFill(fn) {
		const kind = fn < 0 ? KIND_NOTE : this.profile.functions.kind[fn], reason = this.reasonOfFunction[fn];
		if (reason)
			return this.hsl(...reason.color);
		if (KIND_COLORS[kind])
			return this.hsl(...KIND_COLORS[kind], 0.5);
		const module = this.moduleOfFunction[fn];
		const step = 0.3 + 0.4 * (hash(this.profile.functionName(fn)) % 8) / 7;
		return this.hsl(this.hues.get(module.name), module.foreign ? 50 : 78, step);
	}

	/* How much of a box is the function itself, in eighths. */
	selfStep(tree, id) {
		return id && tree.total[id] ? Math.ceil(8 * tree.self[id] / tree.total[id]) : 0;
	}

	selfFill(step) {
		return step ? this.hsl(48 - 5.5 * step, 55 + 5 * step, 1 - step / 8) : this.hsl(220, 8, 1);
	}

	/*
	 * Of two profiles: red is more than before, blue is less, and the fuller the more of the box it is; told apart
	 * by whoever sees colours differently, too, and by the sign in the box.
	 */
	changeFill(tree, id) {
		const [base, now] = tree.sides.map(side => side.total[id]);
		const most = Math.max(base, now), ratio = most ? (now - base) / most : 0;
		const step = Math.ceil(4 * Math.abs(ratio) - 0.2);
		return step > 0 ? this.changeStep(ratio > 0 ? step : -step) : this.changeStep(0);
	}

	/* -4 to 4 */
	changeStep(step) {
		const strength = Math.abs(step) / 4, dark = this.theme.lightness[1] < 50;
		if (!step)
			return this.hsl(220, 6, dark ? 0.5 : 1);
		return this.hsl(step > 0 ? 14 : 214, 30 + 64 * strength, dark ? strength : 1 - strength);
	}
}
