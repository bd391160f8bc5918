// Files of what a list shows: just its rows, in its order. The server writes the lines of CSV.

import { ask } from "./ask.js";
import { h } from "./dom.js";

const TYPES = { csv: "text/csv", json: "application/json" };
const idOf = ({ namespace, pod }) => (namespace ? `${namespace}/${pod}` : pod);

/** The server's key of an item of a list; undefined if it is no row. */
function keyOf({ kind, gpu, row }) {
  if (kind === "gpu") return gpu.isUnknown ? undefined : gpu.key.split(" ").join("/");
  if (kind === "idle") return `${row.node} ${idOf(row)}`;
  return row?.key;
}

/** Rows have keys, except idle holders. */
const keyOfRow = (row) => row.key ?? `${row.node} ${idOf(row)}`;

export class Files {
  /** `asking` returns the kinds of rows, the items that are shown, and the moment if it is past. */
  constructor(asking) {
    const button = (form) => {
      const name = form.toUpperCase();
      return h("button", { type: "button", title: `Save these rows as ${name}`, onclick: () => this.#save(form, asking()) }, name);
    };
    this.voice = h("span", { class: "dim", role: "status" });
    this.element = h("span", { class: "files" }, button("csv"), button("json"), this.voice);
  }

  async #save(form, { view, kinds, items, at }) {
    const moment = at ? `&at=${at}` : "";
    const answers = await Promise.all(kinds.map((by) => ask(`api/v1/rows?by=${by}${form === "csv" ? "&format=lines" : ""}${moment}`)));
    const failed = answers.find((answer) => answer.error);
    this.voice.textContent = failed ? `Not saved: ${failed.error}` : "";
    if (failed) return;
    const found = new Map(answers.flatMap((answer) => answer.lines ?? answer.rows.map((row) => [keyOfRow(row), row])));
    const chosen = items.map(keyOf).filter((key) => found.has(key)).map((key) => found.get(key));
    const [{ schema, taken_at: takenAt, head }] = answers;
    const text = form === "csv" ? head + chosen.join("") : `${JSON.stringify({ schema, taken_at: takenAt, by: kinds[0], rows: chosen }, null, 2)}\n`;
    hand(text, form, `podgpu-${view}-${new Date(takenAt * 1000).toISOString().slice(0, 16).replace(":", "")}Z.${form}`);
  }
}

/** Hand a text to the browser as a file. */
function hand(text, form, name) {
  const url = URL.createObjectURL(new Blob([text], { type: TYPES[form] }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
