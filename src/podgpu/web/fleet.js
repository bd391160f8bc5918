// The fleet at a glance: all GPUs of all nodes on one screen. A brush over it filters the list.

import { FROM_STORE, rangeOf } from "./address.js";
import { cellAt, layOut, nextRow, paint, ring } from "./cells.js";
import { fill, h, known, morph, write } from "./dom.js";
import { Fold } from "./fold.js";
import { darkText } from "./gpus.js";
import { freeWord } from "./model.js";
import { age, celsius, count, gpuNumber, gpus as gpuCount, integer, percent } from "./numbers.js";
import { SHADES, labelOf } from "./shades.js";

const LEAST_NODES = 2;
const FRAME_MS = 4; // of painting in a frame
const SAME_FRAME_MS = 8; // a frame that has drawn the page does not paint cells as well
const OFTEN = 64; // cells between two looks at the clock
const TALL = [0.32, 110, 420]; // a part of the window, and the least and the most pixels
const BELOW = 240; // pixels that the list needs of the first screen, with its head and first rows
const PADDING = 15; // pixels left and right of the map
const READABLE = 8; // pixels of a cell in a map that nobody asked for
const INKS = ["card", "track", "dark", "accent", "warn", "bad", "badbg", "ink", "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "cx"];
const SMALL = 7; // pixels of a cell: lost ones of that size have a ring around them,
const MOST_RINGS = 200; // unless there are more of them
const HELP = "Arrow keys move, Shift and arrow keys choose several, Enter shows them in the list, Escape shows all.";

export class Fleet {
  constructor(address) {
    this.address = address;
    this.dirty = [];
    this.cursor = 0;
    this.by = h("select", { "aria-label": "Cells show", onchange: () => address.go({ colour: this.by.value }) });
    this.about = h("p", { class: "dim" });
    this.canvas = h("canvas", {
      tabindex: "0",
      role: "application",
      "aria-roledescription": "map of GPUs",
      "aria-describedby": "fleet-help",
      onpointerdown: (event) => this.press(event),
      onpointermove: (event) => this.point(event),
      onpointerup: (event) => this.release(event),
      onpointercancel: () => ((this.from = undefined), this.drawMarks()),
      onpointerleave: () => this.tell(-1),
      onkeydown: (event) => this.key(event),
      onfocus: () => this.drawMarks(),
      onblur: () => (this.drawMarks(), this.tell(-1)),
    });
    this.marks = h("canvas", { class: "marks", "aria-hidden": "true" });
    this.tip = h("div", { class: "tip", "aria-live": "polite", hidden: true });
    this.table = h("table");
    this.fold = new Fold("fleet");
    this.toggle = h("button", { type: "button", "aria-controls": "fleet-map", onclick: () => this.turn() }, "Fleet");
    this.details = h("details", { ontoggle: () => this.model && this.describe() }, h("summary", {}, "As a table"), this.table);
    this.map = h("div", { class: "map", id: "fleet-map" }, this.canvas, this.marks, this.tip);
    this.element = h("section", { class: "sheet fleet", "aria-label": "Fleet", hidden: true }, h("div", { class: "title" }, h("h2", {}, this.toggle), this.by, this.about, this.details), this.map, h("p", { class: "spoken", id: "fleet-help" }, HELP));
  }

  /** `isMeant` says which GPUs the list shows. */
  draw(model, isMeant) {
    this.element.hidden = model.nodes.length < LEAST_NODES || !model.gpus.length;
    if (this.element.hidden) return;
    this.model = model;
    const { address } = this;
    const isOpen = this.fold.isOpen(this.fits() && (!address.isFiltered || Boolean(address.cells)));
    this.toggle.setAttribute("aria-expanded", isOpen);
    for (const part of [this.by, this.details, this.map]) part.hidden = !isOpen;
    const there = Object.entries(SHADES).filter(([, shade]) => !shade.isThere || shade.isThere(model));
    this.shade = SHADES[there.some(([key]) => key === address.colour) ? address.colour : ""];
    fill(this.by, there.map(([key, shade]) => [key, `Show ${shade.name}`]), this.shade === SHADES[""] ? "" : address.colour);
    const style = getComputedStyle(document.documentElement);
    const inks = Object.fromEntries(INKS.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    this.how = { model, inks, label: labelOf(model, address.by), isMeant: address.isFiltered ? isMeant : null };
    if (isOpen) {
      this.shade.prepare?.(model, this.how);
      this.place();
      this.queue();
    }
    this.describe();
  }

  /** Fold or unfold it, as the reader wants. */
  turn() {
    this.fold.choose(this.map.hidden);
    this.address.onChange();
  }

  /** Whether the map, in cells that can be told apart, leaves the first rows of the list on the first screen. */
  fits() {
    const counts = this.counts();
    const sign = `${innerWidth} ${innerHeight} ${counts}`;
    if (sign === this.fitted?.sign) return this.fitted.isFitting; // to measure makes the browser lay out the page
    const box = this.element.getBoundingClientRect();
    const room = innerHeight - BELOW - (box.top + scrollY);
    const made = room > 0 && layOut(counts, Math.floor(box.width) - 2 * PADDING, room);
    this.fitted = { sign, room, isFitting: Boolean(made) && made.height <= room && made.size >= READABLE };
    return this.fitted.isFitting;
  }

  /** How many cells each node has, of those that have any. */
  counts() {
    return this.model.nodes.map((node) => node.gpus.length).filter(Boolean);
  }

  /** Lay out again if the nodes or the width of the page have changed. */
  place() {
    const width = Math.floor(this.canvas.parentElement.clientWidth);
    const counts = this.counts();
    const [part, least, most] = TALL;
    // No higher than the first screen allows, unless the reader asked for it.
    const wanted = Math.min(most, Math.max(least, Math.round(innerHeight * part)));
    const height = this.fitted.isFitting ? Math.min(wanted, this.fitted.room) : wanted;
    const sign = `${width} ${height} ${devicePixelRatio} ${counts}`;
    if (!width || sign === this.sign) return;
    this.sign = sign;
    this.wide = width; // kept, since to read it makes the browser lay out the page
    this.layout = layOut(counts, width, height);
    for (const canvas of [this.canvas, this.marks]) {
      canvas.width = width * devicePixelRatio;
      canvas.height = this.layout.height * devicePixelRatio;
      canvas.style.height = `${this.layout.height}px`;
      canvas.getContext("2d").scale(devicePixelRatio, devicePixelRatio);
    }
    this.painted = new Array(this.layout.total);
    this.names = "";
  }

  /** Find the cells whose GPU has changed, and paint them over the next frames. */
  queue() {
    const { address, model, how } = this;
    const look = [address.colour, how.label, how.inks.card, model.mostWasted, address.isFiltered && location.search].join();
    if (look !== this.look) this.painted.fill(undefined);
    this.look = look;
    const before = this.dirty.length;
    [this.dirty, this.lost] = [[], []];
    model.gpus.forEach((gpu, at) => {
      if (this.painted[at] !== gpu) this.dirty.push(at);
      if (!gpu.isUp) this.lost.push(at);
    });
    if (this.dirty.length && !(before && this.frame)) this.frame = requestAnimationFrame(() => this.step());
    this.drawNames();
    const marks = `${this.sign} ${address.cells} ${how.inks.ink} ${this.cursor} ${model.gpus.length} ${this.lost}`;
    if (marks !== this.marked) this.drawMarks();
    this.marked = marks;
    this.drawnAt = performance.now();
  }

  step() {
    if (performance.now() - this.drawnAt < SAME_FRAME_MS) {
      this.frame = requestAnimationFrame(() => this.step());
      return;
    }
    const until = performance.now() + FRAME_MS;
    const context = this.canvas.getContext("2d");
    const { size, xs, ys } = this.layout;
    const { model, how } = this;
    for (let number = 1; this.dirty.length; number += 1) {
      const at = this.dirty.pop();
      const gpu = model.gpus[at];
      if (!gpu || at >= this.layout.total) continue;
      paint(context, gpu, this.shade.parts(gpu, how), { x: xs[at], y: ys[at], size, inks: how.inks, isDim: how.isMeant && !how.isMeant(gpu) });
      this.painted[at] = gpu;
      if (number % OFTEN === 0 && performance.now() > until) break;
    }
    this.frame = this.dirty.length ? requestAnimationFrame(() => this.step()) : 0;
  }

  /** Write the names of the nodes, if there is room for them. */
  drawNames() {
    const { name, wide, high, across } = this.layout;
    const nodes = this.model.nodes.filter((node) => node.gpus.length);
    const sign = `${this.sign} ${this.how.inks.ink} ${name && nodes.map((node) => node.name)}`;
    if (!name || sign === this.names) return;
    this.names = sign;
    const context = this.canvas.getContext("2d");
    context.globalAlpha = 0.75;
    context.fillStyle = this.how.inks.ink;
    context.font = "11px system-ui, sans-serif";
    nodes.forEach((node, at) => {
      const [x, y] = [(at % across) * wide, Math.floor(at / across) * high];
      context.clearRect(x, y, wide - 4, name - 2);
      context.save();
      context.beginPath();
      context.rect(x, y, wide - 8, name);
      context.clip();
      context.fillText(node.name, x, y + 9);
      context.restore();
    });
  }

  /** Mark the cells that are chosen, and the one with the keyboard's cursor. */
  drawMarks() {
    if (!this.layout) return;
    const context = this.marks.getContext("2d");
    const { xs, ys, size, width, height } = this.layout;
    context.clearRect(0, 0, width + size, height + size);
    if (size <= SMALL && this.lost.length <= MOST_RINGS) for (const at of this.lost) ring(context, xs[at], ys[at], size, this.how.inks);
    context.strokeStyle = this.how.inks.ink;
    const [first, last] = this.chosen();
    context.lineWidth = size > 5 ? 2 : 1;
    context.beginPath();
    // Neighbours share a frame: thousands of frames would take milliseconds.
    for (let at = first, end = at; at <= last; at = end) {
      while (end <= last && ys[end] === ys[at] && xs[end] - xs[at] === (end - at) * (size + 1)) end += 1;
      context.rect(xs[at] - 0.5, ys[at] - 0.5, (end - at) * (size + 1), size + 1);
    }
    context.stroke();
    if (document.activeElement !== this.canvas || this.cursor >= this.layout.total) return;
    context.lineWidth = 2;
    context.strokeRect(xs[this.cursor] - 2, ys[this.cursor] - 2, size + 4, size + 4);
  }

  /** The first and the last of the chosen cells. */
  chosen() {
    if (this.from !== undefined) return [Math.min(this.from, this.cursor), Math.max(this.from, this.cursor)];
    const range = rangeOf(this.address.cells);
    const first = range ? this.model.gpus.findIndex(range.has) : -1;
    return first < 0 ? [0, -1] : [first, this.model.gpus.findLastIndex(range.has)];
  }

  at({ offsetX, offsetY }) {
    return cellAt(this.layout, offsetX, offsetY);
  }

  press(event) {
    if (event.button) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.from = this.cursor = this.at(event);
    this.drawMarks();
  }

  point(event) {
    const at = this.at(event);
    this.tell(at);
    if (this.from === undefined || at === this.cursor) return;
    this.cursor = at;
    this.drawMarks();
  }

  release() {
    if (this.from !== undefined) this.show();
  }

  cells() {
    const [first, last] = [this.from ?? this.cursor, this.cursor].sort((a, b) => a - b).map((at) => this.model.gpus[at]);
    return `${first.node.name}:${first.index}~${last.node.name}:${last.index}`;
  }

  /** Filter the list by the chosen cells; the same ones again show all. */
  show() {
    const cells = this.cells();
    this.from = undefined;
    this.address.go({ cells: cells === this.address.cells ? "" : cells, view: FROM_STORE.includes(this.address.view) ? "gpus" : this.address.view });
  }

  key(event) {
    const steps = { ArrowLeft: () => this.cursor - 1, ArrowRight: () => this.cursor + 1, ArrowUp: () => nextRow(this.layout, this.cursor, -1), ArrowDown: () => nextRow(this.layout, this.cursor, 1), Home: () => 0, End: () => this.layout.total - 1 };
    const step = steps[event.key];
    if (!step && !["Enter", " ", "Escape"].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    if (step) {
      this.from = event.shiftKey ? (this.from ?? this.cursor) : undefined;
      this.cursor = Math.min(this.layout.total - 1, Math.max(0, step()));
      this.drawMarks();
      this.tell(this.cursor);
    } else if (event.key === "Escape") {
      this.from = undefined;
      if (this.address.cells) this.address.go({ cells: "" });
      else this.drawMarks();
    } else this.show();
  }

  /** Describe the cell in a tip. */
  tell(at) {
    const gpu = this.model.gpus[at];
    this.tip.hidden = !gpu;
    if (!gpu) return;
    write(this.tip, tipOf(gpu));
    const { xs, ys, size, width } = this.layout;
    const isRight = xs[at] > width / 2;
    Object.assign(this.tip.style, { top: `${ys[at] + size + 6}px`, left: isRight ? "" : `${xs[at]}px`, right: isRight ? `${this.wide - xs[at] - size}px` : "" });
  }

  /** Say the same in words, for those who cannot see the cells. */
  describe() {
    const { gpus, nodes, insight } = this.model;
    let [idle, lost, xids, dark] = [0, 0, 0, 0];
    for (const gpu of gpus) {
      if (gpu.isDark) dark += gpu.isUnknown ? 0 : 1;
      else if (!gpu.isUp) lost += 1;
      else if (known(gpu.idleFor)) idle += 1;
      if (gpu.hasXid) xids += 1;
    }
    const blank = nodes.filter((node) => node.gpus[0]?.isUnknown).length;
    const seen = [dark && `${integer(dark)} dark (crossed)`, blank && `${count(blank, "dark node")} with GPUs not known`, dark < this.model.known && `${gpuCount(insight.sums.unused_gpus)} held and not used, ${integer(idle)} of them whole (outline), ${integer(lost)} lost (${this.layout?.size <= SMALL ? "ring" : "hatched"})`, (dark < this.model.known || xids > 0) && `${integer(xids)} with an XID (dot)`];
    const said = `${this.model.known ? count(this.model.known, "GPU") : "GPUs not known"} on ${count(nodes.length, "node")}: ${seen.filter(Boolean).join(", ")}.`;
    write(this.about, said);
    if (this.canvas.getAttribute("aria-label") !== said) this.canvas.setAttribute("aria-label", said);
    if (!this.details.open) return;
    const rows = [...this.shade.rows(gpus.filter((gpu) => !gpu.isDark), this.how), ["dark", integer(dark)], ["held and not used", gpuNumber(insight.sums.unused_gpus)], ["of these whole cards", integer(idle)], ["lost", integer(lost)], ["with an XID", integer(xids)]];
    const swatch = (name) => (this.shade.swatch && known(name) ? h("i", { class: `dot ${this.shade.swatch(name)}` }) : null);
    morph(this.table, h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "GPUs by"), h("th", { scope: "col" }, "Number"))), h("tbody", {}, ...rows.map(([name, value, team]) => h("tr", {}, h("th", { scope: "row" }, swatch(team), name), h("td", {}, value))))));
  }
}

function tipOf(gpu) {
  const who = gpu.tenants.map((tenant) => `${tenant.id}${tenant.isIdle ? ` (idle ${age(tenant.idleFor)})` : ""}`).join(", ");
  const facts = [gpu.isDark ? darkText(gpu) : gpu.isUp ? known(gpu.busy) && percent(gpu.busy) : "lost", known(gpu.celsius) && celsius(gpu.celsius), gpu.problems.join(", "), who || freeWord(gpu)];
  return [`${gpu.node.name} · GPU ${gpu.number}`, ...facts.filter(Boolean)].join(" · ");
}
