// The legend of colours and signs, the list of keys, and the number of problems in the icon.

import { h, renew } from "./dom.js";

const SIGNS = [
  ["idle", "held, but not used for the time of --idle.after"],
  ["rest", "belongs to no pod: host processes, the driver, power of what nobody holds"],
  ["sign below", "below a bar: what each was given"],
  ["sign whisker", "its range: (12–34) is proven, (~12–34) is likely, not proven"],
];

/** Namespaces with their colours, and the signs. It is below the list, so that it moves nothing. */
export class Legend {
  constructor() {
    this.list = h("ul", {});
    this.element = h("details", { class: "legend" }, h("summary", {}, "Colours and signs"), this.list);
  }

  draw({ given }) {
    const item = (look, name) => h("li", {}, h("i", { class: `swatch seg ${look}`, "aria-hidden": "true" }), name);
    renew(this.list, [...given], (namespaces) => [...namespaces.map(([name, look]) => item(look, name)), item("cx", "outside Kubernetes"), ...SIGNS.map(([look, name]) => item(look, name))]);
  }
}

const KEYS = [
  ["/", "search"],
  ["g  w  i", "GPUs, workloads, idle"],
  ["b  f", "the bill and what fits, where there is a store"],
  ["↑  ↓", "the previous card, the next card"],
  ["Enter", "open the link that has the focus"],
  ["←  →  Space", "the timeline: back, forward, pause or live"],
  ["t", "go to a time, such as 14:03 or 20m"],
  ["Esc", "leave a field, a pod or a GPU"],
  ["?", "these keys"],
];

/** A dialog with all keys. */
export class KeyHelp {
  constructor(root) {
    const rows = KEYS.map(([key, does]) => h("tr", {}, h("th", { scope: "row" }, h("kbd", {}, key)), h("td", {}, does)));
    this.element = h("dialog", { class: "help", "aria-label": "Keys" }, h("h2", {}, "Keys"), h("table", {}, h("tbody", {}, rows)), h("button", { type: "button", onclick: () => this.element.close() }, "Close"));
    root.append(this.element);
  }

  toggle() {
    if (this.element.open) this.element.close();
    else this.element.showModal();
  }
}

/** Move the focus from a card in the list to its neighbour. Return false if no card has the focus. */
export function moveCard(step) {
  const held = document.activeElement?.closest(".list .gpu");
  if (!held) return false;
  const links = [...held.parentElement.querySelectorAll(".gpu .number")];
  const next = links[links.indexOf(held.querySelector(".number")) + step];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
  return true;
}

/** Shows the number of problems in the icon, and returns it for the title. */
export class Badge {
  constructor() {
    this.icon = document.querySelector("link[rel=icon]");
    this.plain = this.icon?.getAttribute("href");
  }

  draw(problems) {
    const number = problems.reduce((sum, problem) => sum + 1 + (problem.more ?? 0), 0);
    const isBad = problems.some((problem) => problem.severity === "critical");
    const text = number > 99 ? "99" : String(number);
    const drawing = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="${isBad ? "#b3201b" : "#825400"}"/><text x="16" y="23" font-family="sans-serif" font-size="20" font-weight="700" text-anchor="middle" fill="#fff">${text}</text></svg>`;
    const href = number ? `data:image/svg+xml,${encodeURIComponent(drawing)}` : this.plain;
    if (this.icon && this.icon.getAttribute("href") !== href) this.icon.setAttribute("href", href);
    return number ? `(${text}) ` : "";
  }
}
