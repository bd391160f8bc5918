// Who wastes: which team or namespace holds GPUs without using them, what that costs, and a message to its owner.

import { Answer } from "./answer.js";
import { copyButton } from "./copy.js";
import { h, known, renew } from "./dom.js";
import { gpus as gpuCount, integer, money } from "./numbers.js";

const FIRST = 4; // rows, unless all are asked for

/** What a row's owner is called in the address. */
const filterOf = ({ by, name }) => ({ team: { by: "team", team: name }, namespace: { namespace: name } })[by] ?? { q: name };

export class Waste extends Answer {
  constructor(link) {
    super("waste", "Who wastes");
    this.link = link;
    this.table = h("table", {});
    this.rest = h("p", { class: "rest" });
    this.body.append(this.table, this.rest);
  }

  /** The rows are those of everything, even while a filter is set. `all` are all of them, where they are there. */
  draw({ waste, more_waste: more = 0, answers, currency }, all) {
    this.answer(answers?.waste);
    const rows = all ?? (waste ?? []).slice(0, FIRST);
    const left = all ? 0 : (waste ?? []).length - rows.length + more;
    const row = (one) => this.#row(one, currency);
    const sign = [rows.map(({ by, message }) => [by, message]), currency, this.link({})];
    renew(this.table, sign, () => (rows.length ? [head(currency), h("tbody", {}, ...rows.map(row))] : []));
    renew(this.rest, [left, this.link({})], () => (left ? [h("a", { href: this.link({ view: "idle" }) }, `and ${integer(left)} more`)] : []));
  }

  #row(row, currency) {
    const least = row.unknown_shares ? "at least " : "";
    const held = row.gpus || !row.unknown_shares ? `${least}${gpuCount(row.gpus)}` : "not known";
    const name = h("a", { href: this.link({ view: "idle", ...filterOf(row) }) }, row.name);
    const cost = currency ? [h("td", {}, known(row.cost_per_hour) ? money(row.cost_per_hour, currency) : "not known")] : [];
    const copy = copyButton(row.message, `the message to ${row.name}`);
    const cells = [h("th", { scope: "row" }, name, " ", h("small", {}, row.by)), h("td", {}, held), ...cost, h("td", {}, copy)];
    return h("tr", { title: row.text }, ...cells);
  }
}

function head(currency) {
  const names = ["Held by", "Not used", ...(currency ? ["An hour"] : [])];
  return h("thead", {}, h("tr", {}, ...names.map((name) => h("th", { scope: "col" }, name)), h("td", {})));
}
