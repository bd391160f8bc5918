// The view by namespace and workload: what each was given and what it uses of it.

import { Bar } from "./bar.js";
import { h, known, write } from "./dom.js";
import { age, count, gpus as gpuCount, partOf, use as useText, watts } from "./numbers.js";
import { listed, widthOf, writeShort } from "./room.js";

export const NEEDS = ["workloads", "pods"];

const INDENT = 18; // pixels of a pod below its workload
const NAME_FONT = "600 14px"; // these are the same as in app.css
const TAG_FONT = "500 11px";
const TAG_EDGE = 32; // pixels around the word of a tag, with its sign

const mostOf = (name) => (a, b) => (b[name] ?? -1) - (a[name] ?? -1);
const byName = (a, b) => (idOf(a) < idOf(b) ? -1 : 1);
export const SORT = {
  "": (a, b) => (b.held_gpus ?? 0) - (a.held_gpus ?? 0) || byName(a, b),
  busy: mostOf("busy_gpus"),
  idle: mostOf("unused_gpus"),
  memory: mostOf("memory_used_bytes"),
  power: mostOf("power_watts"),
  name: byName,
};

const idOf = (row) => (row.namespace ? `${row.namespace}/${row.name}` : row.name);

/** The rows that the filter leaves, each workload with its pods. */
export function itemsOf({ gpus, sort, sizes, fits, answers: [workloads, pods] }) {
  const meant = new Map();
  for (const gpu of gpus) {
    for (const tenant of gpu.tenants.filter(fits)) {
      if (!meant.has(tenant.workloadKey)) meant.set(tenant.workloadKey, new Set());
      meant.get(tenant.workloadKey).add(tenant.podKey);
    }
  }
  const podRows = new Map(pods.rows.map((row) => [row.key, row]));
  const items = [];
  for (const row of workloads.rows.filter(({ key }) => meant.has(key)).sort(SORT[sort])) {
    const ofWorkload = [...meant.get(row.key)].map((key) => podRows.get(key)).filter(Boolean);
    items.push({ kind: "work", key: row.key, height: sizes.isNarrow ? 124 : 50, row, pod: row.pods === 1 ? ofWorkload[0] : undefined });
    // A workload of one pod needs no second line.
    if (row.pods < 2) continue;
    for (const pod of ofWorkload) items.push({ kind: "work", key: pod.key, height: sizes.isNarrow ? 118 : 44, row: pod, pod, isPod: true });
  }
  return items;
}

const stateOf = ({ state, idle_seconds: seconds, dark_seconds: dark }) => (known(dark) ? `dark ${age(dark)}` : state === "idle" && known(seconds) ? `idle ${age(seconds)}` : state);

const placesOf = (row) => (row.node ? `${row.node} · ${row.gpus.join(", ")}` : count(row.cards, "GPU"));

/** Make rows of workloads, pods and groups. A bar is as long as `total`, or as what is held. */
export function workRows({ colours, at, link }) {
  return () => {
    const name = h("a");
    const about = h("small", { class: "dim" });
    const tag = h("span", { class: "tag warn" });
    const given = h("div", { class: "given" });
    const busy = new Bar("busy", "");
    const memory = new Bar("memory", "");
    const power = h("div", { class: "watts" });
    const element = h("div", {}, h("div", { class: "who" }, h("span", { class: "first" }, name, tag), about), given, busy.element, memory.element, power);
    return {
      element,
      update({ row, pod, isPod, about: aboutText, href, total, look: givenLook }) {
        element.className = `item work ${isPod ? "pod" : "workload"}`;
        const { name: wide, work: pixels, isNarrow } = at();
        const room = wide - (isPod ? INDENT : 0);
        write(tag, stateOf(pod ?? row));
        const beside = tag.textContent ? widthOf(tag.textContent, TAG_FONT) + TAG_EDGE : 0;
        writeShort(name, row.name, room - beside, isPod ? "14px" : NAME_FONT);
        name.href = href ?? (pod ? link({ pod: idOf(pod) }) : link({ view: "gpus", namespace: row.namespace, workload: row.name }));
        const facts = aboutText ?? (isPod ? [placesOf(row)] : [row.namespace, row.kind || "outside Kubernetes", pod ? placesOf(row) : count(row.pods, "pod")].filter(Boolean));
        write(about, listed(facts, room, "12px"));
        about.title = facts.join(" · ");
        tag.hidden = !tag.textContent;
        tag.className = `tag ${(pod ?? row).state === "dark" ? "bad" : "warn"}`;
        const { held_gpus: held, unknown_shares: unknown, busy_gpus: used, memory_used_bytes: bytes, memory_total_bytes: most, use } = row;
        const look = `${givenLook ?? colours.of(row)}${held && row.unused_gpus >= held ? " idle" : ""}`;
        const bar = (value, total, ...label) => ({ slices: [{ size: 1, total: total || value || 1, segments: [{ look, value }] }], label, spoken: label.join(" · ") });
        const labelRoom = isNarrow ? Infinity : pixels; // on a phone it may have two lines
        const least = unknown ? "at least " : "";
        write(given, known(held) ? `${least}${gpuCount(held)}` : unknown ? "share not known" : row.state === "dark" ? "not known" : "not given");
        const ofHeld = known(total ?? held) ? partOf("gpus", used, total ?? held) : gpuCount(used);
        const ofCards = () => `${useText(use.ratio, use.likely_least ?? use.least, use.likely_most ?? use.most, use.certainty)} of ${count(row.cards, "GPU")}`;
        busy.draw(bar(used, total ?? held, ...(known(used) ? [ofHeld, ofCards()] : ["busy time not known"])), pixels, labelRoom);
        memory.draw(bar(bytes, most, known(bytes) ? partOf("memory", bytes, most) : "memory not known"), pixels, labelRoom);
        write(power, watts(row.power_watts));
      },
    };
  };
}
