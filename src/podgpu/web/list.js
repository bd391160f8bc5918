// A long list. Only what is on the screen is drawn.

import { arrange, h } from "./dom.js";

const MOST_PRINTED = 2000; // rows: more would take a browser minutes
const MARGIN = 400; // pixels drawn beyond the screen, so that scrolling shows no gap

/**
 * Items have a `key`, a `height` in pixels and a `kind`; `kinds[kind](item)` makes a row: {element, update(item)}.
 * Rows are kept while they are near the screen, and updated with newer items.
 */
export class List {
  constructor(kinds, name) {
    this.kinds = kinds;
    this.items = [];
    this.tops = [0];
    this.rows = new Map();
    this.isWhole = false;
    this.element = h("div", { class: "list", role: "list", "aria-label": name });
    this.frame = 0;
    for (const event of ["scroll", "resize"]) addEventListener(event, () => this.later(), { passive: true });
    addEventListener("beforeprint", () => this.whole(true));
    addEventListener("afterprint", () => this.whole(false));
  }

  show(items) {
    this.items = items;
    this.tops = [0];
    for (const item of items) this.tops.push(this.tops.at(-1) + item.height);
    const height = `${this.tops.at(-1)}px`;
    if (this.element.style.height !== height) this.element.style.height = height;
    this.draw(true);
  }

  /** How many of the items are printed. */
  get printed() {
    return Math.min(this.items.length, MOST_PRINTED);
  }

  /** Draw everything, or as much as can be printed. */
  whole(isWhole) {
    this.isWhole = isWhole;
    this.draw(true);
  }

  later() {
    if (!this.frame) this.frame = requestAnimationFrame(() => ((this.frame = 0), this.draw(false)));
  }

  draw(isNew) {
    const [first, last] = this.span();
    if (!isNew && first === this.first && last === this.last) return;
    [this.first, this.last] = [first, last];
    const kept = new Map();
    for (const place of this.places(first, last)) {
      const item = this.items[place];
      const id = `${item.kind} ${item.key}`;
      const row = this.rows.get(id) ?? this.add(item);
      if (isNew || !this.rows.has(id)) this.place(row, item, place);
      this.rows.delete(id);
      kept.set(id, row);
    }
    this.rows = kept;
    // In the order of the items, for the Tab key and screen readers.
    arrange(this.element, [...kept.values()].map((row) => row.element));
  }

  /** The places of the items near the screen, and of the one that has the focus, wherever it is. */
  places(first, last) {
    const places = Array.from({ length: last - first }, (_, at) => first + at);
    const held = this.element.contains(document.activeElement) && [...this.rows].find(([, row]) => row.element.contains(document.activeElement));
    if (!held) return places;
    const at = this.items.findIndex((item) => `${item.kind} ${item.key}` === held[0]);
    if (at >= 0 && (at < first || at >= last)) places.push(at);
    return places.sort((a, b) => a - b);
  }

  span() {
    if (this.isWhole) return [0, this.printed];
    const top = -this.element.getBoundingClientRect().top;
    return [this.at(top - MARGIN), Math.min(this.items.length, this.at(top + innerHeight + MARGIN) + 1)];
  }

  /** The item at that height, by binary search. */
  at(height) {
    let low = 0;
    let high = this.items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tops[middle + 1] <= height) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  add(item) {
    const row = this.kinds[item.kind](item);
    row.element.classList.add("item");
    row.element.setAttribute("role", "listitem");
    return row;
  }

  place(row, item, place) {
    const { style } = row.element;
    const top = `${this.tops[place]}px`;
    const height = `${item.height}px`;
    if (style.top !== top) style.top = top;
    if (style.height !== height) style.height = height;
    row.element.setAttribute("aria-setsize", this.items.length);
    row.element.setAttribute("aria-posinset", place + 1);
    row.update(item);
  }
}
