// What is wrong, according to the document: the most urgent first, each with what to do about it.

import { Answer } from "./answer.js";
import { copyButton } from "./copy.js";
import { h, morph, write } from "./dom.js";
import { count, integer } from "./numbers.js";
import { groupOf, linkOf, severityLook } from "./problems.js";

const LINES = 4; // of problems and, where there are more, the button that shows the rest
const NEVER_FOLDED = "gpu_unreadable"; // a lost card
const GONE_MS = 5000; // how long a problem that is over stays in its place: it may come back
const HAND_MS = 2000; // after the last use of the mouse or a key, more problems may move the list below,
const LATEST_MS = 6000; // at the latest after this time

/** The first words of a command: `kubectl cordon`. */
const verbOf = (command) => command.replace(/ --context \S+/, "").split(" ", 2).join(" ");

/** Keys by what the problems are about, since their texts may change. Several about the same are numbered. */
function keysOf(problems) {
  const seen = new Map();
  return problems.map(({ kind, title, node, uuid, pod }) => {
    const key = [kind, title, node, uuid, pod].join(" ");
    seen.set(key, (seen.get(key) ?? 0) + 1);
    return `${key} ${seen.get(key)}`;
  });
}

/** The first few, and all lost cards. */
function unfolded(problems) {
  const most = problems.length > LINES ? LINES - 1 : LINES;
  return problems.filter((problem, place) => place < most || problem.kind === NEVER_FOLDED);
}

/** The list of problems, and a live region that announces new ones. */
export class Alerts extends Answer {
  constructor(link) {
    super("wrong", "What is wrong");
    this.link = link;
    this.isOpen = false;
    this.known = null;
    this.room = 0;
    this.unfolded = new Set(); // keys of problems whose whole text is shown
    this.cut = new Set(); // keys of those whose text does not fit into a line
    for (const touch of ["pointermove", "pointerdown", "keydown", "wheel"]) addEventListener(touch, () => (this.touched = Date.now()), { passive: true });
    this.list = h("ul", { class: "alerts" });
    this.voice = h("p", { class: "spoken", role: "status" });
    this.more = h("button", { type: "button", class: "more", onclick: () => this.#open() });
    this.inner = h("div", {}, this.list, this.more);
    this.body.append(this.inner);
    this.element.append(this.voice);
  }

  draw({ problems, answers }, isCluster) {
    this.insight = { problems, answers };
    this.isCluster = isCluster;
    this.answer(answers?.wrong);
    this.headline.classList.toggle("bad", problems.some(({ severity }) => severity === "critical"));
    this.#speak(problems);
    const listed = this.#withGone(problems);
    const shown = this.isOpen ? listed : unfolded(listed);
    const keys = new Set(listed.map((problem) => problem.key));
    this.unfolded.forEach((key) => keys.has(key) || this.unfolded.delete(key));
    const sign = JSON.stringify([shown, listed.length, innerWidth, ...this.unfolded]);
    if (sign !== this.sign && !this.#waits(shown.length)) {
      this.sign = sign;
      const items = shown.length ? shown.map((problem) => this.#item(problem)) : [h("li", { class: "alert none" }, "No problems found.")];
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

  /** The problems, and for a while those that are over, in their places. */
  #withGone(problems) {
    const now = Date.now();
    const keys = keysOf(problems);
    const listed = problems.map((problem, place) => ({ ...problem, key: keys[place] }));
    const there = new Set(keys);
    (this.listed ?? []).forEach((problem, place) => {
      if (there.has(problem.key) || now - (problem.goneAt ?? now) > GONE_MS) return;
      listed.splice(Math.min(place, listed.length), 0, { ...problem, goneAt: problem.goneAt ?? now });
    });
    this.listed = listed;
    const isAnyGone = listed.some((problem) => problem.goneAt);
    clearTimeout(this.goneTimer);
    if (isAnyGone) this.goneTimer = setTimeout(() => this.draw(this.insight, this.isCluster), GONE_MS / 4);
    return listed;
  }

  /** A text that is cut gets a button that shows all of it, for touch and keyboard too. */
  #markCut() {
    this.cut.clear();
    for (const item of this.list.children) {
      const what = item.querySelector(".what");
      if (!what || item.classList.contains("open")) continue;
      const next = what.querySelector(".next"); // only advice is ever cut: no number of the problem is
      const isCut = Boolean(next) && (next.scrollWidth > next.clientWidth + 1 || !next.offsetHeight);
      if (isCut) this.cut.add(item.dataset.key);
      item.classList.toggle("cut", isCut);
    }
  }

  #unfold(key) {
    this.unfolded[this.unfolded.has(key) ? "delete" : "add"](key);
    this.#redraw();
  }

  #open() {
    this.isOpen = !this.isOpen;
    this.#redraw();
  }

  /** The user asked for it, so the list below may move. */
  #redraw() {
    this.room = this.touched = 0;
    this.draw(this.insight, this.isCluster);
  }

  /** More problems would move the list: not while somebody is about to click on it. */
  #waits(count) {
    const now = Date.now();
    if (this.count === undefined || count <= this.count || !(now - this.touched < HAND_MS)) {
      this.since = undefined;
      return false;
    }
    this.since ??= now;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.draw(this.insight, this.isCluster), HAND_MS);
    return now - this.since < LATEST_MS;
  }

  /** Keep the room that the problems took while the page is visible: the list below must not move. */
  #keepRoom() {
    const { offsetHeight: needed, offsetWidth: width } = this.inner;
    if (!this.details.open || (needed < this.room && width === this.width && !document.hidden)) return;
    [this.room, this.width] = [needed, width];
    this.body.style.minHeight = `${needed}px`;
  }

  /** Give up the kept room: the user went to another view. */
  release() {
    this.room = 0;
  }

  #item(problem) {
    const where = this.isCluster && problem.node && !problem.text.includes(problem.node) ? [h("b", { class: "where" }, problem.node), ": "] : [];
    const all = this.link({ view: "problems", problem: groupOf(problem) });
    const more = problem.more ? [" ", h("a", { href: all }, `And ${integer(problem.more)} more like it.`)] : [];
    const link = linkOf(problem);
    const whole = `${problem.text}${problem.next_step ? ` ${problem.next_step}` : ""}`;
    const isWhole = this.unfolded.has(problem.key);
    const looks = [severityLook(problem), problem.goneAt && "gone", isWhole && "open", this.cut.has(problem.key) && "cut"].filter(Boolean);
    return h(
      "li",
      { class: ["alert", ...looks].join(" "), "data-key": problem.key },
      h("strong", {}, problem.title),
      h("span", { class: "what", title: whole }, h("span", { class: "text" }, ...where, problem.text, ...more), problem.next_step ? h("span", { class: "next" }, ` ${problem.next_step}`) : null),
      h("button", { type: "button", class: "unfold", "aria-expanded": String(isWhole), "aria-label": `${isWhole ? "less" : "advice"}: ${problem.text}`, onclick: () => this.#unfold(problem.key) }, isWhole ? "less" : "advice"),
      problem.command ? copyButton(problem.command, `, copy ${problem.command}`, verbOf(problem.command)) : null,
      link ? h("a", { href: this.link(link[1]), "aria-label": `${link[0]}: ${problem.text}` }, link[0]) : null,
    );
  }

  #speak(problems) {
    const now = new Set(keysOf(problems));
    const fresh = this.known ? [...now].filter((key) => !this.known.has(key)).length : 0;
    if (fresh) write(this.voice, `${count(fresh, "new problem")}, ${integer(problems.length)} in all`);
    this.known = now;
  }
}
