// The view of the bill: a month, or any other time, as `podgpu report` adds it up from the store.

import { LatestAnswer } from "./ask.js";
import { fill, h, known, write } from "./dom.js";
import { UNKNOWN, bare, column, coverage as seen } from "./numbers.js";
import { trend } from "./trend.js";
import { words } from "./words.js";

const REFRESH_MS = 60_000; // the server keeps a bill for as long
const DAY_MS = 86_400_000;
// A label of such a name could not be told apart.
const OWN_WORDS = new Set(["namespace", "workload", "pod", "node", "model", "cluster"]);
const BASES = { "": "By held time", used: "By used time", greater: "By the greater of both", energy: "By energy" };
const NO_STORE = "A bill needs a store. Give podgpu cluster one with --prometheus.url.";
const CHOICES = { "": "This month", "last-month": "Last month", "last-week": "Last week" };

const day = (at) => new Date(at).toISOString().slice(0, 10);

/** The query of the API. The last day of a range is in it. */
function queryOf({ by, basis, of, from, to }, takenAt) {
  const dates = { from, to: to ? day(Date.parse(to) + DAY_MS) : "now" };
  const when = from ? dates : of ? { period: of } : { from: day(takenAt * 1000).slice(0, 7), to: "now" };
  return new URLSearchParams({ by: by || "namespace", ...when, ...(basis && { basis }), per: "day" }).toString();
}

export class Bill {
  constructor(address, onNews) {
    this.address = address;
    this.bill = new LatestAnswer(onNews);
    const choose = (name) => (event) => address.go({ [name]: event.target.value });
    this.by = h("select", { "aria-label": "Bill by", onchange: choose("by") });
    this.basis = h("select", { "aria-label": "Basis", onchange: choose("basis") });
    const date = (name, label) => h("input", { type: "date", "aria-label": label, onchange: (event) => this.#range(name, event.target.value) });
    this.dates = [date("from", "First day, UTC"), date("to", "Last day, UTC")];
    this.choices = Object.entries(CHOICES).map(([of, name]) => h("a", { "data-of": of }, name));
    this.csv = h("a", { download: "", class: "button" }, "CSV");
    this.json = h("a", { download: "podgpu-bill.json", class: "button" }, "JSON");
    this.files = h("span", { class: "files" }, this.csv, this.json);
    this.about = h("p", { class: "dim" });
    this.notices = h("ul", { class: "alerts" });
    this.trend = h("div");
    this.table = h("div");
    this.empty = h("p", { class: "empty", hidden: true });
    this.heading = h("h2");
    this.element = h(
      "section",
      { class: "sheet bill stored", "aria-label": "Bill", hidden: true },
      h(
        "div",
        { class: "title" },
        this.heading,
        h("nav", { "aria-label": "Time of the bill" }, ...this.choices),
        h("span", { class: "dates" }, this.dates[0], " to ", this.dates[1]),
        this.basis,
        this.by,
        this.files,
      ),
      this.about,
      this.notices,
      this.trend,
      this.table,
      this.empty,
    );
  }

  /** A range has a first day. */
  #range(name, value) {
    const { from, to } = { from: this.address.from, to: this.address.to, [name]: value };
    this.address.go({ of: "", from: from || to, to });
  }

  draw(model) {
    this.#draw(model);
    const query = queryOf(this.address, model.takenAt);
    const answer = model.hasStore ? this.bill.of(`api/v1/report?${query}`, REFRESH_MS) : { error: NO_STORE };
    const bill = answer?.rows ? answer : null;
    const said = !answer ? "Waiting for the store. A month of many nodes takes a while." : (answer.error ?? "");
    write(this.empty, said);
    this.empty.hidden = !said;
    this.files.hidden = !bill;
    this.csv.setAttribute("href", `api/v1/report?${query}&format=csv`);
    this.json.setAttribute("href", `api/v1/report?${query}`);
    if (this.shown === bill) return;
    this.shown = bill;
    this.about.replaceChildren(...(bill ? [...(bill.demo ? [h("b", { class: "tag warn" }, "DEMO"), " "] : []), bill.heading] : []));
    const notice = ({ title, text }) => h("li", { class: "alert" }, h("strong", {}, title), h("span", { class: "what" }, text));
    this.notices.replaceChildren(...(bill?.findings ?? []).map(notice));
    this.trend.replaceChildren(...(bill ? [trend(bill)].filter(Boolean) : []));
    this.table.replaceChildren(...(bill ? [tableOf(bill)] : []));
  }

  /** What is chosen, and what can be. */
  #draw(model) {
    const { by, basis, of, from, to } = this.address;
    const labels = new Set(model.labels);
    if (by && by !== "workload") labels.add(by);
    const others = [...labels].filter((label) => !OWN_WORDS.has(label)).sort();
    fill(this.by, [["", "By namespace"], ["workload", "By workload"], ...others.map((label) => [label, `By label ${label}`])], by);
    fill(this.basis, Object.entries(BASES), basis);
    [from, to].forEach((date, place) => document.activeElement !== this.dates[place] && (this.dates[place].value = date));
    write(this.heading, from ? "Bill" : of ? CHOICES[of] : "Month to date");
    for (const choice of this.choices) {
      const isOn = !from && choice.dataset.of === of;
      choice.setAttribute("href", this.address.link({ of: choice.dataset.of, from: "", to: "" }));
      if (isOn) choice.setAttribute("aria-current", "page");
      else choice.removeAttribute("aria-current");
    }
  }
}

/** A row that is no group has no waste and no coverage. */
const isOther = ({ row }) => row !== "group" && row !== "total";

/** The rows of the command. Roles are explicit: on a phone, a browser no longer sees a table. */
function tableOf({ by, rows, total, currency, currency_decimals: decimals, coverage }) {
  const title = by.map((name) => name.replace(/^(label|workload)_/, "")).join("/");
  const sums = { ...total, row: "total", coverage: coverage.ratio };
  const money = (value) => bare(decimals === 2 ? "money" : `money ${decimals}`, value);
  const cost = (row) => (known(row.wasted_cost) ? [h("small", {}, `${money(row.wasted_cost)} ${currency}`)] : []);
  const wasted = (row) => [column("gpu hours", row.wasted_hours, sums.gpu_hours), ...cost(row)];
  const columns = [
    { name: "Held", unit: "GPU-hours", write: (row) => [column("gpu hours", row.gpu_hours, sums.gpu_hours)] },
    { name: "Used", unit: "GPU-hours", write: (row) => [column("gpu hours", row.busy_hours, sums.busy_hours)] },
    { name: "Wasted", unit: currency ? `GPU-hours, ${currency}` : "GPU-hours", write: (row) => (isOther(row) ? [] : wasted(row)) },
    ...(currency ? [{ name: "Cost", unit: currency, look: "cost", write: (row) => [money(row.cost)] }] : []),
    { name: "Seen", unit: "of the time", write: (row) => (isOther(row) ? [] : [seen(row.coverage)]) },
  ];
  const head = columns.map(({ name, unit }) => h("th", { scope: "col", role: "columnheader" }, name, " ", h("small", {}, unit)));
  const first = h("th", { scope: "col", role: "columnheader" }, title[0].toUpperCase() + title.slice(1));
  const line = (row) =>
    h(
      "tr",
      { role: "row", class: isOther(row) ? "other" : row.row },
      h("th", { scope: "row", role: "rowheader" }, ...nameOf(row, by)),
      ...columns.map(({ name, look, write: cells }) => h("td", { role: "cell", class: look, "data-name": name }, ...cells(row))),
    );
  return h(
    "table",
    { role: "table", "aria-label": "Bill" },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, first, ...head)),
    h("tbody", { role: "rowgroup" }, ...rows.map(line), line(sums)),
  );
}

function nameOf(row, by) {
  const [name, meaning] = words.statement_rows[row.row] ?? [by.map((part) => row[part] || UNKNOWN).join("/"), ""];
  return meaning ? [name, h("small", { class: "dim" }, meaning)] : [name];
}
