// What is wrong, as the document has it: most pressing first, each with what to do about it.

import { h, morph, write } from "./dom.js";
import { count, integer } from "./numbers.js";

const LINES = 4; // of problems and, where there are more, the button that shows the rest
const NEVER_FOLDED = "gpu_unreadable"; // a card that is lost
const GONE_MS = 5000; // a problem that is over is shown for so long, in its place: it may come back
const HAND_MS = 2000; // after the last touch of the mouse or a key,
const LATEST_MS = 6000; // unless that is too long: then the list is pushed all the same

/** Where to look: the pod, the card or the node. */
const linkOf = ({ pod, uuid, node }) => (pod ? ["why", { pod }] : uuid ? ["show", { view: "gpus", gpu: uuid }] : node ? ["show", { view: "gpus", node }] : null);

/** What they are about; of several about the same, which. Their texts may change. */
function keysOf(problems) {
  const seen = new Map();
  return problems.map(({ kind, title, node, uuid, pod }) => {
    const key = [kind, title, node, uuid, pod].join(" ");
    seen.set(key, (seen.get(key) ?? 0) + 1);
    return `${key} ${seen.get(key)}`;
  });
}

/** The first few, and every card that is lost. */
function unfolded(problems) {
  const most = problems.length > LINES ? LINES - 1 : LINES;
  return problems.filter((one, place) => place < most || one.kind === NEVER_FOLDED);
}

/** The list, and a polite voice that only speaks when there are new ones. */
export class Alerts {
  constructor(link) {
    this.link = link;
    this.isOpen = false;
    this.known = null;
    this.room = 0;
    this.unfolded = new Set(); // problems whose whole text is shown
    this.cut = new Set(); // those whose text has no room in a line
    for (const touch of ["pointermove", "pointerdown", "keydown", "wheel"]) addEventListener(touch, () => (this.touched = Date.now()), { passive: true });
    this.list = h("ul", { class: "alerts" });
    this.voice = h("p", { class: "spoken", role: "status" });
    this.more = h("button", { type: "button", class: "more", onclick: () => this.#open() });
    this.body = h("div", {}, this.list, this.more);
    this.element = h("section", { class: "wrong", "aria-label": "What is wrong" }, this.body, this.voice);
  }

  draw(problems, isCluster) {
    this.problems = problems;
    this.isCluster = isCluster;
    this.#speak(problems);
    const listed = this.#withGone(problems);
    const shown = this.isOpen ? listed : unfolded(listed);
    const keys = new Set(listed.map((one) => one.key));
    this.unfolded.forEach((key) => keys.has(key) || this.unfolded.delete(key));
    const sign = JSON.stringify([shown, listed.length, innerWidth, ...this.unfolded]);
    if (sign !== this.sign && !this.#waits(shown.length)) {
      this.sign = sign;
      const items = shown.length ? shown.map((one) => this.#item(one)) : [h("li", { class: "alert none" }, "No problems found.")];
      morph(this.list, h("ul", { class: "alerts" }, ...items));
      this.#markCut();
      this.count = shown.length;
      const rest = listed.length - unfolded(listed).length;
      this.more.hidden = !rest;
      this.more.setAttribute("aria-expanded", this.isOpen);
      write(this.more, this.isOpen ? "Show fewer" : `Show ${integer(rest)} more`);
    }
    this.#keepRoom();
  }

  /** The problems, and for a while those that are over, where they were. */
  #withGone(problems) {
    const now = Date.now();
    const keys = keysOf(problems);
    const listed = problems.map((one, place) => ({ ...one, key: keys[place] }));
    const there = new Set(keys);
    (this.listed ?? []).forEach((one, place) => {
      if (there.has(one.key) || now - (one.goneAt ?? now) > GONE_MS) return;
      listed.splice(Math.min(place, listed.length), 0, { ...one, goneAt: one.goneAt ?? now });
    });
    this.listed = listed;
    const isAnyGone = listed.some((one) => one.goneAt);
    clearTimeout(this.goneTimer);
    if (isAnyGone) this.goneTimer = setTimeout(() => this.draw(this.problems, this.isCluster), GONE_MS / 4);
    return listed;
  }

  /** What is cut gets a button that shows all of it, for fingers and keys too. */
  #markCut() {
    this.cut.clear();
    for (const item of this.list.children) {
      const what = item.querySelector(".what");
      if (!what || item.classList.contains("open")) continue;
      const isCut = what.scrollWidth > what.clientWidth;
      if (isCut) this.cut.add(item.dataset.key);
      item.classList.toggle("cut", isCut);
    }
  }

  #unfold(key) {
    this.unfolded[this.unfolded.has(key) ? "delete" : "add"](key);
    this.room = 0;
    this.touched = 0;
    this.draw(this.problems, this.isCluster);
  }

  #open() {
    this.isOpen = !this.isOpen;
    this.room = 0;
    this.touched = 0;
    this.draw(this.problems, this.isCluster);
  }

  /** More of them would push the list: not while somebody is about to click on it. */
  #waits(count) {
    const now = Date.now();
    if (this.count === undefined || count <= this.count || !(now - this.touched < HAND_MS)) {
      this.since = undefined;
      return false;
    }
    this.since ??= now;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.draw(this.problems, this.isCluster), HAND_MS);
    return now - this.since < LATEST_MS;
  }

  /** Keep the room that they took, until nobody looks: the list below must not move. */
  #keepRoom() {
    const { offsetHeight: needed, offsetWidth: width } = this.body;
    if (needed < this.room && width === this.width && !document.hidden) return;
    [this.room, this.width] = [needed, width];
    this.element.style.minHeight = `${needed}px`;
  }

  /** Somebody goes elsewhere: what comes there may be elsewhere too. */
  release() {
    this.room = 0;
  }

  #item(one) {
    const where = this.isCluster && one.node && !one.text.includes(one.node) ? [h("b", { class: "where" }, one.node), ": "] : [];
    const text = one.more ? `${one.text} And ${integer(one.more)} more like it.` : one.text;
    const link = linkOf(one);
    const whole = `${text}${one.next_step ? ` ${one.next_step}` : ""}`;
    const isWhole = this.unfolded.has(one.key);
    const looks = [one.severity === "critical" && "bad", one.goneAt && "gone", isWhole && "open", this.cut.has(one.key) && "cut"].filter(Boolean);
    return h(
      "li",
      { class: ["alert", ...looks].join(" "), "data-key": one.key },
      h("strong", {}, one.title),
      h("span", { class: "what", title: whole }, ...where, text, one.next_step ? h("span", { class: "next" }, ` ${one.next_step}`) : null),
      h("button", { type: "button", class: "unfold", "aria-expanded": String(isWhole), "aria-label": `${isWhole ? "One line of" : "All of"}: ${one.text}`, onclick: () => this.#unfold(one.key) }, isWhole ? "less" : "all"),
      link ? h("a", { href: this.link(link[1]), "aria-label": `${link[0]}: ${one.text}` }, link[0]) : null,
    );
  }

  #speak(problems) {
    const now = new Set(keysOf(problems));
    const fresh = this.known ? [...now].filter((one) => !this.known.has(one)).length : 0;
    if (fresh) write(this.voice, `${count(fresh, "new problem")}, ${integer(problems.length)} in all`);
    this.known = now;
  }
}
