/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The canvas. Boxes are laid out for a zoom and a width, row by row from the root, and only those that are
 * wide enough to be seen, so that neither the number of stacks nor their depth matters; scrolling draws the
 * rows that are in view.
 */

const ROW = 18;
const LEAST_WIDTH = 0.5;
const ROWS_MAX = 500000; /* browsers have no taller pages */
const FONT = "12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";

class Graph {
	constructor(elements, colors) {
		Object.assign(this, elements); /* canvas, scroller, spacer */
		this.colors = colors;
		this.context = this.canvas.getContext("2d");
		this.rows = [];
		this.zoom = 0;
		this.selected = 0;
		this.flipped = false;
		this.marks = null; /* functions that match the search */
		this.only = -1; /* a function that is looked at */
		this.scroller.addEventListener("scroll", () => this.draw());
		new ResizeObserver(() => this.layout()).observe(this.scroller);
	}

	show(tree, zoom) {
		if (tree !== this.tree || zoom !== this.zoom)
			this.selected = zoom;
		this.tree = tree;
		this.zoom = zoom;
		this.layout();
	}

	/* --- layout --- */

	/* A row is {ids, x, width, rest}: rest are [x, width] of boxes too narrow to draw. */
	layout() {
		this.width = this.scroller.clientWidth;
		this.height = this.scroller.clientHeight;
		if (!this.tree || !this.width || !this.height)
			return;
		this.rows = [];
		for (let id = this.zoom; ; id = this.tree.parent[id]) {
			this.rows.push({ids: [id], x: [0], width: [this.width], rest: []});
			if (!id)
				break;
		}
		this.rows.reverse();
		this.zoomRow = this.rows.length - 1;
		this.scale = this.width / (this.tree.total[this.zoom] || 1);
		for (let row = this.rows[this.zoomRow]; row && this.rows.length < ROWS_MAX; row = this.rowBelow(row))
			if (row !== this.rows[this.zoomRow])
				this.rows.push(row);
		const ratio = window.devicePixelRatio || 1;
		this.canvas.width = Math.round(this.width * ratio);
		this.canvas.height = Math.round(this.height * ratio);
		this.canvas.style.height = `${this.height}px`;
		this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
		this.spacer.style.height = `${Math.max(this.rows.length * ROW, this.height)}px`;
		this.draw();
	}

	rowBelow(row) {
		const below = {ids: [], x: [], width: [], rest: []};
		for (let i = 0; i < row.ids.length; i++) {
			let x = row.x[i];
			let left = this.tree.total[row.ids[i]] - this.tree.self[row.ids[i]];
			for (const id of this.tree.children(row.ids[i], LEAST_WIDTH / this.scale)) {
				const width = this.tree.total[id] * this.scale;
				if (width < LEAST_WIDTH)
					break;
				below.ids.push(id);
				below.x.push(x);
				below.width.push(width);
				x += width;
				left -= this.tree.total[id];
			}
			if (left * this.scale >= LEAST_WIDTH)
				below.rest.push([x, left * this.scale]);
		}
		return below.ids.length || below.rest.length ? below : null;
	}

	/* --- drawing --- */

	top(row) {
		const height = Math.max(this.rows.length * ROW, this.height);
		return (this.flipped ? height - (row + 1) * ROW : row * ROW) - this.scroller.scrollTop;
	}

	draw() {
		if (!this.tree)
			return;
		const context = this.context;
		context.fillStyle = this.colors.theme.page;
		context.fillRect(0, 0, this.width, this.height);
		context.font = FONT;
		context.textBaseline = "middle";
		this.character = context.measureText("m").width;
		for (let row = 0; row < this.rows.length; row++) {
			const y = this.top(row);
			if (y > -ROW && y < this.height)
				this.drawRow(row, y);
		}
	}

	drawRow(number, y) {
		const row = this.rows[number], context = this.context;
		context.fillStyle = this.colors.theme.rest;
		for (const [x, width] of row.rest)
			context.fillRect(x, y, width, ROW - 1);
		for (let i = 0; i < row.ids.length; i++)
			this.drawBox(row.ids[i], row.x[i], y, row.width[i], number < this.zoomRow);
	}

	isMatch(id) {
		const fn = this.tree.functionOf(id);
		return fn >= 0 && (fn === this.only || this.marks?.[fn]);
	}

	drawBox(id, x, y, width, above) {
		const context = this.context;
		const searching = this.marks || this.only >= 0, match = searching && this.isMatch(id);
		context.globalAlpha = above || (searching && !match) ? 0.55 : 1;
		context.fillStyle = match ? this.colors.theme.match : this.colors.fill(this.tree, id);
		context.fillRect(x, y, width > 3 ? width - 1 : width, ROW - 1);
		context.globalAlpha = 1;
		if (width > 3 * this.character)
			this.drawText(this.tree.label(id), x, y, width);
		if (id === this.selected) {
			context.strokeStyle = this.colors.theme.mark;
			context.lineWidth = 2;
			context.strokeRect(x + 1, y + 1, Math.max(width - 3, 1), ROW - 3);
		}
	}

	/* Cut to what fits; texts that are not all of one width are clipped, too. */
	drawText(text, x, y, width) {
		const context = this.context, fits = Math.floor((width - 6) / this.character);
		context.fillStyle = this.colors.theme.text;
		if (text.length > fits)
			text = `${Array.from(text.slice(0, 2 * fits)).slice(0, Math.max(fits - 1, 1)).join("")}…`;
		if (/^[ -~…]*$/.test(text)) {
			context.fillText(text, x + 3, y + ROW / 2 + 0.5);
			return;
		}
		context.save();
		context.beginPath();
		context.rect(x, y, width - 3, ROW);
		context.clip();
		context.fillText(text, x + 3, y + ROW / 2 + 0.5);
		context.restore();
	}

	/* --- finding --- */

	rowAt(y) {
		const height = Math.max(this.rows.length * ROW, this.height), at = y + this.scroller.scrollTop;
		return Math.floor((this.flipped ? height - at : at) / ROW);
	}

	/* The node whose box is there; -1: none. */
	nodeAt(x, y) {
		const row = this.rows[this.rowAt(y)];
		if (!row)
			return -1;
		let low = 0, high = row.ids.length - 1;
		while (low < high) {
			const middle = (low + high + 1) >> 1;
			if (row.x[middle] <= x)
				low = middle;
			else
				high = middle - 1;
		}
		return high >= 0 && x >= row.x[low] && x < row.x[low] + row.width[low] ? row.ids[low] : -1;
	}

	select(id) {
		this.selected = id;
		const row = this.tree.depth[id], y = this.top(row);
		if (y < 0)
			this.scroller.scrollTop += y;
		else if (y + ROW > this.height)
			this.scroller.scrollTop += y + ROW - this.height;
		this.draw();
	}

	/* The drawn neighbour of the selected node: "up" is its parent, "down" its heaviest child. */
	neighbour(direction) {
		const row = this.rows[this.tree.depth[this.selected]], at = row ? row.ids.indexOf(this.selected) : -1;
		if (direction === "up")
			return this.tree.parent[this.selected];
		if (direction === "down") {
			/* Above the zoom there is one way down. */
			const below = this.rows[this.tree.depth[this.selected] + 1];
			return below?.ids.find(id => this.tree.parent[id] === this.selected) ?? this.selected;
		}
		return row?.ids[at + (direction === "left" ? -1 : 1)] ?? this.selected;
	}

	toRoot() {
		this.scroller.scrollTop = this.flipped ? this.scroller.scrollHeight : 0;
	}
}
