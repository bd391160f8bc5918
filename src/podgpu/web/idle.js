// The view of what is idle: who holds a GPU, or a part of one, and does not use it.

import { h, known, write } from "./dom.js";
import { duration, gpuHours, gpus as gpuCount, memory as memoryText, moment } from "./numbers.js";

const SORT = {
  "": (a, b) => wasted(b) - wasted(a),
  since: (a, b) => b.tenant.idleFor - a.tenant.idleFor,
  name: (a, b) => (a.tenant.id < b.tenant.id ? -1 : 1),
};

/** GPU seconds that nobody had anything of. */
const wasted = ({ tenant }) => (tenant.share ?? 0) * tenant.idleFor;

export function itemsOf(gpus, sort, sizes, fits) {
  const idle = gpus.filter((gpu) => gpu.isUp).flatMap((gpu) => gpu.idle.filter(fits).map((tenant) => ({ gpu, tenant })));
  return idle.sort(SORT[sort]).map((one) => ({ kind: "idle", key: `${one.tenant.id} ${one.tenant.container} ${one.tenant.mig} ${one.gpu.key}`, height: sizes.isNarrow ? 96 : 58, ...one }));
}

export function idleRows({ colours, link, cost }) {
  return () => {
    const name = h("a");
    const about = h("small", { class: "dim" });
    const held = h("div", { class: "given" });
    const since = h("div", { class: "since" });
    const why = h("div", { class: "dim" });
    const money = h("div", { class: "watts" });
    const element = h("div", { class: "work idler" }, h("div", { class: "who" }, h("span", { class: "first" }, name), about), held, since, why, money);
    return {
      element,
      update({ gpu, tenant }) {
        write(name, tenant.id);
        name.className = `name ${colours.of(tenant)} idle`;
        name.href = link({ pod: tenant.id });
        write(about, `${tenant.kind} ${tenant.workload} · ${gpu.node.name} · GPU ${gpu.index}`);
        write(held, known(tenant.share) ? gpuCount(tenant.share) : "share not known");
        write(since, `${duration(tenant.idleFor)}, since ${moment(tenant.idleSince)}`);
        write(why, reason(tenant));
        write(money, cost([{ gpu, tenant }]).replace(/^ \(|\)$/g, "") || gpuHours(wasted({ tenant }) / 3600));
      },
    };
  };
}

function reason(tenant) {
  if (tenant.source.idle === true) return "no process";
  const memory = tenant.memory > 0 ? `, holds ${memoryText(tenant.memory)}` : "";
  return `${tenant.neverUsed ? "no use seen" : "stopped"}${memory}`;
}
