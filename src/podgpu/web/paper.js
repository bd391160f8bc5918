// What stands on paper alone: of when the numbers are, what was chosen, how many rows there are, and what they add up to.

import { FACETS, FROM_STORE, VIEWS } from "./address.js";
import { h, write } from "./dom.js";
import { count, dated, integer } from "./numbers.js";

const CHOSEN = ["q", ...FACETS, "cells"];

/** The filter in words; empty without one. */
function filterOf(address) {
  const set = CHOSEN.filter((name) => address[name]).map((name) => `${name === "q" ? "search" : name} ${address[name]}`);
  return set.length ? `only ${set.join(", ")}` : "";
}

const isCounted = ({ kind }) => kind !== "node";

export class Paper {
  constructor() {
    this.head = h("p", { class: "printed" });
    this.foot = h("p", { class: "printed total" });
  }

  /** The list has `items`, of which the first `printed` are on paper; `total` is what the rows add up to, in the server's words. */
  draw({ name, takenAt }, address, { items, printed }, total) {
    const what = address.pod || address.gpu || VIEWS[address.view];
    const isList = !address.pod && !address.gpu && !FROM_STORE.includes(address.view);
    write(this.head, [name, what, `as of ${dated(takenAt)}`, `printed ${dated(Date.now() / 1000)}`, isList && filterOf(address)].filter(Boolean).join(" · "));
    const all = items.filter(isCounted).length;
    const shown = items.slice(0, printed).filter(isCounted).length;
    const noun = address.view === "gpus" ? "GPU" : "row";
    const rows = shown < all ? `The first ${count(shown, noun)} of ${integer(all)}: ${integer(all - shown)} are not printed.` : `${count(all, noun)} in this list.`;
    write(this.foot, isList ? [rows, address.isFiltered ? "" : total].filter(Boolean).join(" ") : "");
  }
}
