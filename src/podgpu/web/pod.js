// The page of a pod: each of its numbers, how it is known, its processes, and its last hour.

import { LatestAnswer } from "./ask.js";
import { actions } from "./commands.js";
import { copyButton } from "./copy.js";
import { h, known, shortModel } from "./dom.js";
import { age, memory, moment, percent } from "./numbers.js";
import { podHour } from "./podhour.js";

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

/** A table of three columns. Roles are explicit: in a narrow box, a browser no longer sees a table. */
export function facts(heads, rows) {
  const cells = ([what, value, how]) => [h("th", { scope: "row", role: "rowheader" }, what), h("td", { class: "value", role: "cell" }, value), h("td", { class: "how", role: "cell" }, how)];
  const head = h("tr", { role: "row" }, ...heads.map((title) => h("th", { scope: "col", role: "columnheader" }, title)));
  const body = rows.map((row) => h("tr", { role: "row" }, ...cells(row)));
  return h("table", { class: "facts", role: "table" }, h("thead", { class: "spoken", role: "rowgroup" }, head), h("tbody", { role: "rowgroup" }, body));
}

/** Lines of [what, value, how it is known]. */
export const factTable = (lines, last = "How it is known") => facts(["What", "Value", last], lines);

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

/** Where a pod is that is on no GPU. */
function absent({ pending }, id, link) {
  if (pending.some(({ namespace, name }) => `${namespace}/${name}` === id)) return h("p", { class: "empty" }, h("a", { href: link }, "It waits for a GPU."));
  return h("p", { class: "empty" }, "It holds no GPU now and has no process on one. It may have ended, or moved to another node.");
}

/** Fill the page of the pod of that id. */
export function podPage(id, { model, hour, past, period, cursor, colours, back, linkGpu, linkPeriod, more, facts: answer, linkCompare, linkPending }) {
  const places = placesOf(model.gpus, id);
  const top = h("p", {}, h("a", { href: back, class: "back" }, "← All GPUs"));
  const charts = (look) => podHour(id, places, { model, hour, past, period, linkPeriod, look, cursor });
  if (!places.length) {
    const look = colours.of({ namespace: id.split("/")[0] });
    return h("div", { class: "podpage" }, top, h("h2", { tabindex: "-1" }, id), absent(model, id, linkPending), ...charts(look));
  }
  const [{ tenant }] = places;
  const idle = places.map((place) => place.tenant.idleFor).filter(known);
  const look = colours.of(tenant);
  return h(
    "div",
    { class: "podpage" },
    top,
    h("div", { class: "title" }, h("i", { class: `dot ${look}` }), h("h2", { tabindex: "-1" }, id), h("span", { class: "dim" }, `${tenant.kind} ${tenant.workload}`), idle.length ? h("span", { class: "tag warn" }, `idle ${age(Math.min(...idle))}`) : null),
    actions(answer?.commands, linkCompare),
    ...charts(look),
    h("h3", {}, "Its numbers, and how they are known"),
    ...places.map((place) => evidence(place, h("a", { href: linkGpu(place.tenant.mig || place.gpu.uuid) }, nameOf(place)), place.gpu.node.origin === "store" ? undefined : more?.tenant(place), answer)),
  );
}
