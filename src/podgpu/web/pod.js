// The page of a pod: each of its numbers, how it is known, its processes, and its last hour.

import { PERIODS } from "./address.js";
import { LatestAnswer } from "./ask.js";
import { chart } from "./chart.js";
import { actions } from "./commands.js";
import { copyButton } from "./copy.js";
import { h, known, shortModel } from "./dom.js";
import { COLUMNS } from "./history.js";
import { age, gpus as gpuCount, memory, moment, percent, watts } from "./numbers.js";

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

/** The text of a fact, with its time in the reader's time zone. */
const told = (text, at) => (known(at) ? text.replace("{at}", moment(at)) : text);

/** The server's facts about a tenant on a card; undefined until they are here. */
function factsAt(answer, { gpu, tenant: { mig, source } }) {
  const isCard = ({ node, uuid, index }) => node === gpu.node.row.name && uuid === gpu.uuid && index === gpu.index;
  return answer?.places?.find((place) => isCard(place) && place.mig === mig && isSame(place.container, source.container));
}

const isSame = (one, other) => ["namespace", "pod", "container", "pod_uid"].every((name) => (one[name] ?? "") === (other[name] ?? ""));

const nameOf = ({ gpu, tenant }) => {
  const slice = gpu.slices.find(({ uuid }) => uuid === tenant.mig);
  return [`${gpu.node.name} · GPU ${gpu.number}`, shortModel(gpu.model), slice && `slice ${slice.profile}`].filter(Boolean).join(" · ");
};

/** Lines of [what, value, how it is known]. */
export function factTable(lines, last = "How it is known") {
  const rows = lines.map(([what, value, how]) => h("tr", {}, h("th", { scope: "row" }, what), h("td", { class: "value" }, value), h("td", { class: "how" }, how)));
  return h("table", { class: "facts" }, h("thead", { class: "spoken" }, h("tr", {}, ...["What", "Value", last].map((title) => h("th", { scope: "col" }, title)))), h("tbody", {}, rows));
}

/** Facts as the server tells them. */
export const toldLines = (facts) => facts.map(({ what, value, how = "", at }) => [what, told(value, at), told(how, at)]);

/** A tenant on a card: its numbers, how they are known, and its processes. `answer` has the server's facts, `full` is what its node has of it. */
export function evidence(place, heading, full, answer) {
  const found = factsAt(answer, place);
  return h(
    "section",
    { class: "box" },
    h("h3", {}, heading, h("span", { class: "dim" }, ` container ${place.tenant.container}`)),
    found ? factTable(toldLines(found.facts)) : h("p", { class: "pad" }, answer?.error ?? "Waiting for the server."),
    // A store has no processes and claims, so where to find them is said instead.
    found?.note ? h("p", { class: "dim pad" }, found.note) : processes(full?.processes ?? place.tenant.source.processes ?? [], place),
  );
}

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
    { class: "scroll", "data-key": "processes", tabindex: "0", role: "region", "aria-label": `Processes of ${tenant.id} ${tenant.container} on ${gpu.node.name} GPU ${gpu.number} ${tenant.mig ?? ""}`.trim() },
    h("table", { class: "processes" }, h("thead", {}, h("tr", {}, ...["PID", "Kind", "Memory", "SM", "Whose: its cgroup"].map((title) => h("th", { scope: "col" }, title)))), h("tbody", {}, rows)),
  );
}

/** The tops of the charts: what it was given, and the memory it may use. */
function topsOf(places) {
  const sum = (of) => places.reduce((total, place) => total + (of(place) ?? 0), 0);
  return { busy: sum(({ tenant }) => tenant.share), memory: sum(({ gpu, tenant }) => tenant.memoryLimit ?? (gpu.slices.find(({ uuid }) => uuid === tenant.mig) ?? gpu).memoryTotal) };
}

/** `past` is what a store has, if more than the last hour is asked for, and null until it is here. `ring` is the last hour, if there is any yet. */
function charts(ring, past, tops, look) {
  if (past === null) return h("p", { class: "box pad" }, "Waiting for the store.");
  if (past?.error) return h("p", { class: "box pad" }, past.error);
  if (!past && (!ring || ring.count < 2)) return h("p", { class: "box pad" }, "The charts begin when this page is opened, and appear within half a minute.");
  const gap = past && ((past.busy[1]?.[0] - past.busy[0]?.[0]) * 3 || 600);
  const series = (name) => (past ? past[name] : ring.series(COLUMNS[name]));
  return h(
    "div",
    { class: "charts" },
    chart("Busy", series("busy"), { top: tops.busy, write: gpuCount, look, gap }),
    chart("Memory", series("memory"), { top: tops.memory, write: memory, look, gap }),
    chart("Power", series("watts"), { top: 0, write: watts, look, gap }),
  );
}

/** The choice between the last hour, which the browser keeps, and longer periods, which are in the store. */
function periods(chosen, link) {
  const choice = ([period, [name]]) => h("a", { href: link(period), "aria-current": period === chosen ? "page" : null }, name);
  return h("nav", { "aria-label": "Period" }, ...Object.entries(PERIODS).map(choice));
}

/** Where a pod is that is on no GPU. */
function absent({ pending }, id, link) {
  if (pending.some(({ namespace, name }) => `${namespace}/${name}` === id)) return h("p", { class: "empty" }, h("a", { href: link }, "It waits for a GPU."));
  return h("p", { class: "empty" }, "It holds no GPU now and has no process on one. It may have ended, or moved to another node.");
}

/** Fill the page of the pod of that id. */
export function podPage(id, { model, history, past, period, colours, back, linkGpu, linkPeriod, more, facts, linkCompare, linkPending }) {
  const places = placesOf(model.gpus, id);
  const top = h("p", {}, h("a", { href: back, class: "back" }, "← All GPUs"));
  if (!places.length) return h("div", { class: "podpage" }, top, h("h2", { tabindex: "-1" }, id), absent(model, id, linkPending));
  const [{ tenant }] = places;
  const idle = places.map((place) => place.tenant.idleFor).filter(known);
  const stored = () => past.of(`api/v1/history?pod=${encodeURIComponent(id)}&hours=${PERIODS[period][1]}`, REFRESH_MS) ?? null;
  const look = colours.of(tenant);
  return h(
    "div",
    { class: "podpage" },
    top,
    h("div", { class: "title" }, h("i", { class: `dot ${look}` }), h("h2", { tabindex: "-1" }, id), h("span", { class: "dim" }, `${tenant.kind} ${tenant.workload}`), idle.length ? h("span", { class: "tag warn" }, `idle ${age(Math.min(...idle))}`) : null),
    actions(facts?.commands, linkCompare),
    h("div", { class: "over" }, h("h3", {}, period ? "From the store" : "The last hour, as this page saw it"), linkPeriod ? periods(period, linkPeriod) : null),
    charts(history.pods.get(id), period && linkPeriod ? stored() : undefined, topsOf(places), look),
    h("h3", {}, "Its numbers, and how they are known"),
    ...places.map((place) => evidence(place, h("a", { href: linkGpu(place.tenant.mig || place.gpu.uuid) }, nameOf(place)), place.gpu.node.origin === "store" ? undefined : more?.tenant(place), facts)),
  );
}
