// The view of idle holders: pods that hold a GPU, or a part of one, and do not use it.

import { h, known, write, writeWhole } from "./dom.js";
import { count, duration, gpuHours, gpus as gpuCount, memory, money, moment } from "./numbers.js";
import { listed, writeShort } from "./room.js";
import { words } from "./words.js";

export const NEEDS = ["idle"];

const idOf = (row) => (row.namespace ? `${row.namespace}/${row.pod}` : row.pod);

// The server sorts by what is wasted.
const SORT = {
  since: (a, b) => (b.idle_seconds ?? 0) - (a.idle_seconds ?? 0),
  name: (a, b) => (idOf(a) < idOf(b) ? -1 : 1),
};

/** The rows that the filter leaves. */
export function itemsOf({ gpus, sort, sizes, fits, answers: [{ rows, currency }] }) {
  const meant = new Map();
  for (const gpu of gpus) for (const tenant of gpu.tenants) if (tenant.isIdle && fits(tenant)) meant.set(`${gpu.node.row.name} ${tenant.id}`, tenant);
  const holders = rows.map((row) => ({ row, tenant: meant.get(`${row.node} ${idOf(row)}`) })).filter(({ tenant }) => tenant);
  if (sort) holders.sort((a, b) => SORT[sort](a.row, b.row));
  return holders.map(({ row, tenant }) => ({ kind: "idle", key: `${row.node} ${idOf(row)} ${row.gpus} ${row.idle_since}`, height: sizes.isNarrow ? 146 : 50, currency, row, tenant }));
}

/** What the list leaves out. */
export function noteOf([{ unknown, unread = [], unpriced = [] }]) {
  const notes = [];
  if (unknown) notes.push(`The GPU use of ${count(unknown, "more pod")} is not known.`);
  if (unread.length) notes.push(`${count(unread.length, "node")} could not be read.`);
  if (unpriced.length) notes.push(`There is no price for ${unpriced.join(", ")}.`);
  return notes.join(" ");
}

const DOT = 14; // pixels before the name

export function idleRows({ colours, at, link }) {
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
        const { name: room } = at();
        writeShort(name, idOf(row), room - DOT, "600 14px");
        name.className = `name ${colours.of(row)} idle`;
        name.href = link({ pod: idOf(row) });
        const facts = [`GPU ${row.gpus.join(", ")}`, row.node, `${tenant.kind} ${tenant.workload}`];
        write(about, listed(facts, room, "12px"));
        about.title = facts.join(" · ");
        write(held, known(row.held_gpus) ? gpuCount(row.held_gpus) : "share not known");
        writeWhole(since, `${duration(row.idle_seconds)}, since ${moment(row.idle_since)}`);
        writeWhole(why, `${words.evidence[tenant.holding.evidence] ?? ""}${row.memory_used_bytes ? `, and it keeps ${memory(row.memory_used_bytes)}` : ""}`);
        const hours = known(row.held_gpus) ? gpuHours((row.held_gpus * row.idle_seconds) / 3600) : "";
        writeWhole(wasted, known(row.cost) ? money(row.cost, currency) : hours);
      },
    };
  };
}
