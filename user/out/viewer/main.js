/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of the page, which is in the fragment of its address so that it can be shared, and what changes
 * it.
 */

/*
 * All are texts, as in the address. zoom: a node of the tree that is drawn; fn: the function whose lines are
 * shown.
 */
const DEFAULTS = {
	q: "",
	by: "function",
	scope: "0",
	zoom: "0",
	inverted: "0",
	flipped: "0",
	color: "module",
	fn: "-1",
	sort: "self",
	width: "both", /* of two profiles */
};

const SCOPES_MAX = 500; /* processes and threads to choose from, those with the most samples */
const NAME_MAX = 200; /* characters of a name where there is little room */

const profile = new Profile(takeData());
const crowded = profile.isCrowded();
const colors = new Colors(profile);
const graph = new Graph({canvas: $("canvas"), scroller: $("scroller"), spacer: $("spacer")}, colors);
const functionTable = new FunctionTable(profile, {
	body: $("functions-body"), rest: $("functions-rest"),
	headings: [...document.querySelectorAll("[data-sort]")].map(button => button.parentElement),
}, fn => go({fn: Number(state.fn) === fn ? -1 : fn}));

let state = {};
let tree = null;
let treeKey = "";
let kept = {key: null, counts: null}; /* see countsOf */

/* --- state --- */

function defaults() {
	return {...DEFAULTS, by: profile.group, scope: crowded ? "-1" : DEFAULTS.scope,
		color: profile.sides ? "change" : DEFAULTS.color};
}

function readState() {
	const known = defaults(), given = new URLSearchParams(location.hash.slice(1));
	for (const name in known)
		if (given.has(name))
			known[name] = given.get(name);
	return known;
}

/*
 * Changes the state and shows it. A zoom is a step that the browser's Back takes back; other changes are
 * none.
 */
function go(change) {
	const before = defaults(), params = new URLSearchParams();
	for (const name in change)
		change[name] = String(change[name]);
	state = {...state, ...change};
	for (const name in before)
		if (state[name] !== before[name])
			params.set(name, state[name]);
	keepState(`#${params}`, "zoom" in change);
	show();
}

function keepState(address, isStep) {
	if (address === (location.hash || "#"))
		return;
	try {
		if (isStep)
			history.pushState(null, "", address);
		else
			history.replaceState(null, "", address);
	} catch {
		/* Browsers refuse too many changes at a time, as by a key that is held down. */
	}
}

/* A number of the state; 0 if it is none of those. */
function numberOf(text, from, below) {
	const number = Number(text);
	return Number.isInteger(number) && number >= from && number < below ? number : 0;
}

/* --- search --- */

/* Which functions match; null: all, as nothing is searched. */
function search(text) {
	const texts = text ? matchAll(text, profile.texts) : [];
	$("search").setAttribute("aria-invalid", !texts);
	if (!text || !texts)
		return null;
	const {name, file} = profile.functions;
	return Uint8Array.from(name, (_, fn) => texts[name[fn]] || texts[file[fn]]);
}

/* --- showing --- */

function show() {
	const inverted = state.inverted === "1", flipped = state.flipped === "1";
	const scope = numberOf(state.scope, -1, profile.size);
	const options = {by: state.by === "line" ? "line" : "function", inverted, scope};
	const key = JSON.stringify([options, profile.sides ? state.width : ""]);
	if (key !== treeKey) {
		if (profile.sides)
			profile.weigh(state.width);
		tree = buildTree(profile, options);
		treeKey = key;
	}
	const zoom = numberOf(state.zoom, 0, tree.size), fn = Number(state.fn);
	const turned = graph.flipped !== flipped || graph.tree !== tree;
	graph.flipped = flipped;
	graph.marks = search(state.q);
	graph.only = fn in profile.functions.name ? fn : -1;
	colors.use(theme(), scheme());
	graph.show(tree, zoom);
	if (turned)
		graph.toRoot();
	showControls();
	showMatched();
	functionTable.show(countsOf(inverted, zoom), state.sort, graph.marks, fn);
	showFunction(fn, zoom);
	tell(graph.selected);
}

/* What functions weigh does not depend on the inversion. Kept, since a search asks at every key. */
function countsOf(inverted, zoom) {
	const key = `${treeKey} ${inverted ? 0 : zoom}`;
	if (key !== kept.key) {
		const upright = inverted ? buildTree(profile, {by: "function", inverted: false, scope: tree.scope}) : tree;
		kept = {key, counts: (profile.sides ? countChanges : countFunctions)(upright, inverted ? 0 : zoom)};
	}
	return kept.counts;
}

function showControls() {
	for (const name of ["by", "scope", "color", "width"])
		$(name).value = state[name];
	for (const name of ["inverted", "flipped"])
		$(name).setAttribute("aria-pressed", state[name] === "1");
	$("color").disabled = state.inverted === "1" && !profile.sides;
	$("legend").hidden = scheme() !== "change";
	$("reasons").hidden = scheme() !== "module" || !$("reasons").firstChild;
	$("reset").disabled = state.zoom === "0";
	if ($("search").value !== state.q)
		$("search").value = state.q;
}

function showMatched() {
	const marks = graph.marks;
	if (!marks && $("search").getAttribute("aria-invalid") === "true")
		$("matched").textContent = "not a regular expression, or too costly";
	else
		$("matched").textContent = marks ? `${profile.weight(tree.matched(marks))} match` : "";
}

/* The lines of a function, in the stacks that are shown. */
function showFunction(fn, zoom) {
	const known = fn in profile.functions.name;
	$("lines").hidden = !known || profile.sides;
	if (!known || profile.sides)
		return;
	let isIn = id => tree.inScope[id];
	if (tree.nodeOf) {
		const below = tree.below(zoom);
		isIn = id => tree.nodeOf[id] !== NOTHING && below[tree.nodeOf[id]];
	}
	const place = profile.place(fn, profile.functions.line[fn]);
	$("lines-title").textContent = `Lines of ${profile.functionName(fn)} ${place}`;
	showLines(profile, $("lines-body"), countLines(profile, fn, isIn));
}

/* Names and figures; texts that are longer than that lose their middle. */
function describe(id, length = Infinity) {
	const fn = tree.functionOf(id), place = cut(tree.place(id), length);
	const python = fn >= 0 && profile.functions.kind[fn] === KIND_PYTHON;
	const module = python ? ` · ${cut(colors.moduleOfFunction[fn].name, length)}` : "";
	const share = 100 * tree.total[id] / (tree.total[graph.zoom] || 1);
	const of = graph.zoom ? `, ${share.toFixed(1)} % of the zoom` : "";
	if (profile.sides)
		return `${cut(tree.name(id), length)}${place && ` (${place})`}${module}\n${describeChange(id)}`;
	const self = tree.inverted ? "" : `; self ${profile.weight(tree.self[id])}`;
	return `${cut(tree.name(id), length)}${place && ` (${place})`}${module}\n` +
		`total ${profile.weight(tree.total[id])}${of}${self}`;
}

/* Both figures: shares of all time, and milliseconds of each second. */
function describeChange(id) {
	const figure = (what, side) => {
		const share = tree.sides[side][what][id], ms = share * profile.diff.sides[side].ms_per_second;
		return `${(100 * share).toFixed(1)} % (${ms.toFixed(1)} ms a second)`;
	};
	const change = what => {
		const [base, now] = tree.sides.map(side => side[what][id]);
		const word = !base && now ? ", new" : base && !now ? ", gone" : "";
		return `${what} ${points(now - base)} points${word}: base ${figure(what, 0)}, new ${figure(what, 1)}`;
	};
	return tree.inverted ? change("total") : `${change("total")}\n${change("self")}`;
}

function tell(id) {
	$("status").textContent = describe(id);
}

/* Of callers there is no self time to colour by. */
function scheme() {
	const color = state.color === "change" && !profile.sides ? DEFAULTS.color : state.color;
	return state.inverted === "1" && color === "self" ? "module" : color;
}

function useTheme() {
	document.documentElement.dataset.theme = theme();
	colors.use(theme(), scheme());
	graph.draw();
	[...$("legend").querySelectorAll("i")].forEach((box, i) => {
		box.style.background = colors.changeStep(i - 4);
	});
	$("reasons").replaceChildren(...colors.reasons().map(([words, fill]) => {
		const item = document.createElement("span"), box = document.createElement("i");
		box.style.background = fill;
		item.append(box, words);
		return item;
	}));
}

function fillScopes() {
	const add = (value, text) => $("scope").add(new Option(text, value)), roots = profile.roots();
	add("0", "all");
	if (roots.length)
		add("-1", "all, merged");
	for (const id of roots.slice(0, SCOPES_MAX)) {
		const name = cut(profile.functionName(profile.functionOf(id)), NAME_MAX);
		add(String(id), `${name}, ${profile.share(profile.total[id])}`);
	}
	$("scope").parentElement.hidden = !roots.length;
}

/* --- what the user does --- */

function toggle(name) {
	go({[name]: state[name] === "1" ? 0 : 1, ...(name === "inverted" ? {zoom: 0} : {})});
}

function choose(id) {
	graph.select(id);
	tell(id);
}

function linesOf(id) {
	const fn = tree.functionOf(id);
	if (fn >= 0)
		go({fn});
}

const KEYS = {
	ArrowUp: () => choose(graph.neighbour(graph.flipped ? "down" : "up")),
	ArrowDown: () => choose(graph.neighbour(graph.flipped ? "up" : "down")),
	ArrowLeft: () => choose(graph.neighbour("left")),
	ArrowRight: () => choose(graph.neighbour("right")),
	Enter: () => go({zoom: graph.selected}),
	l: () => linesOf(graph.selected),
};
const KEYS_EVERYWHERE = {
	Escape: () => go({zoom: 0, fn: -1}),
	i: () => toggle("inverted"),
	f: () => toggle("flipped"),
	"/": () => $("search").focus(),
};

document.addEventListener("keydown", event => {
	if (event.ctrlKey || event.metaKey || event.altKey)
		return;
	const typing = event.target.matches("input, select");
	const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
	const action = (event.target === graph.canvas && KEYS[key]) || (!typing && KEYS_EVERYWHERE[key]);
	if (typing && event.key === "Escape")
		graph.canvas.focus();
	if (!action)
		return;
	event.preventDefault();
	action();
});

function showTooltip(event, id) {
	const tip = $("tooltip"), box = $("graph").getBoundingClientRect();
	tip.hidden = id < 0;
	if (id < 0)
		return;
	tip.textContent = describe(id, NAME_MAX);
	const x = event.clientX - box.left + 14, y = event.clientY - box.top + 18;
	tip.style.left = `${Math.max(0, Math.min(x, box.width - tip.offsetWidth - 4))}px`;
	tip.style.top = `${y + tip.offsetHeight < box.height ? y : Math.max(0, y - tip.offsetHeight - 30)}px`;
}

function pointed(event) {
	return graph.nodeAt(event.offsetX, event.offsetY);
}

$("canvas").addEventListener("pointermove", event => {
	const id = pointed(event);
	if (event.pointerType === "mouse")
		showTooltip(event, id);
	graph.canvas.style.cursor = id < 0 ? "" : "pointer";
});
$("canvas").addEventListener("pointerleave", () => { $("tooltip").hidden = true; });
/* By touch there is no pointing: the first touch shows the figures. */
$("canvas").addEventListener("click", event => {
	const id = pointed(event);
	if (id < 0)
		return;
	if (event.pointerType === "touch" && id !== graph.selected)
		choose(id);
	else
		go({zoom: id});
});
$("canvas").addEventListener("dblclick", event => {
	const id = pointed(event);
	if (id >= 0)
		linesOf(id);
});
/* In another tree a node has another number. */
for (const name of ["by", "scope", "width"])
	$(name).addEventListener("change", () => go({[name]: $(name).value, zoom: 0}));
$("color").addEventListener("change", () => go({color: $("color").value}));
for (const name of ["inverted", "flipped"])
	$(name).addEventListener("click", () => toggle(name));
$("search").addEventListener("input", () => go({q: $("search").value}));
$("reset").addEventListener("click", () => go({zoom: 0}));
$("lines-close").addEventListener("click", () => go({fn: -1}));
for (const heading of functionTable.headings) {
	const button = heading.firstElementChild;
	button.addEventListener("click", () => go({sort: button.dataset.sort}));
}
$("theme").addEventListener("change", useTheme);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", useTheme);
addEventListener("popstate", () => {
	state = readState();
	show();
});

if (profile.sides)
	describeDiff(profile);
else
	describeRun(profile, "Flame graph", crowded ? ["So many processes or threads are too narrow to be drawn: " +
		"all are merged, unless one is chosen under \u201cOf\u201d."] : []);
for (const element of document.querySelectorAll("[data-of]"))
	element.hidden = (element.dataset.of === "diff") !== Boolean(profile.sides);
fillScopes();
state = readState();
useTheme();
show();
performance.mark("drawn"); /* scripts/bench asks for it */
