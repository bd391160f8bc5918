// A panel that answers a question in one line, with what the answer is made of below. On a narrow page that is folded.

import { h, write } from "./dom.js";
import { Fold } from "./fold.js";

const NARROW = 768; // pixels

export class Answer {
  constructor(look, question) {
    this.fold = new Fold(look);
    this.headline = h("span", { class: "headline" });
    this.body = h("div", { class: "body" });
    const ask = h("summary", { onclick: () => this.fold.choose(!this.details.open) }, h("h2", {}, question), this.headline);
    this.details = h("details", {}, ask, this.body);
    this.element = h("section", { class: `answer ${look}`, "aria-label": question }, this.details);
    addEventListener("beforeprint", () => (this.details.open = true));
    addEventListener("afterprint", () => this.unfold());
  }

  /** The headline is the document's. */
  answer(headline = "") {
    write(this.headline, headline);
    this.unfold();
  }

  unfold() {
    const isOpen = this.fold.isOpen(innerWidth > NARROW);
    if (this.details.open !== isOpen) this.details.open = isOpen;
  }
}
