// The view of the bill: the month to date, as `podgpu report` adds it up from the store.

import { LatestAnswer } from "./ask.js";
import { fill, h, known, write } from "./dom.js";
import { UNKNOWN, bare, column, count, coverage as seen, duration, gpuHours, minute } from "./numbers.js";
import { words } from "./words.js";

const REFRESH_MS = 60_000; // the server keeps a bill for as long
const MOST_NAMED = 3; // nodes
// A label of such a name could not be told apart.
const OWN_WORDS = new Set(["namespace", "workload", "pod", "node", "model", "cluster"]);
const BASES = { held: "by held time", used: "by used time", greater: "by the greater of held and used time", energy: "by energy" };

/** The query of the API for the month to date. */
const queryOf = (by, takenAt) => new URLSearchParams({ by, from: new Date(takenAt * 1000).toISOString().slice(0, 7), to: "now" }).toString();

export class Bill {
  constructor(address, onNews) {
    this.address = address;
    this.bill = new LatestAnswer(onNews);
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
    const answer = model.hasStore ? this.bill.of(`api/v1/report?${query}`, REFRESH_MS) : { error: "A bill needs a store. Give podgpu cluster one with --prometheus.url." };
    const bill = answer?.rows ? answer : null;
    const said = !answer ? "Waiting for the store. A month of many nodes takes a while." : (answer.error ?? "");
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
    const labels = new Set(model.labels);
    if (by && by !== "workload") labels.add(by);
    const others = [...labels].filter((label) => !OWN_WORDS.has(label)).sort();
    fill(this.by, [["", "By namespace"], ["workload", "By workload"], ...others.map((label) => [label, `By label ${label}`])], by);
  }
}

/** The period of the bill, its currency, its basis, and how much was seen. */
function aboutOf(bill) {
  const shared = { held: "the rest shared by held hours", even: "the rest shared evenly" }[bill.share];
  const parts = [`${minute(bill.from)} to ${minute(bill.to)} ${bill.zone}`, bill.currency ? `GPU-hours and ${bill.currency}` : "GPU-hours, no prices", BASES[bill.basis] ?? bill.basis, shared, `${seen(bill.coverage.ratio)} seen`];
  return [...(bill.demo ? [h("b", { class: "tag warn" }, "DEMO"), " "] : []), parts.filter(Boolean).join(" · ")];
}

/** What is missing in the bill. */
function noticesOf({ coverage, disputes, unpriced, notices, total }) {
  const unseen = coverage.gpus.filter((gpu) => gpu.unseen_seconds > 0);
  const names = [...new Set(unseen.map((gpu) => gpu.node))].sort();
  const where = names.slice(0, MOST_NAMED).join(", ") + (names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : "");
  return [
    ...disputes.map(({ detail }) => ["Disputed", detail]),
    ...(unseen.length ? [["Incomplete", `${gpuHours(coverage.unseen_gpu_hours)} of ${count(unseen.length, "GPU")} were not seen, on ${where}. See why the agents were not scraped.`]] : []),
    ...(total.unknown_share_hours ? [["Incomplete", `Shares of unknown size were held for ${duration(total.unknown_share_hours * 3600)}, which is in no hour of this bill. See podgpu doctor on the nodes.`]] : []),
    ...unpriced.map((model) => ["No price", `There is none for ${model}. Add it to the file of --price.`]),
    ...notices.map((text) => ["Notice", text]),
  ];
}

/** A row that is no group has no waste and no coverage. */
const isOther = ({ row }) => row !== "group" && row !== "total";

const wastedOf = (row) => (row.row === "group" && known(row.gpu_hours) && known(row.busy_hours) && !row.unknown_share_hours ? Math.max(0, row.gpu_hours - row.busy_hours) : undefined);

/** The rows of the command, and what was held and not used. Roles are explicit: on a phone, a browser no longer sees a table. */
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
