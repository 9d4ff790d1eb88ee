/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What all pages share: figures in words, the run that they are of, and the theme. Texts of the profile go into
 * text nodes and the canvas only.
 */

const REGEX_NAME_MAX = 500; /* characters of a name that a regular expression sees ... */
const REGEX_NAME_LEAST = 50; /* ... fewer if it repeats much, but no fewer than that */
const REGEX_STEPS_MAX = 1e8; /* with one name */
const REGEX_MS_MAX = 1000; /* with all of them */

const $ = id => document.getElementById(id);

/* The data of the page, once. */
function takeData() {
	const data = JSON.parse($("profile").textContent);
	$("profile").remove();
	return data;
}

/* "1 sample", "2 samples", "1 process"; `name` is the plural. */
function counted(number, name) {
	const one = name.replace(/sses$/, "ss").replace(/([^s])s$/, "$1");
	return `${number.toLocaleString("en")} ${number === 1 ? one : name}`;
}

/* A change of a share, in points: "+1.5"; "0.0" has no sign. */
function points(change) {
	const text = (100 * Math.abs(change)).toFixed(1);
	return text === "0.0" ? text : `${change < 0 ? "\u2212" : "+"}${text}`;
}

/* Weights in words. `whole` is the weight of all. */
class Figures {
	constructor(data, whole = 0) {
		this.metadata = data.metadata;
		this.unit = data.unit;
		this.whole = whole;
	}

	/* "0.616 s" */
	time(weight) {
		const seconds = weight / this.unit.weight * this.unit.ns / 1e9;
		return `${seconds.toLocaleString("en", {maximumFractionDigits: 3})} s`;
	}

	/* "12.5 % (61 samples, 0.616 s)"; what is not counted in samples is time only. */
	weight(weight) {
		const count = counted(Math.round(weight / this.unit.weight), this.unit.name);
		const counts = this.unit.name === "samples" ? `${count}, ` : "";
		return `${this.share(weight)} (${counts}${this.time(weight)})`;
	}

	share(weight) {
		const percent = this.whole ? 100 * weight / this.whole : 0;
		return `${percent.toFixed(percent && percent < 0.095 ? 3 : 1)} %`;
	}
}

function cut(text, length) {
	return text.length > length ? `${text.slice(0, length / 2)}…${text.slice(-length / 2)}` : text;
}

/*
 * How much of a name a regular expression may see, since it may stand in a link. Each repetition multiplies the steps
 * by the length, each choice doubles them, and what repeats either of them may take for ever. 0: it is too costly.
 */
function regexReach(source) {
	const bare = source.replace(/\\./g, "").replace(/\[[^\]]*\]/g, "").replace(/\(\?<?[:=!]/g, "(");
	if (/[+*}|].*\)[+*{]/.test(bare))
		return 0;
	const repeats = bare.match(/[*+{]/g)?.length ?? 0, choices = bare.match(/[?|]/g)?.length ?? 0;
	let steps = REGEX_STEPS_MAX / 2 ** choices;
	for (let i = 2; i <= repeats + 1; i++)
		steps *= i;
	const reach = Math.min(REGEX_NAME_MAX, Math.floor(steps ** (1 / (repeats + 1))));
	return reach < REGEX_NAME_LEAST ? 0 : reach;
}

/* Of each name whether a search finds it; null: no regular expression, or too costly. */
function matchAll(text, names) {
	const regex = /^\/(.+)\/$/.exec(text), lower = text.toLowerCase();
	if (!regex)
		return names.map(name => name.toLowerCase().includes(lower));
	const reach = regexReach(regex[1]), until = performance.now() + REGEX_MS_MAX;
	try {
		const compiled = new RegExp(regex[1], "i"), found = [];
		for (const name of names) {
			if (!reach || performance.now() > until)
				return null;
			found.push(compiled.test(name.slice(0, reach)));
		}
		return found;
	} catch {
		return null;
	}
}

/* On paper all is light. */
let onPaper = false;
for (const [name, is] of [["beforeprint", true], ["afterprint", false]])
	addEventListener(name, () => {
		onPaper = is;
		useTheme();
	});

function theme() {
	const chosen = onPaper ? "light" : $("theme").value;
	return chosen !== "auto" ? chosen : matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function cell(row, className, text) {
	const td = row.insertCell();
	td.className = className;
	td.textContent = text;
	return td;
}

function weightCell(row, figures, weight) {
	const td = cell(row, "number", figures.share(weight));
	td.title = figures.weight(weight);
	td.style.setProperty("--share", `${figures.whole ? 100 * weight / figures.whole : 0}%`);
}

/* The head of the page, with notes that are the page's own, and all that is known under "figures". */
function describeRun(figures, kind, notes = []) {
	const run = figures.metadata;
	const processes = run.processes > 1 ? counted(run.processes, "processes") : "";
	const title = [run.command, processes].filter(Boolean).join(" · ");
	document.title = $("title").textContent = title || kind;
	$("summary").textContent = [counted(run.samples, "samples"),
		`${figures.time(figures.whole)}${figures.unit.name === "samples" ? " of CPU time" : ""}`,
		run.duration_s && `in ${run.duration_s.toFixed(1)} s`, run.rate_hz && `at ${run.rate_hz} Hz`,
		run.mode && run.mode !== "cpu" && `mode ${run.mode}`, run.engine && `${run.engine} engine`, run.start].filter(Boolean).join(" · ");
	if (run.lost)
		notes.push(`Not shown, as lost: ${counted(run.lost, "samples")}.`);
	if (run.truncated)
		notes.push(`Without a base, under [truncated]: ${counted(run.truncated, "samples")}.`);
	if (run.unverified)
		notes.push(`Without their callers, which could not be verified: ${counted(run.unverified, "samples")}.`);
	if (run.pruned)
		notes.push("Summed up as [pruned], so that this file is not too large: " +
			`${figures.weight(run.pruned * figures.unit.weight)} of ${counted(run.pruned_stacks, "stacks")}.`);
	$("notes").textContent = notes.join(" ");
	$("notes").hidden = !notes.length;
	listMetadata(run, "");
}

function listMetadata(run, prefix) {
	for (const name in run) {
		const term = document.createElement("dt"), value = document.createElement("dd");
		term.textContent = prefix + name.replaceAll("_", " ");
		value.textContent = run[name] ?? "not known";
		$("metadata").append(term, value);
	}
}

/* The same of two profiles. */
function describeDiff(figures) {
	const [base, now] = figures.diff.sides, notes = [];
	document.title = $("title").textContent = `${base.name} → ${now.name}`;
	$("summary").textContent = [base, now].map((side, i) => [`${i ? "new" : "base"}: ${side.metadata.command ?? ""}`,
		counted(side.metadata.samples, "samples"), `in ${side.metadata.duration_s.toFixed(1)} s`,
		`${side.ms_per_second.toFixed(0)} ms a second`].filter(Boolean).join(" · ")).join("\n");
	for (const [name, word] of [["engine", "engine"], ["rate_hz", "rate"], ["version", "version"]])
		if (base.metadata[name] !== now.metadata[name])
			notes.push(`They differ in ${word}: ${base.metadata[name] ?? "not known"}, ${now.metadata[name] ?? "not known"}.`);
	for (const [side, word] of [[base, "base"], [now, "new"]])
		if (side.metadata.lost)
			notes.push(`Not shown of ${word}, as lost: ${counted(side.metadata.lost, "samples")}.`);
	const {pruned, pruned_stacks} = figures.metadata;
	if (pruned)
		notes.push("Summed up as [pruned], so that this file is not too large: " +
			`${figures.share(pruned * figures.unit.weight)} of both, ${counted(pruned_stacks, "stacks")}.`);
	$("notes").textContent = notes.join(" ");
	$("notes").hidden = !notes.length;
	listMetadata(base.metadata, "base: ");
	listMetadata(now.metadata, "new: ");
}
