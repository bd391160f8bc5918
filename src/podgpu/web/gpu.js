// A GPU's own page, or a MIG instance's: who is on it, what it reports about itself, and its last hour.

import { chart } from "./chart.js";
import { copyButton } from "./copy.js";
import { h, known, shortModel } from "./dom.js";
import { factsOf, indexOf } from "./facts.js";
import { lostText } from "./gpus.js";
import { laneTable } from "./lanes.js";
import { podId } from "./model.js";
import { celsius, memory, moment, percent, watts, written } from "./numbers.js";
import { evidence, factTable } from "./pod.js";
import { words } from "./words.js";

const rate = (value) => written("rate", value);
const frequency = (value) => written("frequency", value);

const LEAST_MS = 5000; // between two questions

/** What the server keeps of the last hour of the card that is looked at. */
export class CardHour {
  constructor(onNews) {
    this.onNews = onNews;
    this.pointer = {};
  }

  /** The `series` by name, and the `lanes` of a shared card; null while they are on their way; or why there are none. */
  of(uuid, interval) {
    if (this.uuid !== uuid || Date.now() - this.at > Math.max(LEAST_MS, interval * 1000)) this.#ask(uuid);
    return this.found;
  }

  async #ask(uuid) {
    if (this.uuid !== uuid) this.found = null;
    [this.uuid, this.at] = [uuid, Date.now()];
    const answer = await fetch(`api/v1/history?gpu=${encodeURIComponent(uuid)}`).catch(() => null);
    const found = answer?.ok ? await answer.json() : { error: answer ? (await answer.text()).trim() : "the server does not answer" };
    if (this.uuid !== uuid) return;
    this.found = found;
    this.onNews();
  }
}

// [title, the series, how it is written, and the reading of the most there can be, or that number]
const CHARTS = [
  ["Busy", "busy_ratio", percent, 1],
  ["Memory in use", "memory_used_bytes", memory, "memory_total_bytes"],
  ["Power", "power_watts", watts, "power_limit_watts"],
  ["Temperature", "temperature_celsius", celsius, 0],
  ["SM clock", "clock_hertz", frequency, "clock_max_hertz sm"],
  ["SMs active", "sm_active_ratio", percent, 1],
  ["Tensor cores", "tensor_active_ratio", percent, 1],
  ["Memory bandwidth", "dram_active_ratio", percent, 1],
  ["PCIe, received", "pcie_receive_bytes_per_second", rate, 0],
  ["PCIe, sent", "pcie_transmit_bytes_per_second", rate, 0],
  ["NVLink, received", "nvlink_receive_bytes_per_second", rate, 0],
  ["NVLink, sent", "nvlink_transmit_bytes_per_second", rate, 0],
];

/** The card and, where the address names a MIG instance, that. */
function find(gpus, uuid) {
  for (const gpu of gpus) {
    if (gpu.uuid === uuid) return { gpu };
    const slice = gpu.slices.find((one) => one.uuid === uuid);
    if (slice) return { gpu, slice };
  }
  return null;
}

/** Its readings: all that its node has, where they are here. */
function readingsOf({ gpu, slice }, full) {
  const card = full ?? gpu.source;
  return slice ? card.instances.find((one) => one.mig.uuid === slice.uuid)?.readings ?? [] : card.readings ?? [];
}

/** Up to the moment that is looked at, if that is in the past. */
function charts(hour, index, until) {
  if (hour === null) return h("p", { class: "box pad" }, "The server is being asked.");
  if (hour.error) return h("p", { class: "box pad" }, `There are no charts: ${hour.error}.`);
  const drawn = CHARTS.flatMap(([title, name, write, top]) => {
    const points = (hour.series[name] ?? []).filter(([at]) => at <= until);
    return points.length ? [chart(title, points, { top: typeof top === "string" ? index.get(top) : top, write })] : [];
  });
  return h("div", { class: "charts" }, ...drawn);
}

/** What is on the card and belongs to no pod. */
function restOf({ rest }) {
  const lines = rest.filter((one) => one.memory || one.busy || one.watts).map((one) => [words.reasons[one.reason] ?? one.reason, [one.memory && memory(one.memory), one.busy && percent(one.busy), one.watts && watts(one.watts)].filter(Boolean).join(" · "), words.meanings[one.reason] ?? ""]);
  return lines.length ? h("section", { class: "box" }, h("h3", {}, "Booked to no pod"), factTable(lines, "What it is")) : null;
}

const podLinks = (containers, link) => [...new Set(containers.map(podId))].flatMap((id, place) => [place ? ", " : "", h("a", { href: link({ gpu: "", pod: id }) }, id)]);

/** Who was there when an XID was raised. */
function presentAt({ present, holders = [] }, link) {
  const held = holders.length ? ["held by ", ...podLinks(holders, link)] : [];
  if (present?.length) return ["On it: ", ...podLinks(present, link), "."];
  return [present ? "No pod was on it" : "Not known who was on it", held.length ? ", " : "", ...held, "."];
}

function xidsOf({ xids }, link) {
  if (!xids.length) return null;
  const rows = xids.map((one) => h("tr", {}, h("th", { scope: "row" }, moment(one.at)), h("td", { class: "value" }, `XID ${one.xid}`), h("td", { class: "how" }, `${one.meaning || "Not a known code"}. `, ...presentAt(one, link))));
  return h("section", { class: "box xids" }, h("h3", {}, "XIDs since the agent started, and who was on the card"), h("table", { class: "facts" }, h("thead", { class: "spoken" }, h("tr", {}, ...["When", "Code", "Meaning, and who was on the card"].map((title) => h("th", { scope: "col" }, title)))), h("tbody", {}, rows)));
}

function aboutOf({ gpu, slice }) {
  const { pci_bus_id: bus, architecture, vbios, multiprocessors } = gpu.source.gpu;
  const lines = [
    ["UUID", h("code", {}, slice?.uuid ?? gpu.uuid), copyButton(slice?.uuid ?? gpu.uuid, "the UUID")],
    ["Node", gpu.node.name, gpu.node.driver && `Driver ${gpu.node.driver}.`],
    ["Model", gpu.model, [architecture, known(multiprocessors) && `${multiprocessors} multiprocessors`].filter(Boolean).join(", ")],
    ["PCI address", bus, ""],
    ["VBIOS", vbios, ""],
  ];
  return h("section", { class: "box" }, h("h3", {}, "The card"), factTable(lines.filter(([, value]) => value), "More"));
}

const slicesOf = ({ gpu, slice }, link) => (slice || !gpu.slices.length ? null : h("p", { class: "dim" }, "MIG instances: ", ...gpu.slices.flatMap((one, place) => [place ? ", " : "", h("a", { href: link({ gpu: one.uuid }) }, one.profile)])));

function titleOf({ gpu, slice }, link) {
  const name = slice ? `GPU ${gpu.index} · ${slice.profile}` : `GPU ${gpu.index}`;
  return h("div", { class: "title" }, h("h2", { tabindex: "-1" }, name), slice ? h("a", { href: link({ gpu: gpu.uuid }) }, "the whole card") : null, h("span", { class: "dim" }, `${gpu.node.name} · ${shortModel(gpu.model)}`), ...gpu.problems.map((title) => h("span", { class: "tag warn" }, title)));
}

/** A cluster's reader has no lanes: the agent does. */
const elsewhere = (model, gpu) => (model.isCluster && known(gpu.source.balance?.switches) ? h("p", { class: "dim" }, `Who was at work in each moment of the last minute is shown on this GPU's page of the agent on ${gpu.node.name}.`) : null);

/** Fill the page of the GPU or MIG instance of that UUID. `bars` is the row of the list for it. */
export function gpuPage(uuid, { model, hour, isPast, link, back, bars, more, colours }) {
  const top = h("p", {}, h("a", { href: back, class: "back" }, "← All GPUs"));
  const found = find(model.gpus, uuid);
  if (!found) return h("div", { class: "podpage" }, top, h("h2", { tabindex: "-1" }, uuid), h("p", { class: "empty" }, "There is no such GPU now. It may have been removed, or its node cannot be read."));
  const { gpu, slice } = found;
  const full = gpu.node.origin === "store" ? undefined : more?.card(gpu);
  const readings = readingsOf(found, full);
  const tenants = gpu.tenants.filter((one) => !slice || one.mig === slice.uuid);
  const kept = hour.of(uuid, model.interval);
  const heading = (tenant) => h("a", { href: link({ gpu: "", pod: tenant.id }) }, tenant.id);
  return h(
    "div",
    { class: "podpage gpupage" },
    top,
    titleOf(found, link),
    gpu.isUp ? bars(gpu) : h("p", { class: "box pad lost" }, h("span", { class: "notice" }, lostText(gpu))),
    slicesOf(found, link),
    xidsOf(gpu, link),
    // Of the past, no lanes are kept.
    isPast || slice ? null : (laneTable(kept?.lanes, { colours, link, pointer: hour.pointer }) ?? elsewhere(model, gpu)),
    h("h3", {}, "The last hour"),
    charts(kept, indexOf(readings), isPast ? gpu.node.takenAt : Number.POSITIVE_INFINITY),
    h("h3", {}, "Who is on it, and how that is known"),
    ...(tenants.length ? tenants.map((tenant) => evidence({ gpu, tenant }, heading(tenant), more?.of({ gpu, tenant }))) : [h("p", { class: "box pad" }, "No pod holds it, and none has a process on it.")]),
    slice ? null : restOf(gpu),
    h("h3", {}, "What it reports"),
    h("div", { class: "topics" }, ...factsOf(readings).map(([topic, lines]) => h("section", { class: "box" }, h("h3", {}, topic), factTable(lines, "What it means"))), aboutOf(found)),
  );
}
