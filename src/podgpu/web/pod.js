// The page of a pod: each of its numbers, how it is known, its processes, and its last hour.

import { LatestAnswer } from "./ask.js";
import { copyButton, shellWord } from "./copy.js";
import { h, known, shortModel } from "./dom.js";
import { age, bounds, duration, energy, memory, moment, percent, use, watts } from "./numbers.js";
import { podHour } from "./podhour.js";
import { words } from "./words.js";

const REFRESH_MS = 30_000;

/** What a cluster's document leaves out, from the nodes' own documents. They are asked for while a pod or a card is looked at. */
export class Evidence {
  constructor(onNews) {
    this.onNews = onNews;
    this.nodes = new Map();
  }

  /** The card with everything that its node knows of it, once that is here. */
  card({ uuid, node: { name } }) {
    if (!this.nodes.has(name)) {
      // Documents are large: those that are no longer looked at go.
      for (const [other, { at }] of this.nodes) if (Date.now() - at > 2 * REFRESH_MS) this.nodes.delete(other);
      this.nodes.set(name, new LatestAnswer(this.onNews));
    }
    const snapshot = this.nodes.get(name).of(`api/v1/snapshot?node=${encodeURIComponent(name)}`, REFRESH_MS);
    return snapshot?.cards?.find((card) => card.gpu.uuid === uuid);
  }

  /** The same for a tenant. */
  tenant({ gpu, tenant: { mig, source } }) {
    const names = (container) => [container.namespace, container.pod, container.container].join("/");
    return this.card(gpu)?.tenants.find((tenant) => (tenant.mig ?? "") === mig && names(tenant.container) === names(source.container));
  }
}

/** The pod of that id, or the owner outside Kubernetes, on each of its GPUs. */
const placesOf = (gpus, id) => gpus.flatMap((gpu) => gpu.tenants.filter((tenant) => tenant.id === id).map((tenant) => ({ gpu, tenant })));

const STATES = { working: "working", idle: "idle", waiting: "waiting for its first use", unknown: "unknown" };
const TIMES = { minute: "Of the last full minute.", reading: "Since the previous reading." };
const STORED = "As its agent reported it to the store.";

/** Whether it uses what it holds: [what, value, how it is known]. */
function stateOf({ holding, idleFor }) {
  const why = words.evidence[holding.evidence] ?? holding.evidence;
  const since = known(holding.since) ? `since ${moment(holding.since)}: ` : "";
  return ["State", `${STATES[holding.state] ?? holding.state}${known(idleFor) ? ` ${age(idleFor)}` : ""}`, `${since}${why}.`.replace(/^./, (first) => first.toUpperCase())];
}

/** How it is known what the tenant was given. A store has only the share. */
function givenBy({ holding, isOutsider, source: { claims = [], without_claim: reason } }, isStored) {
  if (isStored) return holding ? STORED : "The store does not have its share.";
  const [claim] = claims;
  if (claim) return `${claim.system || "unknown system"}, ${claim.resource || "unknown resource"}, id ${claim.device_id || "unknown"}, reported by ${claim.source || "unknown"}`;
  return isOutsider ? "Outside Kubernetes, GPUs are not allocated." : words.without_claim[reason] ?? "No claim is known.";
}

/** Numbers with their evidence: [what, value, how it is known]. */
function numbersOf({ gpu, tenant }) {
  const { booking, processes, hasProcesses, idle, held_since: heldSince } = tenant.source;
  const isStored = gpu.node.origin === "store";
  const method = words.methods[isStored || processes?.length || hasProcesses || !known(idle) ? tenant.method : ""] ?? "";
  const period = TIMES[gpu.period] ?? "";
  const limit = `Set by ${tenant.system || "its sharing system"}.`;
  const ofMemory = isStored ? STORED : known(tenant.memory) ? "The sum of its processes, as the driver reports them." : "None of its processes could be seen.";
  const rows = [
    ["Given", known(tenant.share) ? `${percent(tenant.share)} of the GPU` : tenant.holding || isStored ? "not known" : "nothing", givenBy(tenant, isStored)],
    ["Memory", known(tenant.memory) ? memory(tenant.memory) : "not known", ofMemory],
  ];
  if (tenant.holding) rows.splice(1, 0, stateOf(tenant));
  if (known(tenant.memoryLimit)) rows.push(["Memory limit", memory(tenant.memoryLimit), limit]);
  if (known(tenant.coreLimit)) rows.push(["SM limit", percent(tenant.coreLimit), limit]);
  rows.push(["Busy", known(tenant.busy) ? use(tenant.busy, tenant.least, tenant.most, tenant.certainty) : "not known", `${period} ${method}`.trim()]);
  if (known(tenant.busy) && tenant.certainty) rows.push(["Certainty", tenant.certainty, words.certainties[tenant.certainty] ?? ""]);
  if (tenant.certainty === "estimated" && bounds(...tenant.proven)) rows.push(["Proven", `between ${tenant.proven.map(percent).join(" and ")}`, words.proven]);
  if (known(tenant.ofInstance)) rows.push(["Of its slice", percent(tenant.ofInstance), "Activity of the MIG instance's multiprocessors, measured."]);
  if (known(booking.resident_us)) rows.push(["On the card", duration(booking.resident_us / 1e6), "Since the agent started, at work or not, by the driver's log of context switches."]);
  rows.push(["Power", watts(tenant.watts), `${period} Its part of the card's power: idle power by share, the rest by busy time.`.trim()]);
  rows.push(["Energy so far", booking.bookable === false ? "not known" : energy(booking.energy_mj / 1000), "Since the agent started. All on this GPU add up to the card's own counter."]);
  if (known(heldSince)) rows.push(["Held since", moment(heldSince), "When its pod started on the node."]);
  return rows;
}

const nameOf = ({ gpu, tenant }) => {
  const slice = gpu.slices.find(({ uuid }) => uuid === tenant.mig);
  return [`${gpu.node.name} · GPU ${gpu.number}`, shortModel(gpu.model), slice && `slice ${slice.profile}`].filter(Boolean).join(" · ");
};

/** A table of three columns. Roles are explicit: in a narrow box, a browser no longer sees a table. */
export function facts(heads, rows) {
  const cells = ([what, value, how]) => [h("th", { scope: "row", role: "rowheader" }, what), h("td", { class: "value", role: "cell" }, value), h("td", { class: "how", role: "cell" }, how)];
  const head = h("tr", { role: "row" }, ...heads.map((title) => h("th", { scope: "col", role: "columnheader" }, title)));
  const body = rows.map((row) => h("tr", { role: "row" }, ...cells(row)));
  return h("table", { class: "facts", role: "table" }, h("thead", { class: "spoken", role: "rowgroup" }, head), h("tbody", { role: "rowgroup" }, body));
}

/** Lines of [what, value, how it is known]. */
export const factTable = (lines, last = "How it is known") => facts(["What", "Value", last], lines);

/** A tenant on a card: its numbers, how they are known, and its processes. `full` is what its node has of it. */
export function evidence(place, heading, full) {
  return h(
    "section",
    { class: "box" },
    h("h3", {}, heading, h("span", { class: "dim" }, ` container ${place.tenant.container}`)),
    factTable(numbersOf(place)),
    place.gpu.node.origin === "store" ? elsewhere(place) : processes(full?.processes ?? place.tenant.source.processes ?? [], place),
  );
}

const command = (text) => [h("code", {}, text), copyButton(text, "the command")];

/** A store has no processes and claims, so where to find them is said instead. */
const elsewhere = ({ gpu, tenant }) =>
  h("p", { class: "dim pad" }, "These numbers come from a store, which holds no processes, no claims and no evidence. Ask the node's agent: ", h("code", {}, `podgpu why ${shellWord(tenant.isOutsider ? tenant.container : tenant.id)} --url ${shellWord(`http://${gpu.node.name}:19400`)}`));

function processes(list, { gpu, tenant }) {
  if (!list.length) return h("p", { class: "dim pad" }, "It has no process on this GPU, or none can be seen from here.");
  const rows = list.map((process) =>
    h(
      "tr",
      {},
      h("td", { class: "value" }, String(process.pid)),
      h("td", {}, (process.kinds ?? []).join(" ") || "has just ended"),
      h("td", { class: "value" }, memory(process.memory_bytes)),
      h("td", { class: "value" }, percent(process.sm_ratio)),
      h("td", { class: "how" }, process.holder?.cgroup || process.holder?.reason || process.holder?.title || "", process.holder?.cgroup ? copyButton(process.holder.cgroup, `the cgroup of process ${process.pid}`) : null),
    ),
  );
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": `Processes of ${tenant.id} ${tenant.container} on ${gpu.node.name} GPU ${gpu.number} ${tenant.mig ?? ""}`.trim() },
    h("table", { class: "processes" }, h("thead", {}, h("tr", {}, ...["PID", "Kind", "Memory", "SM", "Whose: its cgroup"].map((title) => h("th", { scope: "col" }, title)))), h("tbody", {}, rows)),
  );
}

/** Fill the page of the pod of that id. */
export function podPage(id, { model, hour, past, period, cursor, colours, back, linkGpu, linkPeriod, more }) {
  const places = placesOf(model.gpus, id);
  const top = h("p", {}, h("a", { href: back, class: "back" }, "← All GPUs"));
  const charts = (look) => podHour(id, places, { model, hour, past, period, linkPeriod, look, cursor });
  if (!places.length) return h("div", { class: "podpage" }, top, h("h2", { tabindex: "-1" }, id), h("p", { class: "empty" }, "It holds no GPU now and has no process on one. It may have ended, or moved to another node."), ...charts(colours.of({ namespace: id.split("/")[0] })));
  const [{ tenant }] = places;
  const idle = places.map((place) => place.tenant.idleFor).filter(known);
  const look = colours.of(tenant);
  return h(
    "div",
    { class: "podpage" },
    top,
    h("div", { class: "title" }, h("i", { class: `dot ${look}` }), h("h2", { tabindex: "-1" }, id), h("span", { class: "dim" }, `${tenant.kind} ${tenant.workload}`), idle.length ? h("span", { class: "tag warn" }, `idle ${age(Math.min(...idle))}`) : null),
    ...charts(look),
    h("h3", {}, "Its numbers, and how they are known"),
    ...places.map((place) => evidence(place, h("a", { href: linkGpu(place.tenant.mig || place.gpu.uuid) }, nameOf(place)), place.gpu.node.origin === "store" ? undefined : more?.tenant(place))),
    places.every(({ gpu }) => gpu.node.origin === "store") ? null : h("p", { class: "dim" }, "The whole chain of evidence: ", ...command(`podgpu why ${shellWord(tenant.isOutsider ? tenant.container : id)}`)),
  );
}
