/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files of a profile as user/out/heatmap.c has written them: an index of the hottest lines and files, and one
 * file with the figures of its lines beside its code. Which one is in the fragment of the address.
 */

const LINES_MAX = 30; /* of the index, the hottest */
const FILES_MAX = 300;
const QUIET = 40; /* so many lines without samples are folded ... */
const CONTEXT = 8; /* ... but for those beside the others */

const data = takeData();
for (const file of data.files)
	file.name ||= "[unnamed]";
const figures = new Figures(data, data.total);
/* Of all files, the hottest first: {file, line, self, total, fn}; line is negative if it is near. */
const lines = data.files.flatMap((file, number) => {
	file.rows = [];
	for (let i = 0; i < file.lines.length; i += 4) {
		const [line, self, total, fn] = file.lines.slice(i, i + 4);
		file.rows.push({file: number, line, self, total, fn});
	}
	return file.rows;
}).sort((a, b) => b.self - a.self || b.total - a.total || a.file - b.file);
const hottest = lines[0]?.self || 1;

let shown = -1;
let state = {file: 0, line: 0};

/* --- words --- */

function lineName(line) {
	return line ? `${line < 0 ? "~" : ""}${Math.abs(line)}` : "?";
}

function place(row) {
	return `${data.files[row.file].name}:${lineName(row.line)}`;
}

function tell(row) {
	$("status").textContent = row
		? `${place(row)} in ${data.functions[row.fn]}\nself ${figures.weight(row.self)}; ` +
			`total ${figures.weight(row.total)}`
		: "Choose a line, or move with N and P.";
}

/* --- the index --- */

function indexRow(item, name, where, onChoose) {
	const row = document.createElement("tr"), button = document.createElement("button");
	weightCell(row, figures, item.self);
	weightCell(row, figures, item.total);
	button.type = "button";
	button.textContent = name;
	button.addEventListener("click", onChoose);
	const inside = row.insertCell();
	inside.append(button);
	if (where) {
		const text = document.createElement("span");
		text.className = "place";
		text.textContent = where;
		inside.append(text);
	}
	return row;
}

/* The end of a path, which tells most, and all of it where there is room. */
function shortName(name) {
	return name.split("/").slice(-2).join("/") || name;
}

function showIndex() {
	const names = [...data.files.map(file => file.name), ...data.functions], all = names.map(() => true);
	const matches = $("search").value ? matchAll($("search").value, names) : all;
	$("search").setAttribute("aria-invalid", !matches);
	const found = (matches ?? all).slice(0, data.files.length), fns = (matches ?? all).slice(data.files.length);
	const some = lines.filter(row => row.line && (found[row.file] || fns[row.fn])).slice(0, LINES_MAX);
	$("lines-body").replaceChildren(...some.map(row =>
		indexRow(row, `${shortName(data.files[row.file].name)}:${lineName(row.line)}`, data.functions[row.fn],
			() => go({file: row.file, line: Math.abs(row.line)}))));
	const files = [...data.files.keys()].filter(i => found[i] || data.files[i].rows.some(row => fns[row.fn]));
	$("files-body").replaceChildren(...files.slice(0, FILES_MAX).map(i => {
		const row = indexRow(data.files[i], shortName(data.files[i].name), data.files[i].name,
			() => go({file: i, line: 0}));
		row.className = i === state.file ? "chosen" : "";
		row.querySelector("button").setAttribute("aria-pressed", i === state.file);
		return row;
	}));
	$("files-rest").textContent = files.length > FILES_MAX
		? `${(files.length - FILES_MAX).toLocaleString("en")} more; search to see them.`
		: files.length ? "" : "None of that name.";
	$("elsewhere").hidden = !data.notes.length;
	$("elsewhere-body").replaceChildren(...data.notes.map(([name, self]) => {
		const row = document.createElement("tr");
		weightCell(row, figures, self);
		cell(row, "", name);
		return row;
	}));
}

/* --- a file --- */

function codeRow(line, hot, text) {
	const row = document.createElement("tr");
	row.dataset.line = line;
	row.tabIndex = -1;
	cell(row, "number line", hot ? lineName(hot.line) : line);
	if (hot) {
		row.className = "warm";
		row.style.setProperty("--heat", Math.sqrt(hot.self / hottest).toFixed(3));
		for (const weight of [hot.self, hot.total])
			weightCell(row, figures, weight);
		row.addEventListener("focus", () => tell(hot));
		row.addEventListener("click", () => go({line}));
	} else {
		cell(row, "", "");
		cell(row, "", "");
	}
	const code = cell(row, "code", text ?? "");
	if (text === null) {
		const name = document.createElement("span");
		name.className = "function";
		name.textContent = `in ${data.functions[hot.fn]}`;
		code.append(name);
	} else if (hot) {
		code.title = data.functions[hot.fn];
	}
	return row;
}

function gapRow(text, onOpen) {
	const row = document.createElement("tr"), inside = row.insertCell();
	row.className = "gap";
	inside.colSpan = 4;
	if (onOpen) {
		const button = document.createElement("button");
		button.type = "button";
		button.textContent = text;
		button.addEventListener("click", () => row.replaceWith(...onOpen()));
		inside.append(button);
	} else {
		inside.textContent = text;
	}
	return row;
}

/* Rows of lines that stand together; long stretches without samples as one row that opens. */
function pieceRows(from, texts, hotOf) {
	const near = new Uint8Array(texts.length);
	for (let i = 0; i < texts.length; i++)
		if (hotOf.has(from + i))
			near.fill(1, Math.max(0, i - CONTEXT), i + CONTEXT + 1);
	const rows = [], row = i => codeRow(from + i, hotOf.get(from + i), texts[i]);
	for (let i = 0; i < texts.length;) {
		let end = i;
		while (end < texts.length && !near[end])
			end++;
		if (end - i > QUIET) {
			const first = i, last = end;
			rows.push(gapRow(`${counted(last - first, "lines")} without samples: ${from + first} to ${from + last - 1}`,
				() => Array.from({length: last - first}, (_, k) => row(first + k))));
			i = end;
			continue;
		}
		for (end = Math.max(end, i + 1); i < end; i++)
			rows.push(row(i));
	}
	return rows;
}

/* Lines with samples that the code does not have, or has not been taken along. */
function bareRows(hotOf, from, to) {
	return [...hotOf.keys()].filter(line => line >= from && line < to).map(line => codeRow(line, hotOf.get(line), null));
}

function fileRows(file) {
	const hotOf = new Map(), rows = [];
	for (const row of file.rows)
		hotOf.set(Math.abs(row.line), row);
	let next = 1;
	for (const [from, texts] of file.code) {
		if (from > next)
			rows.push(gapRow(`Left out of this page: ${counted(from - next, "lines")} without samples, ${next} to ${from - 1}`));
		rows.push(...pieceRows(from, texts, hotOf));
		next = from + texts.length;
	}
	if (file.count && next <= file.count)
		rows.push(gapRow(`Left out of this page: ${counted(file.count - next + 1, "lines")} without samples, ` +
			`${next} to ${file.count}`));
	if (!file.count)
		return [...rows, ...bareRows(hotOf, 0, Infinity)];
	const beyond = bareRows(hotOf, file.count + 1, Infinity), unknown = bareRows(hotOf, 0, 1);
	if (beyond.length)
		rows.push(gapRow("The file has no such lines now:"), ...beyond);
	if (unknown.length)
		rows.push(gapRow("Line not known:"), ...unknown);
	return rows;
}

function showFile(number) {
	const file = data.files[number];
	shown = number;
	$("file").hidden = !file;
	if (!file)
		return;
	$("file-title").textContent = file.name;
	$("file-figures").textContent = `self ${figures.weight(file.self)}; total ${figures.weight(file.total)}`;
	$("file-note").textContent = file.note ?? "";
	$("file-note").hidden = !file.note;
	$("code").replaceChildren(...fileRows(file));
}

/* --- state --- */

function readState() {
	const given = new URLSearchParams(location.hash.slice(1));
	const number = (name, below) => {
		const value = Number(given.get(name) ?? 0);
		return Number.isInteger(value) && value >= 0 && value < below ? value : 0;
	};
	return {file: number("file", data.files.length), line: number("line", 1e9)};
}

function go(change) {
	state = {...state, ...change};
	history.replaceState(null, "", state.file || state.line ? `#file=${state.file}&line=${state.line}` : "#");
	show("user");
}

function rowOf(line) {
	return $("code").querySelector(`tr[data-line="${line}"]`);
}

function show(change) {
	if (shown !== state.file) {
		showFile(state.file);
		$("file").scrollTop = 0;
		if (change === "user" && matchMedia("(max-width: 760px)").matches)
			$("file").scrollIntoView();
	}
	showIndex();
	const row = state.line ? rowOf(state.line) : null;
	$("code").querySelector("[aria-current]")?.removeAttribute("aria-current");
	row?.setAttribute("aria-current", "true");
	row?.scrollIntoView({block: "nearest"});
	row?.focus({preventScroll: true});
	if (!row)
		tell(null);
}

/* --- what the user does --- */

/* The line with samples before or behind the chosen one. */
function step(by) {
	const known = (data.files[state.file]?.rows ?? []).filter(row => row.line).map(row => Math.abs(row.line));
	const next = by > 0 ? known.find(line => line > state.line) : known.findLast(line => line < state.line);
	if (next)
		go({line: next});
}

function goToHottest() {
	const row = lines.find(candidate => candidate.file === state.file && candidate.line);
	if (row)
		go({line: Math.abs(row.line)});
}

const KEYS = {
	n: () => step(1),
	p: () => step(-1),
	h: goToHottest,
	"/": () => $("search").focus(),
	Escape: () => $("files-body").querySelector("[aria-pressed=true]")?.focus(),
};

document.addEventListener("keydown", event => {
	const typing = event.target.matches("input, select");
	if (event.ctrlKey || event.metaKey || event.altKey || (typing && event.key !== "Escape"))
		return;
	const action = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
	if (!action)
		return;
	event.preventDefault();
	action();
});
$("search").addEventListener("input", showIndex);
$("next").addEventListener("click", () => step(1));
$("previous").addEventListener("click", () => step(-1));
$("hottest").addEventListener("click", goToHottest);

function useTheme() {
	document.documentElement.dataset.theme = theme();
}

$("theme").addEventListener("change", useTheme);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", useTheme);
addEventListener("hashchange", () => {
	state = readState();
	show();
});

describeRun(figures, "Heatmap");
useTheme();
state = readState();
show();
performance.mark("drawn"); /* scripts/bench asks for it */
