// Which team or namespace holds GPUs without using them, in the sentences of `podgpu idle`.

import { copyButton } from "./copy.js";
import { h, renew } from "./dom.js";

export class Waste {
  constructor() {
    this.element = h("ul", { class: "box waste", "aria-label": "Held without use", hidden: true });
  }

  /** The rows are those of everything, even while a filter is set. */
  draw(rows = []) {
    this.element.hidden = !rows.length;
    renew(this.element, rows.map(({ message }) => message), () => rows.map((row) => h("li", {}, h("span", {}, row.text), copyButton(row.message, `to ${row.name}`, "Copy message"))));
  }
}
