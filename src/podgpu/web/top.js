// The first glance: header, totals, and what is wrong.

import { spark } from "./chart.js";
import { h, known, shortModel, write } from "./dom.js";
import { UNKNOWN, count, duration, gpuNumber, integer, partOf, percent, watts } from "./numbers.js";

const SHOWN = 4; // alerts before the rest is folded

export class Header {
  constructor() {
    this.name = h("span", { class: "place" });
    this.dot = h("i", { class: "live", "aria-hidden": "true" });
    this.state = h("span", { class: "dim", id: "state" });
    this.theme = h("button", { type: "button", class: "theme", onclick: () => this.toggle() });
    this.element = h("header", {}, h("h1", {}, "podgpu"), this.name, h("span", { class: "status" }, this.dot, this.state), this.theme);
    this.#nameTheme();
  }

  get isDark() {
    const { theme } = document.documentElement.dataset;
    return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  toggle() {
    const theme = this.isDark ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem("podgpu-theme", theme);
    } catch {
      // Without storage it lasts as long as the page.
    }
    this.#nameTheme();
  }

  #nameTheme() {
    write(this.theme, this.isDark ? "Light" : "Dark");
    this.theme.setAttribute("aria-label", this.isDark ? "Use light colours" : "Use dark colours");
  }

  draw(model, state, age) {
    write(this.name, model.name);
    const nodes = model.isCluster ? `${count(model.nodes.length, "node")}, ` : "";
    const isOld = age > 3 * model.interval + 2;
    const look = state === "away" ? "away" : isOld ? "old" : "on";
    this.dot.className = `live ${look}`;
    write(this.state, state === "away" ? `${nodes}connecting again, last numbers ${duration(age)} old` : isOld ? `${nodes}stale: numbers are ${duration(age)} old` : `${nodes}live, every ${duration(model.interval)}`);
  }
}

export class Tiles {
  constructor() {
    this.tiles = new Map(["GPUs", "Allocated", "Truly busy", "Held, not used", "Free", "Power"].map((name) => [name, this.#make(name)]));
    this.element = h("dl", { class: "tiles" }, ...[...this.tiles.values()].map((one) => one.element));
  }

  #make(name) {
    const value = h("dd", { class: "big" });
    const about = h("dd", { class: "dim" });
    const line = h("dd", { class: "line", "aria-hidden": "true" });
    return { value, about, line, element: h("div", { class: "tile" }, h("dt", {}, name), value, line, about) };
  }

  #put(name, value, about, points, top) {
    const tile = this.tiles.get(name);
    write(tile.value, value);
    write(tile.about, about);
    if (points) tile.line.replaceChildren(spark(points, top));
  }

  draw(totals, history, pending, cost) {
    const up = totals.gpus - totals.lost;
    const models = totals.models.slice(0, 3).map(([model, number]) => `${integer(number)} ${shortModel(model)}`).join(", ");
    this.#put("GPUs", integer(totals.gpus), [models, totals.lost && `${integer(totals.lost)} lost`].filter(Boolean).join(" · "));
    this.#put("Allocated", up ? percent(totals.allocated / up) : UNKNOWN, `${totals.isAllocatedUnknown ? "at least " : ""}${partOf("gpus", totals.allocated, up)}`, history.totals.series(0), up);
    const known_ = totals.busyOf < up ? `, ${integer(up - totals.busyOf)} not known` : "";
    this.#put("Truly busy", known(totals.busy) && totals.busyOf ? percent(totals.busy / totals.busyOf) : UNKNOWN, known(totals.busy) ? `${partOf("gpus", totals.busy, totals.busyOf)}${known_}` : "not known", history.totals.series(1), up);
    this.#put("Held, not used", gpuNumber(totals.idle), totals.idleHolders ? `by ${count(totals.idleHolders, "pod")} for 30 min or more${cost}` : "nobody for 30 min or more", history.totals.series(3), up);
    const parts = [`${integer(totals.freeWhole)} whole`, totals.freeSlices && count(totals.freeSlices, "MIG slice"), pending && `${count(pending, "pod")} waiting`];
    this.#put("Free", gpuNumber(Math.max(0, totals.free)), parts.filter(Boolean).join(", "));
    this.#put("Power", watts(totals.watts), totals.wattsLimit ? `of ${watts(totals.wattsLimit)} at most` : "", history.totals.series(2), totals.wattsLimit);
  }
}

/** Alerts, and a polite voice that only speaks when there are new ones. */
export class Alerts {
  constructor(link) {
    this.link = link;
    this.isOpen = false;
    this.known = null;
    this.list = h("ul", { class: "alerts" });
    this.voice = h("p", { class: "spoken", role: "status" });
    this.more = h("button", { type: "button", class: "more", onclick: () => ((this.isOpen = !this.isOpen), this.draw(this.alerts, this.isCluster)) });
    this.element = h("section", { "aria-label": "What is wrong" }, this.list, this.more, this.voice);
  }

  draw(alerts, isCluster) {
    this.alerts = alerts;
    this.isCluster = isCluster;
    const shown = this.isOpen ? alerts : alerts.slice(0, SHOWN);
    const sign = JSON.stringify(shown.map((one) => [one.level, one.kind, one.text]));
    if (sign !== this.sign) {
      this.sign = sign;
      this.list.replaceChildren(...shown.map((one) => this.#item(one)));
    }
    this.more.hidden = alerts.length <= SHOWN;
    this.more.setAttribute("aria-expanded", this.isOpen);
    write(this.more, this.isOpen ? "Show fewer" : `Show ${integer(alerts.length - SHOWN)} more`);
    this.#speak(alerts);
  }

  #item(one) {
    const where = this.isCluster && (one.gpu || one.node) ? h("b", { class: "where" }, one.gpu?.node.name ?? one.node.name) : null;
    const link = one.pod ? ["why", { pod: one.pod }] : one.view ? ["show", { view: one.view }] : one.gpu ? ["show", { view: "gpus", q: one.gpu.uuid }] : one.node ? ["show", { view: "gpus", node: one.node.name }] : null;
    return h(
      "li",
      { class: one.level > 1 ? "alert bad" : "alert" },
      h("strong", {}, one.kind),
      h("span", { class: "what" }, where, where ? " " : null, one.text, one.next ? h("span", { class: "next" }, ` ${one.next}`) : null),
      link ? h("a", { href: this.link(link[1]), "aria-label": `${link[0]}: ${one.text}` }, link[0]) : null,
    );
  }

  #speak(alerts) {
    const now = new Set(alerts.map((one) => `${one.kind}: ${one.gpu?.key ?? one.node?.name ?? ""}`));
    const fresh = this.known ? [...now].filter((one) => !this.known.has(one)).length : 0;
    if (fresh) write(this.voice, `${count(fresh, "new problem")}, ${integer(alerts.length)} in all`);
    this.known = now;
  }
}
