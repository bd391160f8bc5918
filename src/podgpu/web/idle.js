// The view of what is idle: who holds a GPU, or a part of one, and does not use it.

import { h, known, write, writeWhole } from "./dom.js";
import { count, duration, gpuHours, gpus as gpuCount, memory, money, moment } from "./numbers.js";
import { words } from "./words.js";

export const NEEDS = ["idle"];

const idOf = (row) => (row.namespace ? `${row.namespace}/${row.pod}` : row.pod);

// They come with the most wasted first.
const SORT = {
  since: (a, b) => (b.idle_seconds ?? 0) - (a.idle_seconds ?? 0),
  name: (a, b) => (idOf(a) < idOf(b) ? -1 : 1),
};

/** The rows of those whom the filter leaves. */
export function itemsOf({ gpus, sort, sizes, fits, answers: [{ rows, currency }] }) {
  const meant = new Map();
  for (const gpu of gpus) for (const one of gpu.tenants) if (one.isIdle && fits(one)) meant.set(`${gpu.node.row.name} ${one.id}`, one);
  const found = rows.map((row) => ({ row, tenant: meant.get(`${row.node} ${idOf(row)}`) })).filter(({ tenant }) => tenant);
  if (sort) found.sort((a, b) => SORT[sort](a.row, b.row));
  return found.map((one) => ({ kind: "idle", key: `${one.row.node} ${idOf(one.row)} ${one.row.gpus} ${one.row.idle_since}`, height: sizes.isNarrow ? 138 : 50, currency, ...one }));
}

/** What the list cannot have. */
export function noteOf([{ unknown, unread = [], unpriced = [] }]) {
  const found = [];
  if (unknown) found.push(`The GPU use of ${count(unknown, "more pod")} is not known.`);
  if (unread.length) found.push(`${count(unread.length, "node")} could not be read.`);
  if (unpriced.length) found.push(`There is no price for ${unpriced.join(", ")}.`);
  return found.join(" ");
}

export function idleRows({ colours, link }) {
  return () => {
    const name = h("a");
    const about = h("small", { class: "dim" });
    const held = h("div", { class: "given" });
    const since = h("div", { class: "since" });
    const why = h("div", { class: "dim why" });
    const wasted = h("div", { class: "watts" });
    const element = h("div", { class: "work idler" }, h("div", { class: "who" }, h("span", { class: "first" }, name), about), held, since, why, wasted);
    return {
      element,
      update({ row, tenant, currency }) {
        writeWhole(name, idOf(row));
        name.className = `name ${colours.of(row)} idle`;
        name.href = link({ pod: idOf(row) });
        writeWhole(about, `${tenant.kind} ${tenant.workload} · ${row.node} · GPU ${row.gpus.join(", ")}`);
        write(held, known(row.held_gpus) ? gpuCount(row.held_gpus) : "share not known");
        writeWhole(since, `${duration(row.idle_seconds)}, since ${moment(row.idle_since)}`);
        writeWhole(why, `${words.evidence[tenant.holding.evidence] ?? ""}${row.memory_used_bytes ? `, and it keeps ${memory(row.memory_used_bytes)}` : ""}`);
        const hours = known(row.held_gpus) ? gpuHours((row.held_gpus * row.idle_seconds) / 3600) : "";
        writeWhole(wasted, known(row.cost) ? money(row.cost, currency) : hours);
      },
    };
  };
}
