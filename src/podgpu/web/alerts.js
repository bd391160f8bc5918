// What is wrong, as the document has it: most pressing first, each with what to do about it.

import { h, write } from "./dom.js";
import { count, integer } from "./numbers.js";

const SHOWN = 4; // problems before the rest is folded

/** Where to look: the pod, the card or the node. */
const linkOf = ({ pod, uuid, node }) => (pod ? ["why", { pod }] : uuid ? ["show", { view: "gpus", gpu: uuid }] : node ? ["show", { view: "gpus", node }] : null);

/** The list, and a polite voice that only speaks when there are new ones. */
export class Alerts {
  constructor(link) {
    this.link = link;
    this.isOpen = false;
    this.known = null;
    this.list = h("ul", { class: "alerts" });
    this.voice = h("p", { class: "spoken", role: "status" });
    this.more = h("button", { type: "button", class: "more", onclick: () => ((this.isOpen = !this.isOpen), this.draw(this.problems, this.isCluster)) });
    this.element = h("section", { "aria-label": "What is wrong" }, this.list, this.more, this.voice);
  }

  draw(problems, isCluster) {
    this.problems = problems;
    this.isCluster = isCluster;
    const shown = this.isOpen ? problems : problems.slice(0, SHOWN);
    const sign = JSON.stringify(shown);
    if (sign !== this.sign) {
      this.sign = sign;
      this.list.replaceChildren(...shown.map((one) => this.#item(one)));
    }
    this.more.hidden = problems.length <= SHOWN;
    this.more.setAttribute("aria-expanded", this.isOpen);
    write(this.more, this.isOpen ? "Show fewer" : `Show ${integer(problems.length - SHOWN)} more`);
    this.#speak(problems);
  }

  #item(one) {
    const where = this.isCluster && one.node && !one.text.includes(one.node) ? [h("b", { class: "where" }, one.node), ": "] : [];
    const text = one.more ? `${one.text} And ${integer(one.more)} more like it.` : one.text;
    const link = linkOf(one);
    return h(
      "li",
      { class: one.severity === "critical" ? "alert bad" : "alert" },
      h("strong", {}, one.title),
      h("span", { class: "what" }, ...where, text, one.next_step ? h("span", { class: "next" }, ` ${one.next_step}`) : null),
      link ? h("a", { href: this.link(link[1]), "aria-label": `${link[0]}: ${one.text}` }, link[0]) : null,
    );
  }

  #speak(problems) {
    const now = new Set(problems.map((one) => `${one.title}: ${one.node} ${one.uuid}`));
    const fresh = this.known ? [...now].filter((one) => !this.known.has(one)).length : 0;
    if (fresh) write(this.voice, `${count(fresh, "new problem")}, ${integer(problems.length)} in all`);
    this.known = now;
  }
}
