// The top of the page: header and totals.

import { spark } from "./chart.js";
import { h, known, shortModel, write, writeWhole } from "./dom.js";
import { UNKNOWN, count, duration, gpuNumber, integer, money, partOf, percent, second, watts } from "./numbers.js";
import { words } from "./words.js";

const LONG_SECONDS = 3; // of waiting, after which its length is shown

export class Header {
  constructor() {
    this.name = h("span", { class: "place" });
    this.dot = h("i", { class: "live", "aria-hidden": "true" });
    this.state = h("span", { class: "dim", id: "state" });
    this.status = h("span", { class: "status", hidden: true }, this.dot, this.state);
    this.theme = h("button", { type: "button", class: "theme", onclick: () => this.toggle() });
    this.user = h("span", { class: "dim user", hidden: true });
    this.element = h("header", {}, h("h1", {}, "podgpu"), this.name, this.status, this.user, this.theme);
    this.#nameTheme();
  }

  get isDark() {
    const { theme } = document.documentElement.dataset;
    return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  /** Show who has logged in. */
  greet(user) {
    this.user.hidden = false;
    write(this.user, user);
    this.user.title = `You have logged in as ${user}`;
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
    this.status.hidden = false;
    const nodes = model.isCluster ? `${count(model.nodes.length, "node")}, ` : "";
    // Of how many nodes the numbers are, in the server's words. Only if it is of all, they are live.
    const { state: seen = "live", severity, text = "live" } = model.insight.dark ?? {};
    const isSeen = seen === "live";
    // A recording may be paused, and what is read once does not change.
    const isPast = state === "past";
    const isOld = !isPast && !model.isReplay && model.interval > 0 && age > 3 * model.interval + 2;
    const isAway = state === "away" || state === "out";
    const { names, isStart } = model.awaited;
    this.dot.className = isPast ? "live past" : model.isReplay && !isAway ? "live" : `live ${isAway || (!isSeen && severity === "critical") ? "away" : isOld || names.length || !isSeen ? "old" : "on"}`;
    const every = model.interval ? `, every ${duration(model.interval)}` : "";
    const lost = state === "out" ? "logged out: reload the page to log in" : "connecting again";
    const awaited = `${isStart ? "starting, waiting for" : "nothing from"} ${names.join(", ")}: last numbers ${duration(age)} old`;
    const said = isPast ? `paused at ${second(model.takenAt)}` : isAway ? `${lost}, last numbers ${duration(age)} old` : names.length ? awaited : isOld ? `stale: numbers are ${duration(age)} old` : `${model.isReplay ? "recorded" : "live"}${every}`;
    const isTold = !isPast && !isAway && !names.length && !isOld && !model.isReplay;
    write(this.state, isTold && (!isSeen || model.isCluster) ? `${text}${isSeen ? every : ""}` : nodes + said);
    return !isAway && !isOld && !names.length;
  }
}

/** What is waited for, until there is a document. */
export class Loading {
  constructor() {
    this.began = Date.now();
    this.element = h("p", { class: "empty loading", role: "status" });
    this.draw("");
  }

  draw(state, awaited) {
    const waited = (Date.now() - this.began) / 1000;
    const said = state === "out" ? "You are logged out. Reload the page to log in at" : state === "away" ? "No answer. Reconnecting to" : "Waiting for the first numbers of";
    const part = awaited?.names.length ? `, whose ${awaited.names.join(", ")} is starting` : "";
    write(this.element, `${said} ${location.host}${part}${waited >= LONG_SECONDS ? `, for ${duration(waited)} so far` : ""}.`);
  }
}

/** Where the rows are that each total sums up. */
const LISTS = {
  GPUs: { view: "gpus" },
  Allocated: { view: "workloads" },
  "Truly busy": { view: "gpus", sort: "busy" },
  "Held, not used": { view: "idle" },
  Free: { view: "gpus", state: "room" },
  Power: { view: "gpus", sort: "power" },
};

export class Tiles {
  /** `link` leads to a list of everything. */
  constructor(link) {
    this.link = link;
    this.tiles = new Map(Object.keys(LISTS).map((name) => [name, this.#make(name)]));
    this.element = h("dl", { class: "tiles" }, ...[...this.tiles.values()].map((tile) => tile.element));
  }

  #make(name) {
    const formula = words.totals[name];
    const list = h("a", { title: formula }, name);
    // A finger has no title, and a screen reader may not say it.
    const why = h("button", { type: "button", class: "why", "data-tip": formula, "aria-label": `How ${name} is counted: ${formula}` });
    const value = h("dd", { class: "big" });
    const about = h("dd", { class: "dim" });
    const line = h("dd", { class: "line", "aria-hidden": "true" });
    return { list, value, about, line, element: h("div", { class: "tile" }, h("dt", {}, list, why), value, line, about) };
  }

  #put(name, value, about, points, top) {
    const tile = this.tiles.get(name);
    // Who waits for what is free is listed with it.
    const href = this.link(name === "Free" && this.waiting ? { view: "pending" } : LISTS[name]);
    if (tile.list.getAttribute("href") !== href) tile.list.setAttribute("href", href);
    write(tile.value, value);
    writeWhole(tile.about, about);
    if (points && tile.drawnAt !== points.at(-1)?.[0]) {
      tile.drawnAt = points.at(-1)?.[0];
      tile.line.replaceChildren(spark(points, top));
    }
  }

  /** The sums are those of everything, even while a filter is set. */
  draw({ insight: { sums, currency }, models, pending }, history) {
    const { gpus: all, dark_gpus: dark = 0, lost_gpus: lost = 0, guest_gpus: guests, allocated_gpus: allocated, busy_gpus: busy, free_instances: slices = [] } = sums;
    this.waiting = pending.length;
    const up = (all ?? 0) - dark - lost;
    const unseen = dark && `${integer(dark)} dark`;
    const measured = up - (sums.unknown_busy ?? 0);
    const join = (...parts) => parts.filter(Boolean).join(", ");
    const unknown = (number) => number && `${integer(number)} not known`;
    const kinds = models.slice(0, 3).map(([model, number]) => `${integer(number)} ${shortModel(model)}`);
    this.#put("GPUs", integer(all), [kinds.join(", "), unseen, lost && `${integer(lost)} lost`, guests && `${integer(guests)} given to VMs`].filter(Boolean).join(" · "));
    this.#put("Allocated", all && known(allocated) ? percent(allocated / all) : UNKNOWN, known(allocated) ? join(`${sums.unknown_shares ? "at least " : ""}${partOf("gpus", allocated, all)}`, dark && `${integer(dark)} as last heard`) : "not known", history.totals.series(0), all);
    this.#put("Truly busy", known(busy) ? percent(busy / measured) : UNKNOWN, known(busy) ? join(partOf("gpus", busy, measured), unknown(sums.unknown_busy), unseen) : join("not known", unseen), history.totals.series(1), up);
    const cost = known(sums.unused_cost_per_hour) && sums.unused_pods ? ` · ${money(sums.unused_cost_per_hour, currency)}/h` : "";
    const idle = sums.unused_pods ? `by ${count(sums.unused_pods, "pod")}` : "by no pod";
    const unjudged = sums.unknown_pods && `of ${count(sums.unknown_pods, "pod")} not known`;
    this.#put("Held, not used", gpuNumber(sums.unused_gpus), known(sums.unused_gpus) ? join(`${idle}${cost}`, unknown(sums.unknown_pods)) : unjudged || "not known", history.totals.series(3), up);
    const free = slices.map((slice) => `${integer(slice.count)} × ${slice.profile}`);
    this.#put("Free", gpuNumber(sums.free_gpus), join(known(sums.free_gpus) ? `${integer(sums.free_whole_gpus)} whole` : "not known", unseen, ...free, sums.cordoned_gpus && `${gpuNumber(sums.cordoned_gpus)} cordoned`, pending.length && `${count(pending.length, "pod")} waiting`));
    this.#put("Power", watts(sums.power_watts), join(known(sums.power_limit_watts) && `of ${watts(sums.power_limit_watts)} at most`, unknown(sums.unknown_power), unseen), history.totals.series(2), sums.power_limit_watts);
  }
}
