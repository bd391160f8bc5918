// A pod's own page: each of its numbers, how it is known, its processes, and its last hour.

import { PERIODS } from "./address.js";
import { chart } from "./chart.js";
import { h, known, shortModel } from "./dom.js";
import { COLUMNS } from "./history.js";
import { summary } from "./model.js";
import { age, duration, energy, gpus as gpuCount, memory, moment, percent, use, watts } from "./numbers.js";
import { words } from "./words.js";

const REFRESH = 30000;
const MOST_NODES = 8; // whose documents are kept: they are large

/** Evidence that a cluster's document leaves out, from the nodes' own documents; asked for while a pod is looked at. */
export class Evidence {
  constructor(onNews) {
    this.onNews = onNews;
    this.kept = new Map();
  }

  /** The tenant with everything that its node knows of it, as far as it is here. */
  of({ gpu, tenant }) {
    const { name } = gpu.node;
    const kept = this.kept.get(name);
    if (!kept || Date.now() - kept.at > REFRESH) this.#ask(name, kept?.snapshot);
    const card = kept?.snapshot?.cards.find((one) => one.gpu.uuid === gpu.uuid);
    const { container } = tenant.source;
    return card?.tenants.find((one) => (one.mig ?? "") === tenant.mig && one.container.pod === container.pod && one.container.namespace === container.namespace && one.container.container === container.container);
  }

  async #ask(name, before) {
    if (this.kept.size >= MOST_NODES) this.kept.delete(this.kept.keys().next().value);
    this.kept.set(name, { at: Date.now(), snapshot: before });
    const answer = await fetch(`api/v1/snapshot?node=${encodeURIComponent(name)}`).catch(() => null);
    if (!answer?.ok) return;
    this.kept.set(name, { at: Date.now(), snapshot: await answer.json() });
    this.onNews();
  }
}

/** What a store remembers of a pod, over a day or a week. */
export class Past {
  constructor(onNews) {
    this.onNews = onNews;
  }

  /** The series by name; null while they are on their way; or why there are none. */
  of(id, period) {
    const key = `${period} ${id}`;
    if (this.key !== key || Date.now() - this.at > REFRESH) this.#ask(key, id, period);
    return this.found;
  }

  async #ask(key, id, period) {
    if (this.key !== key) this.found = null;
    [this.key, this.at] = [key, Date.now()];
    const answer = await fetch(`api/v1/history?pod=${encodeURIComponent(id)}&hours=${PERIODS[period][1]}`).catch(() => null);
    const found = answer?.ok ? await answer.json() : { error: answer ? await answer.text() : "The server does not answer." };
    if (this.key !== key) return;
    this.found = found;
    this.onNews();
  }
}

/** Find the pod, or whoever is outside Kubernetes, on all GPUs. */
function placesOf(gpus, id) {
  return gpus.flatMap((gpu) => gpu.tenants.filter((one) => one.id === id).map((tenant) => ({ gpu, tenant })));
}

/** Numbers with their evidence: [what, value, how it is known]. */
function numbersOf({ gpu, tenant }) {
  const { booking, claims = [] } = tenant.source;
  const method = words.methods[tenant.source.processes?.length || tenant.source.hasProcesses || !known(tenant.source.idle) ? tenant.method : ""] ?? "";
  const [claim] = claims;
  const given = claim
    ? `${claim.system || "unknown system"}, ${claim.resource || "unknown resource"}, id ${claim.device_id || "unknown"}, reported by ${claim.source || "unknown"}`
    : tenant.isOutsider ? "Nobody gives GPUs outside Kubernetes." : words.advice.not_given;
  const rows = [
    ["Given", known(tenant.share) ? `${percent(tenant.share)} of the GPU` : claims.length ? "not known" : "nothing", given],
    ["Memory", known(tenant.memory) ? memory(tenant.memory) : "not known", known(tenant.memory) ? "The driver reports it for each process; these are its own." : "No process of it could be seen."],
  ];
  if (known(tenant.memoryLimit)) rows.push(["Memory limit", memory(tenant.memoryLimit), `Set by ${claim?.system || "its sharing system"}.`]);
  if (known(tenant.coreLimit)) rows.push(["SM limit", percent(tenant.coreLimit), `Set by ${claim?.system || "its sharing system"}.`]);
  rows.push(["Busy", known(tenant.busy) ? use(tenant.busy, tenant.least, tenant.most) : "not known", `${gpu.isMinute ? "Of the last full minute. " : "Since the previous reading. "}${method}`]);
  if (known(tenant.ofInstance)) rows.push(["Of its slice", percent(tenant.ofInstance), "Activity of the MIG instance's multiprocessors, measured."]);
  if (known(booking.resident_us)) rows.push(["On the card", duration(booking.resident_us / 1e6), "Since the agent started, at work or not, by the driver's log of context switches."]);
  rows.push(["Power", watts(tenant.watts), "Its part of the card's power: idle power by share, the rest by busy time."]);
  rows.push(["Energy so far", booking.bookable === false ? "not known" : energy(booking.energy_mj / 1000), "Since the agent started. All on this GPU add up to the card's own counter."]);
  if (known(tenant.idleFor)) rows.push(["Not used for", duration(tenant.idleFor), tenant.neverUsed ? `It has held this since ${moment(tenant.idleSince)}, and no use was seen.` : `Last active ${moment(tenant.idleSince)}.`]);
  else if (known(tenant.source.held_since)) rows.push(["Held since", moment(tenant.source.held_since), "When its pod started on the node."]);
  if (tenant.isUnseen) rows.push(["Unseen", "", words.unseen]);
  return rows;
}

const place = ({ gpu, tenant }) => {
  const slice = gpu.slices.find((one) => one.uuid === tenant.mig);
  return [`${gpu.node.name} · GPU ${gpu.index}`, shortModel(gpu.model), slice && `slice ${slice.profile}`].filter(Boolean).join(" · ");
};

function evidence(one, full) {
  const rows = numbersOf(one).map(([what, value, how]) => h("tr", {}, h("th", { scope: "row" }, what), h("td", { class: "value" }, value), h("td", { class: "how" }, how)));
  return h(
    "section",
    { class: "box" },
    h("h3", {}, place(one), h("span", { class: "dim" }, ` container ${one.tenant.container}`)),
    h("table", { class: "facts" }, h("thead", { class: "spoken" }, h("tr", {}, ...["What", "Value", "How it is known"].map((title) => h("th", { scope: "col" }, title)))), h("tbody", {}, rows)),
    processes(full?.processes ?? one.tenant.source.processes ?? []),
  );
}

function processes(list) {
  if (!list.length) return h("p", { class: "dim pad" }, "No process of it is on this GPU, or none can be seen from here.");
  const rows = list.map((one) =>
    h(
      "tr",
      {},
      h("td", { class: "value" }, String(one.pid)),
      h("td", {}, (one.kinds ?? []).join(" ") || "has just ended"),
      h("td", { class: "value" }, memory(one.memory_bytes)),
      h("td", { class: "value" }, percent(one.sm_ratio)),
      h("td", { class: "how" }, one.holder?.cgroup || one.holder?.reason || one.holder?.title || ""),
    ),
  );
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Processes" },
    h("table", { class: "processes" }, h("thead", {}, h("tr", {}, ...["PID", "Kind", "Memory", "SM", "Whose: its cgroup"].map((title) => h("th", { scope: "col" }, title)))), h("tbody", {}, rows)),
  );
}

/** `past` is what a store remembers, if a longer time than the last hour is asked for; `ring` the last hour, if there is any yet. */
function charts(ring, past, sums, look) {
  if (past !== undefined) return pastCharts(past, sums, look);
  if (!ring || ring.count < 2) return h("p", { class: "box pad" }, "The charts begin when this page is opened. They will be here in half a minute.");
  const series = (name) => ring?.series(COLUMNS[name]) ?? [];
  return h(
    "div",
    { class: "charts" },
    chart("Busy", series("busy"), { top: sums.share, write: gpuCount, look }),
    chart("Memory", series("memory"), { top: sums.memoryRoom, write: memory, look }),
    chart("Power", series("watts"), { top: 0, write: watts, look }),
  );
}

function pastCharts(past, sums, look) {
  if (!past) return h("p", { class: "box pad" }, "The store is being asked.");
  if (past.error) return h("p", { class: "box pad" }, past.error);
  const gap = (past.busy[1]?.[0] - past.busy[0]?.[0]) * 3 || 600;
  return h(
    "div",
    { class: "charts" },
    chart("Busy", past.busy, { top: sums.share, write: gpuCount, look, gap }),
    chart("Memory", past.memory, { top: sums.memoryRoom, write: memory, look, gap }),
    chart("Power", past.watts, { top: 0, write: watts, look, gap }),
  );
}

/** The choice between the last hour, which the browser keeps, and longer times, which a store does. */
function periods(chosen, link) {
  const choice = ([period, [name]]) => h("a", { href: link(period), "aria-current": period === chosen ? "page" : null }, name);
  return h("nav", { "aria-label": "Period" }, ...Object.entries(PERIODS).map(choice));
}

/** Fill the page of the pod of that id. */
export function podPage(id, { model, history, past, period, colours, back, linkPeriod, more }) {
  const places = placesOf(model.gpus, id);
  const top = h("p", {}, h("a", { href: back, class: "back" }, "← All GPUs"));
  if (!places.length) return h("div", { class: "podpage" }, top, h("h2", { tabindex: "-1" }, id), h("p", { class: "empty" }, "It holds no GPU now and has no process on one. It may have ended, or moved to another node."));
  const [{ tenant }] = places;
  const sums = summary(places);
  const look = colours.of(tenant);
  return h(
    "div",
    { class: "podpage" },
    top,
    h("div", { class: "title" }, h("i", { class: `dot ${look}` }), h("h2", { tabindex: "-1" }, id), h("span", { class: "dim" }, `${tenant.kind} ${tenant.workload}`), sums.isIdle ? h("span", { class: "tag warn" }, `idle ${age(sums.idleFor)}`) : null),
    h("div", { class: "over" }, h("h3", {}, period ? "From the store" : "The last hour, as this page saw it"), linkPeriod ? periods(period, linkPeriod) : null),
    charts(history.pods.get(id), period && linkPeriod ? past.of(id, period) : undefined, sums, look),
    h("h3", {}, "Its numbers, and how they are known"),
    ...places.map((one) => evidence(one, more?.of(one))),
    h("p", { class: "dim" }, "The whole chain of evidence: ", h("code", {}, `podgpu why ${tenant.isOutsider ? tenant.container : id}`)),
  );
}
