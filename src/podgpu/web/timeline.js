// The timeline: busy GPUs by namespace, XIDs, throttling, and times when nothing was seen. The page shows the moment that is chosen here.

import { SPANS } from "./address.js";
import { ask } from "./ask.js";
import { cssPart, h, morph, svg, write } from "./dom.js";
import { GoTo } from "./goto.js";
import { Keep } from "./keep.js";
import { count, gpuNumber, integer, moment, partOf, second } from "./numbers.js";

const LEAST_REFRESH_MS = 5000;
const NEAR_END = 0.995; // of the width: beyond it is the present
const FAR = 10; // steps of PageUp and PageDown
const MOST_MARKS = 60; // XIDs that get a mark of their own
const LABEL_PX = 90; // of the axis
const DATED_SECONDS = 12 * 3600; // labels of a longer time have dates
const NICE = [60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];

const rounded = (value) => Math.round(value * 1000) / 1000;

/** The path of a layer, step by step; undefined steps are gaps. `top` is the height of the drawing. */
function outline(lower, upper, top) {
  let path = "";
  for (let at = 0; at < upper.length; at += 1) {
    if (upper[at] === undefined || upper[at] <= lower[at]) continue;
    path += `M${at} ${rounded(top - lower[at])}V${rounded(top - upper[at])}H${at + 1}V${rounded(top - lower[at])}Z`;
  }
  return path;
}

export class Timeline {
  /** `onMoment(at)` gets seconds, or 0 for the present; `onXid(xid)` the XID whose mark was chosen. `Keep` needs the others. */
  constructor({ colours, onMoment, onXid, facts, link }) {
    Object.assign(this, { colours, onMoment, onXid });
    this.drawing = svg("svg", { preserveAspectRatio: "none", "aria-hidden": "true" });
    this.cursor = h("i", { class: "cursor", hidden: true });
    this.scale = h("span", { class: "scale dim", "aria-hidden": "true" });
    this.marks = h("div", { class: "marks" });
    this.slider = h("div", { class: "slide", role: "slider", tabindex: "0", "aria-label": "Moment shown", "aria-valuemin": "0", "aria-valuemax": "0", "aria-valuenow": "0", "aria-valuetext": "live" });
    this.axis = h("div", { class: "axis dim", "aria-hidden": "true" });
    this.said = h("span", { class: "said" });
    const kept = () => ({ ...this.kept, step: this.data?.moment_seconds ?? 0, isStored: this.data?.is_stored });
    this.goTo = new GoTo({ onMoment: (at) => this.#go(at), kept });
    this.keep = new Keep({ shown: () => this.shown || this.kept.to, link, facts: () => ({ ...facts(), isStored: this.data?.is_stored }) });
    this.element = h("section", { class: "timeline", "aria-label": "The last hour" }, h("div", { class: "hour" }, this.drawing, this.scale, this.cursor, this.slider, this.marks), h("div", { class: "under" }, this.axis, this.said));
    this.spans = h("nav", { class: "spans", "aria-label": "Length of the timeline", hidden: true });
    this.element.append(h("div", { class: "tools" }, this.spans, this.goTo.element, this.keep.button), this.keep.panel);
    this.span = "";
    this.slider.addEventListener("pointerdown", (event) => this.#grab(event));
    this.slider.addEventListener("pointermove", (event) => this.#point(event));
    this.slider.addEventListener("pointerleave", () => write(this.said, ""));
    this.slider.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.#axis()).observe(this.element);
    this.#ask();
  }

  async #ask() {
    clearTimeout(this.timer);
    const { span } = this;
    const answer = await ask(`api/v1/timeline${span ? `?hours=${SPANS[span][1]}` : ""}`);
    if (span !== this.span) return; // meanwhile, another was chosen
    if (!answer.error) this.data = answer;
    else if (answer.status) this.missing = answer.error;
    this.draw(this.shown);
    if (answer.status === 502) write(this.said, answer.error);
    clearTimeout(this.timer); // the same one may have been chosen, left and chosen again
    this.timer = setTimeout(() => this.#ask(), Math.max(LEAST_REFRESH_MS, (this.data?.step ?? 15) * 1000));
  }

  /** Offer longer timelines if there is a store; `link(span)` leads to them. */
  choose(span, link) {
    this.spans.hidden = !link;
    const wanted = link ? span : "";
    if (link) morph(this.spans, h("nav", { class: "spans", "aria-label": "Length of the timeline" }, ...Object.entries(SPANS).map(([key, [name]]) => h("a", { href: link(key), "aria-current": key === wanted ? "page" : null }, name))));
    if (wanted === this.span) return;
    this.span = wanted;
    this.element.setAttribute("aria-label", wanted ? `The last ${SPANS[wanted][0]}` : "The last hour");
    this.#ask();
  }

  /** Go to a time that was written. From there, keys step on. */
  #go(at) {
    this.slider.focus({ preventScroll: true });
    this.onMoment(at);
  }

  /** The times of the first and the last moment that the page can show; empty if there are none, or if they are not known yet. */
  get kept() {
    return this.data?.kept ?? {};
  }

  /** Draw. `shown` is the time of the moment that the page shows, or 0 for the present. */
  draw(shown) {
    this.shown = shown;
    this.element.classList.toggle("off", Boolean(this.missing && !this.data));
    if (!this.data) {
      write(this.said, this.missing ?? "");
      return;
    }
    // Namespaces get their colours from the first document, which may come later.
    if (this.drawn !== this.data || this.given !== this.colours.given.size) this.#draw();
    this.#pause();
  }

  #draw() {
    [this.drawn, this.given] = [this.data, this.colours.given.size];
    const { steps, namespaces } = this.data;
    const most = Math.max(0, ...steps.map((step) => step.gpus ?? 0));
    const top = Math.max(1, most);
    const lower = steps.map(() => 0);
    const layer = (className, of) => {
      const upper = steps.map((step, at) => (step.busy_gpus === undefined ? undefined : lower[at] + (of(step) ?? 0)));
      const path = svg("path", { class: className, d: outline(lower, upper, top) });
      upper.forEach((value, at) => (lower[at] = value ?? lower[at]));
      return path;
    };
    const layers = namespaces.map((name) => layer(`ns ${this.colours.of({ namespace: name })}`, (step) => step.namespaces[name]));
    layers.push(layer("ns cx", (step) => step.other_gpus));
    layers.push(layer("rest", (step) => Math.max(0, step.busy_gpus - lower[steps.indexOf(step)])));
    const unseen = svg("path", { class: "unseen", d: outline(steps.map((step) => step.seen_gpus ?? 0), steps.map(() => top), top) });
    const throttled = svg("path", { class: "throttled", d: outline(steps.map(() => 0), steps.map((step) => (step.throttled_gpus ? top * 0.08 : undefined)), top) });
    this.drawing.setAttribute("viewBox", `0 0 ${steps.length} ${top}`);
    this.drawing.replaceChildren(unseen, ...layers, throttled);
    write(this.scale, most ? count(most, "GPU") : ""); // where none was seen, it is not known how many there are
    this.#marks();
    this.#axis();
  }

  #marks() {
    const { xids } = this.data;
    const sign = JSON.stringify(xids) + this.data.from;
    if (sign === this.sign) return;
    this.sign = sign;
    const held = this.marks.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
    this.marks.replaceChildren(...xids.slice(-MOST_MARKS).map((xid) => this.#mark(xid)));
    if (held) [...this.marks.children].find((mark) => mark.getAttribute("aria-label") === held)?.focus({ preventScroll: true });
  }

  #mark(xid) {
    const name = `XID ${xid.code} on ${xid.node} GPU ${xid.gpu} at ${second(xid.at)}`;
    const mark = h("button", { type: "button", class: `mark ${xid.severity ?? ""}`, title: name, "aria-label": name, onclick: () => this.onXid(xid) });
    mark.style.left = cssPart(this.#part(xid.at));
    return mark;
  }

  #axis() {
    if (!this.data) return;
    const { from, to } = this.data;
    const width = Math.max(1, this.axis.clientWidth);
    const wanted = ((to - from) * (to - from > DATED_SECONDS ? 1.6 : 1) * LABEL_PX) / width;
    const every = NICE.find((seconds) => seconds >= wanted) ?? NICE.at(-1);
    const offset = new Date(from * 1000).getTimezoneOffset() * 60;
    const labels = [];
    for (let at = Math.ceil((from - offset) / every) * every + offset; at < to; at += every) {
      const part = this.#part(at);
      if (part * width < LABEL_PX / 4 || (1 - part) * width < LABEL_PX / 4) continue; // the label would be cut off
      const label = h("span", {}, moment(at));
      label.style.left = cssPart(part);
      labels.push(label);
    }
    this.axis.replaceChildren(...labels);
  }

  #pause() {
    const { from, to, kept } = this.data;
    const at = this.shown || kept.to || to;
    this.cursor.hidden = !this.shown;
    this.cursor.style.left = cssPart(this.#part(at));
    const { slider } = this;
    const values = { "aria-valuemin": Math.round(from), "aria-valuemax": Math.round(to), "aria-valuenow": Math.round(at), "aria-valuetext": this.shown ? this.#words(at) : "live" };
    for (const [name, value] of Object.entries(values)) if (slider.getAttribute(name) !== String(value)) slider.setAttribute(name, value);
  }

  #part(at) {
    const { from, to } = this.data;
    return Math.min(1, Math.max(0, (at - from) / (to - from)));
  }

  /** What happened then, in words. */
  #words(at) {
    const { from, step, steps, xids } = this.data;
    const found = steps[Math.min(steps.length - 1, Math.max(0, Math.floor((at - from) / step)))];
    const parts = [second(at)];
    if (found.busy_gpus === undefined) parts.push("nothing was seen");
    else {
      parts.push(`${partOf("gpus", found.busy_gpus, found.gpus)} busy`);
      const busiest = Object.entries(found.namespaces).sort((a, b) => b[1] - a[1]);
      if (busiest.length) parts.push(busiest.slice(0, 3).map(([name, gpus]) => `${name || "outside Kubernetes"} ${gpuNumber(gpus)}`).join(", "));
    }
    if (found.throttled_gpus) parts.push(`${integer(found.throttled_gpus)} throttled`);
    for (const xid of xids) if (xid.at >= found.at && xid.at < found.at + step) parts.push(`XID ${xid.code} on GPU ${xid.gpu}`);
    return parts.join(" · ");
  }

  /** The time under the pointer; 0 at the right end, which is the present; below 0 where there is no moment to show. */
  #timeOf(event) {
    const { left, width } = this.slider.getBoundingClientRect();
    const part = Math.min(1, Math.max(0, (event.clientX - left) / width));
    const { from, to, kept } = this.data;
    const at = from + part * (to - from);
    if (part > NEAR_END || at > kept.to) return 0;
    if (this.data.is_stored) return Math.ceil(at);
    // A store has only sums of the time before that.
    return this.span && at < kept.from - this.data.step ? -at : Math.ceil(Math.max(at, kept.from));
  }

  #grab(event) {
    if (!this.data?.kept.to || event.button) return;
    this.slider.setPointerCapture(event.pointerId);
    const at = this.#timeOf(event);
    if (at >= 0) this.onMoment(at);
    else write(this.said, `${this.#words(-at)} · ${this.#unkept}`);
  }

  #point(event) {
    if (!this.data?.kept.to) return;
    const at = this.#timeOf(event);
    write(this.said, at > 0 ? this.#words(at) : at < 0 ? `${this.#words(-at)} · ${this.#unkept}` : "");
    if (at >= 0 && this.slider.hasPointerCapture(event.pointerId)) this.onMoment(at, { replace: true });
  }

  get #unkept() {
    return `the page can show moments since ${moment(this.data.kept.from)}`;
  }

  /** Handle a key of the slider, or one that no other part of the page uses. */
  key(event) {
    if (!this.data?.kept.to || event.defaultPrevented) return;
    const { kept, moment_seconds: step } = this.data;
    const now = this.shown ? Math.ceil(this.shown) : Math.ceil(kept.to);
    const to = { ArrowLeft: now - step, ArrowRight: now + step, PageUp: now - FAR * step, PageDown: now + FAR * step, Home: Math.ceil(kept.from), End: Infinity, " ": this.shown ? Infinity : now }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.onMoment(to > kept.to + 1 ? 0 : Math.max(Math.ceil(kept.from), to), { replace: Boolean(this.shown) });
  }
}
