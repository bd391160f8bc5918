// The view of the bill: the month to date, as `podgpu report` adds it up from the store.

import { fill, h, known, write } from "./dom.js";
import { UNKNOWN, bare, column, count, coverage as seen, gpuHours } from "./numbers.js";
import { words } from "./words.js";

const REFRESH_MS = 60_000; // the server keeps a bill for as long
const CHOICES_MS = 4000; // between two looks at the labels there are
const MOST_NAMED = 3; // nodes
// What a label of the same name could not be told from.
const OWN_WORDS = new Set(["namespace", "workload", "pod", "node", "model", "cluster"]);
const BASES = { held: "by held time", used: "by used time", greater: "by the greater of held and used time", energy: "by energy" };

/** The question of this month, as the API takes it. */
const queryOf = (by, takenAt) => new URLSearchParams({ by, from: new Date(takenAt * 1000).toISOString().slice(0, 7), to: "now" }).toString();

export class Bill {
  constructor(address, onNews) {
    this.address = address;
    this.onNews = onNews;
    this.by = h("select", { "aria-label": "Bill by", onchange: (event) => address.go({ by: event.target.value }) });
    this.download = h("a", { download: "" }, "Download CSV");
    this.about = h("p", { class: "dim" });
    this.notices = h("ul", { class: "alerts" });
    this.table = h("div");
    this.empty = h("p", { class: "empty", hidden: true });
    this.element = h(
      "section",
      { class: "sheet bill stored", "aria-label": "Bill", hidden: true },
      h("div", { class: "title" }, h("h2", {}, "Month to date"), this.by, this.download),
      this.about,
      this.notices,
      this.table,
      this.empty,
    );
  }

  draw(model) {
    this.#choices(model);
    const query = queryOf(this.address.by || "namespace", model.takenAt);
    const answer = model.hasStore ? this.#answer(query) : { error: "There is no store to make a bill of. Give podgpu cluster one with --prometheus.url." };
    const bill = answer?.rows ? answer : null;
    const said = !answer ? "The store is being asked. A month of many nodes takes a while." : (answer.error ?? "");
    write(this.empty, said);
    this.empty.hidden = !said;
    this.download.hidden = !bill;
    this.download.setAttribute("href", `api/v1/report?${query}&format=csv`);
    if (this.shown === bill) return;
    this.shown = bill;
    this.about.replaceChildren(...(bill ? aboutOf(bill) : []));
    this.notices.replaceChildren(...(bill ? noticesOf(bill) : []).map(([title, text]) => h("li", { class: "alert" }, h("strong", {}, title), h("span", { class: "what" }, text))));
    this.table.replaceChildren(...(bill ? [tableOf(bill)] : []));
  }

  #choices(model) {
    const { by } = this.address;
    if (by === this.chosen && Date.now() - this.at < CHOICES_MS) return;
    [this.chosen, this.at] = [by, Date.now()];
    const labels = new Set(model.labels);
    if (by && by !== "workload") labels.add(by);
    const others = [...labels].filter((label) => !OWN_WORDS.has(label)).sort();
    fill(this.by, [["", "By namespace"], ["workload", "By workload"], ...others.map((label) => [label, `By label ${label}`])], by);
  }

  /** The newest bill; undefined while the first is on its way. One that cannot be had says why. */
  #answer(query) {
    if (this.query !== query) Object.assign(this, { query, asked: 0, answer: undefined });
    if (Date.now() - this.asked > REFRESH_MS) this.#ask(query);
    return this.answer;
  }

  async #ask(query) {
    this.asked = Infinity;
    const answer = await fetch(`api/v1/report?${query}`).catch(() => null);
    const said = await (answer?.ok ? answer.json() : answer?.text())?.catch(() => null);
    if (this.query !== query) return;
    this.asked = Date.now();
    this.answer = answer?.ok && said ? said : { ...this.answer, error: said || "The server does not answer." };
    this.onNews();
  }
}

const minute = (at) => at.slice(0, 16).replace("T", " ");

/** Of when it is, in what, by what, and how much of it was seen. */
function aboutOf(bill) {
  const shared = { held: "the rest shared by held hours", even: "the rest shared evenly" }[bill.share];
  const parts = [`${minute(bill.from)} to ${minute(bill.to)} ${bill.zone}`, bill.currency ? `GPU-hours and ${bill.currency}` : "GPU-hours, no prices", BASES[bill.basis] ?? bill.basis, shared, `${seen(bill.coverage.ratio)} seen`];
  return [...(bill.demo ? [h("b", { class: "tag warn" }, "DEMO"), " "] : []), parts.filter(Boolean).join(" · ")];
}

/** What the bill lacks. */
function noticesOf({ coverage, unpriced, notices }) {
  const unseen = coverage.gpus.filter((gpu) => gpu.unseen_seconds > 0);
  const names = [...new Set(unseen.map((gpu) => gpu.node))].sort();
  const where = names.slice(0, MOST_NAMED).join(", ") + (names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : "");
  return [
    ...(unseen.length ? [["Incomplete", `${gpuHours(coverage.unseen_gpu_hours)} of ${count(unseen.length, "GPU")} were not seen, on ${where}. See why the agents were not scraped.`]] : []),
    ...unpriced.map((model) => ["No price", `There is none for ${model}. Add it to the file of --price.`]),
    ...notices.map((text) => ["Notice", text]),
  ];
}

/** Rows that stand for no group have no waste, and were seen or not as a whole. */
const isOther = ({ row }) => row !== "group" && row !== "total";

const wastedOf = (row) => (row.row === "group" && known(row.gpu_hours) && known(row.busy_hours) ? Math.max(0, row.gpu_hours - row.busy_hours) : undefined);

/** The command's rows, and what was held and not used. Roles are written out: on a phone the rows are no table to a browser. */
function tableOf({ by, rows, total, currency, currency_decimals: decimals, coverage }) {
  const title = by.map((name) => name.replace(/^(label|workload)_/, "")).join("/");
  const wasted = rows.map(wastedOf).filter(known);
  const sums = { ...total, row: "total", wasted: wasted.length ? wasted.reduce((all, hours) => all + hours, 0) : undefined, coverage: coverage.ratio };
  const cost = { name: "Cost", unit: currency, look: "cost", write: (row) => bare(decimals === 2 ? "money" : `money ${decimals}`, row.cost) };
  const columns = [
    { name: "Held", unit: "GPU-hours", write: (row) => column("gpu hours", row.gpu_hours, sums.gpu_hours) },
    { name: "Used", unit: "GPU-hours", write: (row) => column("gpu hours", row.busy_hours, sums.busy_hours) },
    { name: "Wasted", unit: "GPU-hours", write: (row) => (isOther(row) ? "" : column("gpu hours", row.wasted, sums.gpu_hours)) },
    ...(currency ? [cost] : []),
    { name: "Seen", unit: "of the time", write: (row) => (isOther(row) ? "" : seen(row.coverage)) },
  ];
  const head = columns.map(({ name, unit }) => h("th", { scope: "col", role: "columnheader" }, name, " ", h("small", {}, unit)));
  const line = (row) =>
    h(
      "tr",
      { role: "row", class: isOther(row) ? "other" : row.row },
      h("th", { scope: "row", role: "rowheader" }, ...nameOf(row, by)),
      ...columns.map(({ name, look, write: text }) => h("td", { role: "cell", class: look, "data-name": name }, text(row))),
    );
  const body = rows.map((row) => line({ ...row, wasted: wastedOf(row) }));
  return h(
    "table",
    { role: "table", "aria-label": "Month to date" },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, h("th", { scope: "col", role: "columnheader" }, title[0].toUpperCase() + title.slice(1)), ...head)),
    h("tbody", { role: "rowgroup" }, ...body, line(sums)),
  );
}

function nameOf(row, by) {
  const [name, meaning] = words.statement_rows[row.row] ?? [by.map((part) => row[part] || UNKNOWN).join("/"), ""];
  return meaning ? [name, h("small", { class: "dim" }, meaning)] : [name];
}
