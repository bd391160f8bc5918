// What the page shows is in its address, so that a link shows the same.

export const VIEWS = { gpus: "By GPU", workloads: "By workload", nodes: "By node", namespaces: "By namespace", teams: "By team", idle: "Idle", pending: "Waiting", problems: "Problems", bill: "Bill", fit: "Fit" };
export const FACETS = ["namespace", "workload", "team", "node", "model", "state"];
export const STATES = { busy: "busy", idle: "idle holders", free: "free", shared: "shared", mig: "MIG", room: "room left", lost: "lost", dark: "dark", "not read": "not read", xid: "XID", ecc: "ECC" };
const GROUPS = { "": "most GPUs", busy: "busiest", idle: "most not used", memory: "most memory", power: "most power", name: "name" };
export const SORTS = {
  gpus: { "": "node", busy: "busiest", memory: "most memory", power: "most power", heat: "hottest", idle: "longest idle" },
  workloads: { "": "most GPUs", busy: "busiest", memory: "most memory", power: "most power", name: "name" },
  nodes: GROUPS,
  namespaces: GROUPS,
  teams: GROUPS,
  idle: { "": "most wasted", since: "longest idle", name: "name" },
  pending: { "": "" },
  problems: { "": "most pressing" },
  bill: { "": "" },
  fit: { "": "" },
};
export const FROM_STORE = ["bill", "fit", "pending"]; // views without filters: of what is in the store, and of pods on no GPU yet
export const NO_TEAM = "-"; // pods without the label
export const PERIODS = { "": ["Hour", 1], day: ["Day", 24], week: ["Week", 168] };
export const SPANS = { "": ["1 h", 1], day: ["24 h", 24], week: ["7 d", 168] }; // of the timeline
const NAMES = ["view", "q", ...FACETS, "cells", "colour", "sort", "by", "pod", "gpu", "period", "span", "at", "problem", "of", "from", "to", "basis", "compare"];

export class Address {
  constructor(onChange) {
    this.onChange = onChange;
    this.read();
    // The list is drawn after the browser would scroll, so the page restores scroll and focus itself.
    history.scrollRestoration = "manual";
    addEventListener("popstate", ({ state }) => {
      this.read();
      onChange(state);
    });
    addEventListener("pagehide", leave);
  }

  read() {
    const query = new URLSearchParams(location.search);
    for (const name of NAMES) this[name] = query.get(name) ?? "";
    if (!(this.view in VIEWS)) this.view = "gpus";
    if (!(this.sort in SORTS[this.view])) this.sort = "";
    if (!(this.period in PERIODS)) this.period = "";
    if (!(this.span in SPANS)) this.span = "";
    if (!(Number(this.at) > 0)) this.at = "";
    if (this.view !== "problems") this.problem = ""; // it is of that view alone
    this.#choose();
  }

  /** While one is chosen to be compared, opening another compares the two. */
  #choose() {
    const other = this.gpu || this.pod;
    if (!this.compare || this.pair || !other) return;
    this.compare = this.compare === other ? "" : `${this.compare},${other}`;
    if (this.compare) this.gpu = this.pod = "";
    history.replaceState(history.state, "", this.link({}));
  }

  /** The two that are compared; null unless there are two. */
  get pair() {
    const both = this.compare.split(",");
    return both.length === 2 && both.every(Boolean) ? both : null;
  }

  /** The current address with some changes. */
  link(changes) {
    const query = new URLSearchParams();
    for (const name of NAMES) {
      const value = changes[name] ?? (name === "problem" && changes.view ? "" : this[name]);
      if (value && !(name === "view" && value === "gpus")) query.set(name, value);
    }
    return `${location.pathname}${query.size ? `?${query}` : ""}`;
  }

  /** Go there. Typing replaces the entry in the browser's history, so that one step back leaves the search. */
  go(changes, { replace = false } = {}) {
    const link = this.link(changes);
    if (replace) history.replaceState(null, "", link);
    else this.push(link);
    this.read();
    this.onChange();
  }

  /** Go to an address, and note scroll and focus for coming back. */
  push(link) {
    leave();
    history.pushState(null, "", link);
    this.read();
  }

  get isFiltered() {
    return Boolean(this.q || this.cells || FACETS.some((name) => this[name]));
  }
}

const FOCUSABLE = "a[href], button, select, input, canvas, [tabindex]";
const nameOf = (element) => `${element.tagName} ${element.getAttribute("href") ?? element.getAttribute("aria-label") ?? element.textContent}`;
const alike = (name) => [...document.querySelectorAll(FOCUSABLE)].filter((element) => nameOf(element) === name);

function leave() {
  const held = document.activeElement;
  const name = held && held !== document.body ? nameOf(held) : "";
  history.replaceState({ top: scrollY, focus: name ? { name, place: alike(name).indexOf(held) } : null }, "");
}

/** Focus the element that had the focus when the address was left. */
export function focusAgain(focus) {
  if (focus) alike(focus.name)[focus.place]?.focus({ preventScroll: true });
}

/** A range of GPUs, in the order of nodes and numbers: `gpu-node-003:0~gpu-node-017:7`. */
export function rangeOf(cells) {
  const ends = cells.split("~").map((end) => [end.slice(0, end.lastIndexOf(":")), Number(end.slice(end.lastIndexOf(":") + 1))]);
  if (ends.length !== 2 || ends.some(([name, index]) => !name || Number.isNaN(index))) return null;
  const order = (gpu, [name, index]) => (gpu.node.name === name ? gpu.index - index : gpu.node.name < name ? -1 : 1);
  return { has: (gpu) => order(gpu, ends[0]) >= 0 && order(gpu, ends[1]) <= 0 };
}

/** `isMeant` says whether a GPU is shown, `fits` which of its tenants match. */
export function filterOf(address, label) {
  const words = address.q.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (tenant) =>
    (!address.namespace || tenant.namespace === address.namespace) && (!address.workload || tenant.workload === address.workload) && (!address.team || (tenant.labels?.[label] ?? NO_TEAM) === address.team);
  const range = rangeOf(address.cells);
  const isMeant = (gpu) =>
    (!range || range.has(gpu)) &&
    (!address.node || gpu.node.name === address.node) &&
    (!address.model || gpu.model === address.model) &&
    (!address.state || gpu.states.has(address.state)) &&
    ((!address.namespace && !address.workload && !address.team) || gpu.tenants.some(fits)) &&
    words.every((word) => gpu.text.includes(word));
  return { isMeant, fits: (tenant) => fits(tenant) && words.every((word) => textFits(tenant, word)) };
}

/** A word that matches the node or the model matches all tenants there. */
function textFits(tenant, word) {
  const names = `${tenant.id}\n${tenant.kind}\n${tenant.workload}\n${tenant.container}`.toLowerCase();
  return names.includes(word) || tenant.place?.includes(word);
}
