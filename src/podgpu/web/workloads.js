// The view by namespace and workload: what each was given and what it uses of it.

import { Bar } from "./bar.js";
import { h, known, write } from "./dom.js";
import { workloadsOf } from "./model.js";
import { age, count, gpus as gpuCount, partOf, percent, watts } from "./numbers.js";

const SORT = {
  "": (a, b) => (b.share ?? 0) - (a.share ?? 0) || byName(a, b),
  busy: (a, b) => (b.busy ?? -1) - (a.busy ?? -1),
  memory: (a, b) => (b.memory ?? -1) - (a.memory ?? -1),
  power: (a, b) => (b.watts ?? -1) - (a.watts ?? -1),
  name: (a, b) => byName(a, b),
};

const byName = (a, b) => (`${a.namespace}/${a.name}` < `${b.namespace}/${b.name}` ? -1 : 1);

export function itemsOf(gpus, sort, sizes, fits) {
  const meant = gpus.map((gpu) => ({ ...gpu, tenants: gpu.tenants.filter(fits) }));
  const items = [];
  for (const workload of workloadsOf(meant).sort(SORT[sort])) {
    items.push({ kind: "workload", key: workload.key, height: sizes.isNarrow ? 128 : 54, one: workload });
    // A workload of one pod needs no second line.
    if (workload.pods.length < 2) continue;
    for (const pod of workload.pods) items.push({ kind: "pod", key: `${workload.key} ${pod.id}`, height: sizes.isNarrow ? 116 : 44, one: pod, workload });
  }
  return items;
}

function cells(look) {
  const name = h("a");
  const about = h("small", { class: "dim" });
  const tag = h("span", { class: "tag warn" });
  const given = h("div", { class: "given" });
  const busy = new Bar("busy", "");
  const memory = new Bar("memory", "");
  const power = h("div", { class: "watts" });
  const element = h("div", { class: `work ${look}` }, h("div", { class: "who" }, h("span", { class: "first" }, name, tag), about), given, busy.element, memory.element, power);
  return { name, about, tag, given, busy, memory, power, element };
}

function update(made, one, colour, sizes) {
  made.tag.hidden = !one.isIdle;
  write(made.tag, one.isIdle ? `idle ${age(one.idleFor)}` : "");
  write(made.given, known(one.share) ? gpuCount(one.share) : "not given");
  const ofGiven = known(one.busy) && one.share ? ` · ${percent(one.busy / one.share)} of it` : "";
  const busyText = known(one.busy) ? `${gpuCount(one.busy)} busy${ofGiven}` : "busy time not known";
  made.busy.draw({ slices: [{ size: 1, total: one.share || one.busy || 1, segments: [{ look: colour, value: one.busy }] }], label: busyText, spoken: busyText }, sizes.work);
  const memoryText = known(one.memory) ? partOf("memory", one.memory, one.memoryRoom) : "memory not known";
  made.memory.draw({ slices: [{ size: 1, total: one.memoryRoom || one.memory || 1, segments: [{ look: colour, value: one.memory }] }], label: memoryText, spoken: memoryText }, sizes.work);
  write(made.power, watts(one.watts));
}

const look = (one, colours) => `${colours.of(one.places[0].tenant)}${one.places.every(({ tenant }) => tenant.isIdle) ? " idle" : ""}`;

const nodesOf = (one) => [...new Set(one.places.map(({ gpu }) => `${gpu.node.name} · ${gpu.index}`))];

function places(one) {
  const found = nodesOf(one);
  return found.length > 2 ? count(found.length, "GPU") : found.join(", ");
}

export function workloadRows({ colours, at, link }) {
  return () => {
    const made = cells("workload");
    return {
      element: made.element,
      update({ one }) {
        const [pod] = one.pods;
        const isOne = one.pods.length === 1;
        write(made.name, one.name);
        made.name.href = isOne ? link({ pod: pod.id }) : link({ view: "gpus", namespace: one.namespace, workload: one.name });
        write(made.about, [one.namespace, one.kind, isOne ? places(one) : count(one.pods.length, "pod")].filter(Boolean).join(" · "));
        update(made, one, look(one, colours), at());
      },
    };
  };
}

export function podRows({ colours, at, link }) {
  return () => {
    const made = cells("pod");
    return {
      element: made.element,
      update({ one }) {
        write(made.name, one.places[0].tenant.pod);
        made.name.href = link({ pod: one.id });
        write(made.about, places(one));
        update(made, one, look(one, colours), at());
      },
    };
  };
}
