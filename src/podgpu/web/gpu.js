// The page of a GPU or a MIG instance: who is on it, what it reports about itself, and its last hour.

import { chart, stack } from "./chart.js";
import { actions } from "./commands.js";
import { copyButton } from "./copy.js";
import { h, known, shortModel } from "./dom.js";
import { factsOf, indexOf } from "./facts.js";
import { lostText, tagLook } from "./gpus.js";
import { frameOf, hourHeading, refreshMs } from "./hour.js";
import { laneTable } from "./lanes.js";
import { podId } from "./model.js";
import { celsius, memory, moment, percent, watts, written } from "./numbers.js";
import { evidence, factTable, facts } from "./pod.js";
import { words } from "./words.js";

const rate = (value) => written("rate", value);
const frequency = (value) => written("frequency", value);

// [title, series, how a value is written, and the top of the chart: a number, or the name of a reading]
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

/** The card of that UUID, or the MIG instance with its card. */
function find(gpus, uuid) {
  for (const gpu of gpus) {
    if (gpu.uuid === uuid) return { gpu };
    const slice = gpu.slices.find((slice) => slice.uuid === uuid);
    if (slice) return { gpu, slice };
  }
  return null;
}

/** Its readings: all that its node has, once those are here. */
function readingsOf({ gpu, slice }, full) {
  const card = full ?? gpu.source;
  return slice ? card.instances.find((instance) => instance.mig.uuid === slice.uuid)?.readings ?? [] : card.readings ?? [];
}

/** How busy each pod kept it, one on the other, and what belongs to no pod. */
function byPod({ series, pods, other_busy_ratio: others = [] }, frame, colours, link) {
  const layers = pods.map(({ pod, namespace, busy_ratio: points }) => ({ name: pod, look: colours.of({ namespace }), href: link({ gpu: "", pod }), points }));
  if (others.length) layers.push({ name: "Other pods", look: "cx", points: others });
  return stack("Busy, by pod", series.busy_ratio, layers, { top: 1, write: percent, frame, rest: "Booked to no pod" });
}

/** The charts of the hour. `cursor` is the moment that the page shows, or 0 for the present. */
function charts(hour, index, { model, cursor, colours, link }) {
  if (!hour) return h("p", { class: "box pad" }, "Waiting for the server.");
  if (hour.error) return h("p", { class: "box pad" }, `There are no charts: ${hour.error}.`);
  const frame = frameOf(hour, model, cursor);
  const drawn = CHARTS.flatMap(([title, name, write, top]) => {
    const points = hour.series[name] ?? [];
    if (name === "busy_ratio" && points.length && hour.pods?.length) return [byPod(hour, frame, colours, link)];
    return points.length ? [chart(title, points, { top: typeof top === "string" ? index.get(top) : top, write, frame })] : [];
  });
  return h("div", { class: "charts" }, ...drawn);
}

/** What is booked to no pod. */
function restOf({ rest }) {
  const lines = rest.filter((part) => part.memory || part.busy || part.watts).map((part) => [words.reasons[part.reason] ?? part.reason, [part.memory && memory(part.memory), part.busy && percent(part.busy), part.watts && watts(part.watts)].filter(Boolean).join(" · "), words.meanings[part.reason] ?? ""]);
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
  const rows = xids.map((xid) => [moment(xid.at), `XID ${xid.xid}`, [`${xid.meaning || "Not a known code"}. `, ...presentAt(xid, link), xid.advice ? ` ${xid.advice}` : null]]);
  const table = facts(["When", "Code", "Meaning, and who was on the card"], rows);
  return h("section", { class: "box xids" }, h("h3", {}, "XIDs since the agent started, and who was on the card"), table);
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

const slicesOf = ({ gpu, slice }, link) => (slice || !gpu.slices.length ? null : h("p", { class: "dim" }, "MIG instances: ", ...gpu.slices.flatMap((slice, place) => [place ? ", " : "", h("a", { href: link({ gpu: slice.uuid }) }, slice.profile)])));

function titleOf({ gpu, slice }, link) {
  const name = slice ? `GPU ${gpu.number} · ${slice.profile}` : `GPU ${gpu.number}`;
  return h("div", { class: "title" }, h("h2", { tabindex: "-1" }, name), slice ? h("a", { href: link({ gpu: gpu.uuid }) }, "the whole card") : null, h("span", { class: "dim" }, `${gpu.node.name} · ${shortModel(gpu.model)}`), ...gpu.problems.map((title) => h("span", { class: `tag ${tagLook(gpu)}` }, title)));
}

/** Only the agent has lanes, so the page of a cluster says where they are. */
const elsewhere = (model, gpu) => (model.isCluster && known(gpu.source.balance?.switches) ? h("p", { class: "dim" }, `Who was at work in each moment of the last minute is shown on this GPU's page of the agent on ${gpu.node.name}.`) : null);

/** Make the page of the GPU or MIG instance of that UUID. `bars` makes its row of the list, `pointer` keeps the column of the lanes that is pointed at. */
export function gpuPage(uuid, { model, hour, pointer, isPast, link, back, bars, more, colours, facts }) {
  const top = h("p", {}, h("a", { href: back, class: "back" }, "← All GPUs"));
  const found = find(model.gpus, uuid);
  if (!found) return h("div", { class: "podpage" }, top, h("h2", { tabindex: "-1" }, uuid), h("p", { class: "empty" }, "There is no such GPU now. It may have been removed, or its node cannot be read."));
  const { gpu, slice } = found;
  const full = gpu.node.origin === "store" ? undefined : more?.card(gpu);
  const readings = readingsOf(found, full);
  const tenants = gpu.tenants.filter((tenant) => !slice || tenant.mig === slice.uuid);
  const kept = hour.of(`api/v1/history?gpu=${encodeURIComponent(uuid)}`, refreshMs(model));
  const heading = (tenant) => h("a", { href: link({ gpu: "", pod: tenant.id }) }, tenant.id);
  return h(
    "div",
    { class: "podpage gpupage" },
    top,
    titleOf(found, link),
    actions(facts?.commands, link({ compare: uuid, gpu: "", view: "gpus" })),
    gpu.isUp ? bars(gpu) : h("p", { class: "box pad lost" }, h("span", { class: "notice" }, lostText(gpu))),
    slicesOf(found, link),
    xidsOf(gpu, link),
    // There are no lanes of the past.
    isPast || slice ? null : (laneTable(kept?.lanes, { colours, link, pointer }) ?? elsewhere(model, gpu)),
    hourHeading(kept, model),
    charts(kept, indexOf(readings), { model, cursor: isPast ? model.takenAt : 0, colours, link }),
    h("h3", {}, "Who is on it, and how that is known"),
    gpu.source.use?.note ? h("p", { class: "dim" }, gpu.source.use.note) : null,
    ...(tenants.length ? tenants.map((tenant) => evidence({ gpu, tenant }, heading(tenant), more?.tenant({ gpu, tenant }), facts)) : [h("p", { class: "box pad" }, "No pod holds it, and none has a process on it.")]),
    slice ? null : restOf(gpu),
    h("h3", {}, "What it reports"),
    h("div", { class: "topics" }, ...factsOf(readings).map(([topic, lines]) => h("section", { class: "box" }, h("h3", {}, topic), factTable(lines, "What it means"))), aboutOf(found)),
  );
}
