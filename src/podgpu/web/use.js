// Who uses what: the namespaces in the colours of the page, so that this is the legend of everything below.

import { Answer } from "./answer.js";
import { h, known, renew } from "./dom.js";
import { gpuNumber, integer } from "./numbers.js";

const FIRST = 5; // rows

const OUTSIDE = "outside Kubernetes";

export class Use extends Answer {
  constructor(link) {
    super("use", "Who uses what");
    this.link = link;
    this.table = h("table", {});
    this.rest = h("p", { class: "rest" });
    this.body.append(this.table, this.rest);
  }

  /** The rows are those of everything, even while a filter is set. A chosen namespace is chosen no more by its link. */
  draw({ namespaces = [], answers }, colours, chosen) {
    this.answer(answers?.use);
    const rows = namespaces.slice(0, FIRST).map(({ name, sums }) => ({
      name,
      look: colours.of({ namespace: name }),
      isChosen: name !== "" && name === chosen,
      cells: [allocated(sums), busy(sums)],
    }));
    const left = namespaces.length - rows.length;
    renew(this.table, [rows, this.link({})], () => (rows.length ? [HEAD(), h("tbody", {}, ...rows.map((row) => this.#row(row)))] : []));
    renew(this.rest, [left, this.link({})], () => (left ? [h("a", { href: this.link({ view: "namespaces" }) }, `and ${integer(left)} more`)] : []));
  }

  #row({ name, look, isChosen, cells }) {
    const to = name ? this.link({ namespace: isChosen ? "" : name }) : null;
    const who = to ? h("a", { href: to, "aria-current": isChosen && "true" }, name) : OUTSIDE;
    const swatch = h("i", { class: `swatch seg ${look}`, "aria-hidden": "true" });
    return h("tr", { class: isChosen && "chosen" }, h("th", { scope: "row" }, swatch, who), ...cells.map((cell) => h("td", {}, cell)));
  }
}

const HEAD = () => h("thead", {}, h("tr", {}, ...["Namespace", "GPUs held", "Busy"].map((name) => h("th", { scope: "col" }, name))));

const allocated = ({ allocated_gpus: held, unknown_shares: unknown }) => (known(held) ? `${unknown ? "at least " : ""}${gpuNumber(held)}` : "not known");

const busy = ({ busy_gpus: used }) => (known(used) ? gpuNumber(used) : "not known");
