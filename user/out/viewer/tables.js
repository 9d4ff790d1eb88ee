/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tables beside the graph: functions with their self and total weight, and the lines of one of them.
 * Totals count a sample once, however deep the recursion.
 */

const TABLE_ROWS_MAX = 200;

/* Calls enter(id) and leave(id) for all nodes below `top`, and it, depth first. */
function walk(first, next, parent, top, enter, leave) {
	for (let id = top; ;) {
		enter(id);
		if (first[id]) {
			id = first[id];
			continue;
		}
		for (leave(id); id !== top && !next[id];) {
			id = parent[id];
			leave(id);
		}
		if (id === top)
			return;
		id = next[id];
	}
}

/* {self, total}: weights of each function in a tree below a node; `weights`: those of the tree, or of one side. */
function countFunctions(tree, top, weights = tree) {
	const count = tree.profile.functions.name.length;
	const self = new Float64Array(count), total = new Float64Array(count), on = new Uint32Array(count);
	walk(tree.first, tree.next, tree.parent, top, id => {
		const fn = tree.functionOf(id);
		if (fn < 0)
			return;
		self[fn] += weights.self[id];
		if (on[fn]++ === 0)
			total[fn] += weights.total[id];
	}, id => {
		const fn = tree.functionOf(id);
		if (fn >= 0)
			on[fn]--;
	});
	return {self, total};
}

/* Of two profiles: {self, total, there} of each function, how much of the time more it is. */
function countChanges(tree, top) {
	const [base, now] = tree.sides.map(side => countFunctions(tree, top, side));
	const less = (a, b) => a.map((value, fn) => value - b[fn]);
	return {self: less(now.self, base.self), total: less(now.total, base.total),
		there: now.total.map((value, fn) => value + base.total[fn]), base, now};
}

function changeCell(row, base, now) {
	const td = cell(row, `number ${now > base ? "more" : now < base ? "less" : ""}`, points(now - base));
	td.title = `base ${(100 * base).toFixed(1)} %, new ${(100 * now).toFixed(1)} %`;
	td.style.setProperty("--share", `${Math.min(100, 100 * Math.abs(now - base))}%`);
}

/* The frames of a function, [{line, self, total}], in the stacks of the profile that `isIn` has. */
function countLines(profile, fn, isIn) {
	const first = new Uint32Array(profile.size), next = new Uint32Array(profile.size);
	for (let id = profile.size - 1; id > 0; id--) {
		next[id] = first[profile.parent[id]];
		first[profile.parent[id]] = id;
	}
	const lines = new Map();
	walk(first, next, profile.parent, 0, id => {
		if (!id || !isIn(id) || profile.functionOf(id) !== fn)
			return;
		const line = profile.frames.line[profile.frame[id]];
		if (!lines.has(line))
			lines.set(line, {line, self: 0, total: 0, on: 0});
		const entry = lines.get(line);
		entry.self += profile.self[id];
		if (entry.on++ === 0)
			entry.total += profile.total[id];
	}, id => {
		if (id && isIn(id) && profile.functionOf(id) === fn)
			lines.get(profile.frames.line[profile.frame[id]]).on--;
	});
	return [...lines.values()].sort((a, b) => Math.abs(a.line) - Math.abs(b.line) || a.line - b.line);
}

class FunctionTable {
	constructor(profile, elements, onChoose) {
		this.profile = profile;
		Object.assign(this, elements); /* body, rest, headings */
		this.onChoose = onChoose;
	}

	show(counts, sort, marks, chosen) {
		const size = counts.there ? Math.abs : weight => weight, there = counts.there ?? counts.total;
		const orders = {
			self: (a, b) => size(counts.self[b]) - size(counts.self[a]) || size(counts.total[b]) - size(counts.total[a]),
			total: (a, b) => size(counts.total[b]) - size(counts.total[a]) || size(counts.self[b]) - size(counts.self[a]),
			name: (a, b) => this.profile.functionName(a) < this.profile.functionName(b) ? -1 : 1,
		};
		const order = Object.hasOwn(orders, sort) ? orders[sort] : orders.self;
		const shown = [];
		for (let fn = 0; fn < counts.total.length; fn++)
			if (there[fn] && (!marks || marks[fn]))
				shown.push(fn);
		shown.sort((a, b) => order(a, b) || a - b);
		for (const heading of this.headings) {
			const by = heading.firstElementChild.dataset.sort;
			heading.removeAttribute("aria-sort");
			if (by === sort)
				heading.setAttribute("aria-sort", by === "name" ? "ascending" : "descending");
		}
		const focused = this.body.contains(document.activeElement) && document.activeElement.dataset.fn;
		this.body.replaceChildren(...shown.slice(0, TABLE_ROWS_MAX).map(fn => this.row(fn, counts, fn === chosen)));
		if (focused)
			this.body.querySelector(`[data-fn="${focused}"]`)?.focus({preventScroll: true});
		this.rest.textContent = shown.length > TABLE_ROWS_MAX
			? `${(shown.length - TABLE_ROWS_MAX).toLocaleString("en")} more; search to see them.` : "";
	}

	row(fn, counts, chosen) {
		const row = document.createElement("tr");
		row.className = chosen ? "chosen" : "";
		for (const what of ["self", "total"]) {
			if (counts.there)
				changeCell(row, counts.base[what][fn], counts.now[what][fn]);
			else
				weightCell(row, this.profile, counts[what][fn]);
		}
		const name = document.createElement("button");
		name.type = "button";
		name.dataset.fn = fn;
		name.setAttribute("aria-pressed", chosen);
		name.textContent = this.profile.functionName(fn);
		name.addEventListener("click", () => this.onChoose(fn));
		const place = document.createElement("span");
		place.className = "place";
		place.textContent = this.profile.place(fn, this.profile.functions.line[fn]);
		row.insertCell().append(name, place);
		return row;
	}
}

function showLines(profile, body, lines) {
	body.replaceChildren(...lines.map(entry => {
		const row = document.createElement("tr");
		cell(row, "", entry.line ? `${entry.line < 0 ? "~" : ""}${Math.abs(entry.line)}` : "not known");
		weightCell(row, profile, entry.self);
		weightCell(row, profile, entry.total);
		return row;
	}));
}
