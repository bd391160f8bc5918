// A long list of which only what is on the screen is drawn.

import { arrange, h } from "./dom.js";

const MARGIN = 400; // pixels drawn beyond the screen, so that scrolling shows no gap

/**
 * Items have a `key`, a `height` in pixels and a `kind`; `kinds[kind](item)` makes a row: {element, update(item)}.
 * Rows are kept while they are near the screen, and are given newer items.
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
    this.onScroll = () => this.later();
    addEventListener("scroll", this.onScroll, { passive: true });
    addEventListener("resize", this.onScroll, { passive: true });
    this.beforePrint = () => this.whole(true);
    this.afterPrint = () => this.whole(false);
    addEventListener("beforeprint", this.beforePrint);
    addEventListener("afterprint", this.afterPrint);
  }

  close() {
    removeEventListener("scroll", this.onScroll);
    removeEventListener("resize", this.onScroll);
    removeEventListener("beforeprint", this.beforePrint);
    removeEventListener("afterprint", this.afterPrint);
    cancelAnimationFrame(this.frame);
  }

  show(items) {
    this.items = items;
    this.tops = [0];
    for (const item of items) this.tops.push(this.tops.at(-1) + item.height);
    const height = `${this.tops.at(-1)}px`;
    if (this.element.style.height !== height) this.element.style.height = height;
    this.draw(true);
  }

  /** Paper has no screen to scroll: draw everything for it. */
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
    // In the order of the items: the Tab key and a screen reader go by it.
    arrange(this.element, [...kept.values()].map((row) => row.element));
  }

  /** What is near the screen, and the row that has the focus, wherever it is. */
  places(first, last) {
    const found = Array.from({ length: last - first }, (_, at) => first + at);
    const held = this.element.contains(document.activeElement) && [...this.rows].find(([, row]) => row.element.contains(document.activeElement));
    if (!held) return found;
    const at = this.items.findIndex((item) => `${item.kind} ${item.key}` === held[0]);
    if (at >= 0 && (at < first || at >= last)) found.push(at);
    return found.sort((a, b) => a - b);
  }

  span() {
    if (this.isWhole) return [0, this.items.length];
    const top = -this.element.getBoundingClientRect().top;
    return [this.at(top - MARGIN), Math.min(this.items.length, this.at(top + innerHeight + MARGIN) + 1)];
  }

  /** The item at that height, by halving. */
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
