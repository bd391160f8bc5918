// The view of what fits: the advice of `podgpu fit`, which the server makes from the store at most once an hour.

import { LatestAnswer } from "./ask.js";
import { copyButton } from "./copy.js";
import { h, shortModel, write } from "./dom.js";
import { bare, count, coverage, gpuNumber, gpus, memory, minute, money, percent } from "./numbers.js";

const REFRESH_MS = 300_000;
const RETRY_MS = 1000; // while the first statement is being made
const BUSY = 503;
const NO_STORE = "Advice needs a store. Give podgpu cluster one with --prometheus.url.";
const MAKING = "Two weeks are being read from the store. That takes a while the first time.";
const LOOKS = { release: "warn", smaller: "warn", share: "warn", larger: "warn" };

export class Fit {
  constructor(onNews) {
    this.advice = new LatestAnswer(onNews);
    this.about = h("p", { class: "dim" });
    this.files = h("span", { class: "files", hidden: true }, h("a", { href: "api/v1/fit?format=csv", download: "podgpu-fit.csv" }, "CSV"), h("a", { href: "api/v1/fit", download: "podgpu-fit.json" }, "JSON"));
    this.table = h("div");
    this.empty = h("p", { class: "empty", hidden: true });
    this.element = h("section", { class: "sheet fit stored", "aria-label": "What fits", hidden: true }, h("div", { class: "title" }, h("h2", {}, "What fits"), this.files), this.about, this.table, this.empty);
  }

  draw(model) {
    const statement = this.advice.answer?.rows ? this.advice.answer : null;
    const answer = model.hasStore ? this.advice.of("api/v1/fit", statement ? REFRESH_MS : RETRY_MS) : { error: NO_STORE };
    const isMaking = !answer || answer.status === BUSY;
    const said = isMaking ? (statement ? "" : MAKING) : (answer.error ?? "");
    write(this.empty, said);
    this.empty.hidden = !said;
    clearTimeout(this.timer);
    if (model.hasStore && !statement) this.timer = setTimeout(this.advice.onNews, RETRY_MS);
    this.files.hidden = !statement;
    if (this.shown === statement) return;
    this.shown = statement;
    this.about.replaceChildren(...(statement ? aboutOf(statement) : []));
    this.table.replaceChildren(...(statement ? [tableOf(statement)] : []));
  }
}

function aboutOf({ from, to, demo, coverage: seen, counts, rows, gpus: held, saved_gpus: saved, saved_per_hour: cost, currency }) {
  const kinds = Object.entries(counts).map(([kind, number]) => `${number} ${kind}`);
  const saves = `${gpuNumber(saved ?? 0)} of ${gpus(held)} to save${currency ? `, ${money(cost ?? 0, currency)} an hour` : ""}`;
  const parts = [`${minute(from)} to ${minute(to)} UTC`, `${coverage(seen)} seen`, `${count(rows.length, "workload")}: ${kinds.join(", ")}`, saves];
  return [...(demo ? [h("b", { class: "tag warn" }, "DEMO"), " "] : []), parts.join(" · ")];
}

/** The rows of the command. Roles are explicit: on a phone, a browser no longer sees a table. */
function tableOf({ rows, currency }) {
  const columns = [
    { name: "Advice", look: "advice", write: (row) => [h("b", { class: `tag ${LOOKS[row.advice] ?? ""}` }, row.advice), ` ${row.to}`] },
    { name: "Has", unit: "GPUs", write: (row) => [gpuNumber(row.gpus)] },
    { name: "Saves", unit: "GPUs", write: (row) => [row.saved_gpus ? gpuNumber(row.saved_gpus) : ""] },
    ...(currency ? [{ name: "Saves", unit: `${currency} an hour`, look: "cost", write: (row) => [row.saved_per_hour ? bare("money", row.saved_per_hour) : ""] }] : []),
    { name: "Peak", unit: "memory", write: (row) => [memory(row.peak_bytes)] },
    { name: "Busy", unit: "of a card", write: (row) => [percent(row.busy_ratio)] },
    { name: "Sure", write: (row) => [row.certainty] },
  ];
  const head = columns.map(({ name, unit }) => h("th", { scope: "col", role: "columnheader" }, name, " ", h("small", {}, unit ?? "")));
  const line = (row) =>
    h("tr", { role: "row", class: row.advice }, h("th", { scope: "row", role: "rowheader" }, ...nameOf(row)), ...columns.map(({ name, look, write: text }) => h("td", { role: "cell", class: look, "data-name": name }, ...text(row))));
  return h(
    "table",
    { role: "table", "aria-label": "What fits" },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, h("th", { scope: "col", role: "columnheader" }, "Workload"), ...head)),
    h("tbody", { role: "rowgroup" }, ...rows.map(line)),
  );
}

/** The name of the workload, and why it gets this advice, with the lines to change. */
function nameOf(row) {
  const name = `${row.namespace}/${row.workload_name}`;
  const beside = row.together.length ? [h("p", {}, `Together with ${row.together.join(", ")}.`)] : [];
  const change = row.change ? [h("pre", {}, row.change), copyButton(row.change, `the lines for ${name}`)] : [];
  const why = h("details", {}, h("summary", {}, row.why[0] ?? "Why"), ...row.why.slice(1).map((sentence) => h("p", {}, sentence)), ...beside, ...change);
  return [name, h("small", { class: "dim" }, `${row.workload_kind} · ${row.container} · ${shortModel(row.model)}`), h("small", { class: "why" }, why)];
}
