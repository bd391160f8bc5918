// Bars whose segments add up to the pixel.

import { arrange, cssPart, h, write } from "./dom.js";
import { listed, onPaper, shortName } from "./room.js";

/** Divide whole pixels in proportion to the weights. The largest remainders get one pixel more. */
function divide(weights, pixels) {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  if (total <= 0) return weights.map(() => 0);
  const exact = weights.map((weight) => (weight * pixels) / total);
  const parts = exact.map(Math.floor);
  let left = pixels - parts.reduce((sum, part) => sum + part, 0);
  const order = exact.map((width, place) => [width - parts[place], place]).sort((a, b) => b[0] - a[0] || a[1] - b[1]);
  for (const [, place] of order) {
    if (left <= 0) break;
    parts[place] += 1;
    left -= 1;
  }
  return parts;
}

/**
 * Lay out segments on a bar of that many pixels. The `value` of a segment is in the unit of `total`; what is left is free.
 * If the values exceed the total, they fill the bar.
 */
function layOut(segments, total, pixels) {
  const values = segments.map((segment) => Math.max(0, segment.value || 0));
  const sum = values.reduce((all, value) => all + value, 0);
  const widths = divide([...values, Math.max(0, total - sum)], pixels);
  return { widths: widths.slice(0, -1), free: widths.at(-1) };
}

const LEAST_NAMED = 44; // pixels that a name needs
const INDENT = 10; // of them, on both sides
const NAME_FONT = "500 11px"; // the same as in app.css
const LABEL_FONT = "12px";
const LEAST_LINKED = 4; // pixels that a pointer can hit

/** Set the width: pixels for the screen, and a part of the bar for print, which has another width. */
function size(element, width) {
  const pixels = `${width}px`;
  if (element.style.width === pixels) return;
  element.style.width = pixels;
  element.style.setProperty("--w", width);
}

function paint(element, segment, width, scale = 1) {
  const look = `seg ${segment.look}`;
  if (element.className !== look) element.className = look;
  size(element, width);
  const label = element.firstElementChild ?? element.appendChild(h("span", { "aria-hidden": "true" }));
  write(label, segment.name && width * scale >= LEAST_NAMED ? shortName(segment.name, width * scale - INDENT, NAME_FONT) : "");
  // A tenant whose segment is too small is reached from the other views.
  const link = segment.link && width >= LEAST_LINKED ? segment.link : "";
  const tip = segment.tip ?? segment.spoken ?? "";
  if (element.dataset.tip !== tip) element.dataset.tip = tip;
  if ((element.getAttribute("href") ?? "") === link && element.dataset.spoken === segment.spoken) return;
  if (link) element.setAttribute("href", link);
  else element.removeAttribute("href");
  if (link) element.setAttribute("aria-label", segment.spoken);
  else element.removeAttribute("aria-label");
  element.dataset.spoken = segment.spoken;
}

/** The elements of the segments. A tenant keeps its element. */
function cellsOf(track, segments) {
  const keys = segments.map((segment, place) => segment.key ?? `at ${place}`);
  const known = new Map([...track.children].map((cell) => [cell.dataset.key, cell]));
  const cells = [...keys, "free"].map((key) => known.get(key) ?? h("a", { "data-key": key }));
  arrange(track, cells);
  return cells;
}

/** Make the parent have exactly that many children. */
function children(parent, count, make) {
  while (parent.childElementCount > count) parent.lastElementChild.remove();
  while (parent.childElementCount < count) parent.append(make());
  return parent.children;
}

const FREE = { look: "free" };

function fill(track, segments, total, pixels, scale) {
  const { widths, free } = layOut(segments, total, pixels);
  const cells = cellsOf(track, segments);
  segments.forEach((segment, place) => paint(cells[place], segment, widths[place], scale));
  paint(cells[segments.length], FREE, free);
  return widths;
}

const TALL = 20; // pixels of a bar
const LEAST_TALL = 3; // pixels of a whisker,
const MOST_TALL = 6; // and the most
const APART = 0.01; // of the bar, between two whiskers on one level

/** Levels for whiskers, one below the other where they would touch: [number of levels, level of each]. */
export function levelsOf(whiskers) {
  const ends = [];
  const levels = whiskers.map(({ from, to }) => {
    const free = ends.findIndex((end) => end < from);
    const level = free < 0 ? ends.length : free;
    ends[level] = to + APART;
    return level;
  });
  return [ends.length, levels];
}

/** A bar: slices side by side, each with segments; whiskers above; below, a thin rail of what each was given. */
export class Bar {
  constructor(name, title) {
    this.tracks = h("div", { class: "tracks" });
    this.whiskers = h("div", { class: "whiskers" });
    this.rail = h("div", { class: "rail" });
    this.label = h("div", { class: "label", "data-name": title });
    this.box = h("div", { class: "bar", role: "group" }, this.tracks, this.whiskers);
    this.element = h("div", { class: `cell ${name}` }, this.box, this.rail, this.label);
  }

  /** `bar`: slices [{size, total, segments}], whiskers [{from, to}] of 1, rail, label in parts, spoken, about. `room` is that for the label. */
  draw(bar, pixels, room = pixels) {
    const widths = divide(bar.slices.map((slice) => slice.size), pixels);
    const tracks = children(this.tracks, bar.slices.length, () => h("div", { class: "track" }));
    bar.slices.forEach((slice, place) => {
      size(tracks[place], widths[place]);
      fill(tracks[place], slice.segments, slice.total, widths[place], onPaper(pixels));
    });
    this.#drawWhiskers(bar.whiskers || []);
    this.rail.hidden = !bar.rail?.length;
    if (bar.rail?.length) fill(this.rail, bar.rail, 1, pixels);
    write(this.label, listed(bar.label, room, LABEL_FONT));
    const whole = [bar.label.map((part) => [part].flat().join(" ")).join(" · "), bar.about].filter(Boolean).join(", ");
    if (this.label.title !== whole) this.label.title = whole;
    if (this.spoken !== bar.spoken) this.box.setAttribute("aria-label", (this.spoken = bar.spoken));
  }

  #drawWhiskers(whiskers) {
    const marks = children(this.whiskers, whiskers.length, () => h("b"));
    const [count, levels] = levelsOf(whiskers);
    const tall = Math.max(LEAST_TALL, Math.min(MOST_TALL, Math.floor(TALL / Math.max(1, count)) - 1));
    const top = Math.max(0, (TALL - count * (tall + 1) + 1) / 2);
    whiskers.forEach(({ from, to }, place) => {
      const left = Math.min(from, 1);
      const { style } = marks[place];
      style.left = cssPart(left);
      style.width = cssPart(Math.min(to, 1) - left);
      style.top = `${top + levels[place] * (tall + 1)}px`;
      style.height = `${tall}px`;
    });
  }
}
