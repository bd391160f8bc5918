// The view of pods that wait: what each asks for, since when, what the scheduler says, and what is free.

import { h, known, write } from "./dom.js";
import { count, duration, moment } from "./numbers.js";

const NAME = "Waiting for a GPU";
const MOST = 200; // rows; the files have all

const nameOf = ({ namespace, name, workload_kind: kind, workload_name: workload, cluster }) => [
  `${namespace}/${name}`,
  h("small", { class: "dim" }, [kind && `${kind} ${workload}`, cluster].filter(Boolean).join(" · ")),
];

function waits({ waiting_seconds: seconds, since }) {
  return known(seconds) ? [duration(seconds), h("small", { class: "dim" }, `since ${moment(since)}`)] : ["not known"];
}

const COLUMNS = [
  ["Asks for", ({ asks }) => [asks]],
  ["Waits", waits],
  ["What the scheduler says", ({ reason }) => [reason]],
  ["What is free", ({ free }) => [free]],
];

export class Pending {
  constructor(asked) {
    this.asked = asked;
    const file = (form, name) => h("a", { href: `api/v1/rows?by=pending${form}`, download: `podgpu-pending.${name.toLowerCase()}` }, name);
    this.files = h("span", { class: "files" }, file("&format=csv", "CSV"), file("", "JSON"));
    this.about = h("p", { class: "dim" });
    this.table = h("div");
    this.empty = h("p", { class: "empty", hidden: true });
    const title = h("div", { class: "title" }, h("h2", {}, NAME), this.files);
    this.element = h("section", { class: "sheet pending stored", "aria-label": NAME, hidden: true }, title, this.about, this.table, this.empty);
  }

  draw() {
    const answer = this.asked();
    const rows = answer?.rows ?? [];
    write(this.empty, said(answer, rows.length));
    this.empty.hidden = !this.empty.textContent;
    this.files.hidden = !rows.length;
    write(this.about, answer?.free ?? "");
    if (this.shown === answer) return;
    this.shown = answer;
    this.table.replaceChildren(...(rows.length ? [tableOf(rows.slice(0, MOST))] : []));
  }
}

/** Why the list is empty, or what it leaves out. */
function said(answer, number) {
  if (!answer) return "Waiting for the server.";
  if (answer.error) return answer.error;
  if (!number) return "No pod waits for a GPU.";
  return number > MOST ? `And ${count(number - MOST, "more pod")}: the files have all.` : "";
}

/** Roles are explicit: on a phone, a browser no longer sees a table. */
function tableOf(rows) {
  const heads = ["Pod", ...COLUMNS.map(([name]) => name)].map((name) => h("th", { scope: "col", role: "columnheader" }, name));
  const cell = ([name, cells], row) => h("td", { role: "cell", "data-name": name }, ...cells(row));
  const head = (row) => h("th", { scope: "row", role: "rowheader" }, ...nameOf(row));
  const line = (row) => h("tr", { role: "row" }, head(row), ...COLUMNS.map((column) => cell(column, row)));
  return h(
    "table",
    { role: "table", "aria-label": NAME },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, ...heads)),
    h("tbody", { role: "rowgroup" }, ...rows.map(line)),
  );
}
