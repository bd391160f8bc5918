// What is wrong, worst first, each with what to do about it.

import { known } from "./dom.js";
import { count, duration, gpus as gpuCount, integer, moment, percent } from "./numbers.js";
import { words } from "./words.js";

const EVENTS = {
  hardware_thermal: "it is too hot",
  software_thermal: "it is too hot",
  hardware_slowdown: "the hardware slows it down",
  hardware_power_brake: "the power supply slows it down",
};
const RECENT_SECONDS = 3600;
const ALIKE = 2; // alerts of one kind that are shown one by one

const problem = (fault) =>
  [fault.reason.replaceAll("_", " "), fault.call && `in ${fault.call}`, fault.seconds > 0 && `for ${duration(fault.seconds)}`]
    .filter(Boolean)
    .join(" ") + (fault.detail ? `: ${fault.detail}` : "");

const nextStep = (fault, part) => words.parts[part]?.next_steps?.[fault.reason] ?? words.next[fault.reason] ?? words.next[""];

function ofNode(node, found) {
  if (node.state === "failed") {
    found.push({ level: 2, kind: "Silent", text: `gives no numbers (${node.reason || "unknown"}).`, next: node.detail, node });
  } else if (node.state === "stale") {
    const age = known(node.takenAt) ? ` for ${duration(Date.now() / 1000 - node.takenAt)}` : "";
    found.push({ level: 1, kind: "Stale", text: `has not answered${age}. Its last numbers are dimmed.`, next: node.detail, node });
  }
  for (const part of node.snapshot?.parts ?? []) {
    if (part.up && !part.fault) continue;
    const said = part.fault ? problem(part.fault) : "it does not work";
    found.push({ level: part.up ? 1 : 2, kind: part.up ? "Part" : "Down", text: `${part.name}: ${said}`, next: part.fault ? nextStep(part.fault, part.name) : "", node });
  }
}

function ofGpu(gpu, now, isCluster, found) {
  const add = (level, kind, text, next) => found.push({ level, kind, text: `GPU ${gpu.index} ${text}`, next, node: gpu.node, gpu });
  if (gpu.fault) {
    const was = gpu.tenants.length ? ` It was held by ${gpu.tenants.map((one) => one.id).join(", ")}.` : "";
    add(2, ["lost", "gone", "gpu_not_found"].includes(gpu.fault.reason) ? "Lost" : "Stuck", `does not answer: ${problem(gpu.fault)}.${was}`, nextStep(gpu.fault, ""));
    return;
  }
  const value = (name) => gpu.values.get(name);
  const action = value("recovery_action");
  if (action) add(2, "Repair", `needs a recovery: the driver asks to ${words.actions[action] ?? `take action ${action}`}.`, words.advice.recovery);
  if (value("row_remap_failed")) add(2, "Memory", "has a bad row of memory that could not be replaced.", words.advice.remap_failed);
  if (value("row_remap_pending") || value("retired_pages_pending")) add(1, "Memory", "has bad memory that will be replaced at the next reset.", words.advice.remap_pending);
  labelled(gpu, add);
  const xid = value("xid_last_code");
  if (known(xid)) {
    const at = value("xid_last_timestamp_seconds");
    const isRecent = known(at) && now - at < RECENT_SECONDS;
    const meaning = words.xids[xid] ? `${words.xids[xid]}. ` : "";
    add(isRecent ? 2 : 1, `XID ${xid}`, `raised XID ${xid}${known(at) ? ` at ${moment(at)}` : ""}.`, meaning + words.advice.xid);
  }
  const lost = gpu.card.balance?.switching_ratio;
  if (lost >= words.least_switching) add(1, "Switching", `loses ${percent(lost)} of its time to switching between tenants.`, words.advice.switching);
  // A slim snapshot has no tenants that ended: its books are the agent's business.
  if (!isCluster && !balances(gpu.card)) add(2, "Books", "has books that do not balance.", words.advice.books);
  for (const one of gpu.tenants) {
    if (!one.isGiven) found.push({ level: 1, kind: "Not given", text: `${one.id} uses GPU ${gpu.index} without having been given it.`, next: words.advice.not_given, node: gpu.node, gpu, pod: one.id });
  }
}

/** Readings with labels: errors and throttling. */
function labelled(gpu, add) {
  const reasons = new Set();
  for (const { metric, labels, value } of gpu.card.readings ?? []) {
    if (!value || !labels) continue;
    if (metric === "clock_event" && EVENTS[labels.reason]) reasons.add(EVENTS[labels.reason]);
    if (metric === "ecc_errors_total" && labels.error === "uncorrected" && labels.lifetime === "volatile") {
      add(1, "ECC", `has met ${count(value, "memory error")} that could not be corrected.`, words.advice.ecc);
    }
  }
  for (const reason of reasons) add(1, "Throttled", `is held down: ${reason}.`, words.advice.throttled);
}

function balances(card) {
  const { balance } = card;
  if (!balance || card.tenants.some((one) => !known(one.booking.busy_us))) return true;
  const rows = [...[...card.tenants, ...(card.ended ?? [])].map((one) => one.booking), ...card.rest];
  const total = (name) => rows.reduce((sum, one) => sum + (one[name] ?? 0), 0);
  return (
    (!known(balance.memory_bytes) || balance.memory_bytes === total("memory_bytes")) &&
    balance.busy_us === total("busy_us") &&
    balance.energy_mj === total("energy_mj")
  );
}

function ofIdle(gpus, cost, found) {
  const idle = gpus.filter((one) => one.isUp).flatMap((gpu) => gpu.idle.map((tenant) => ({ gpu, tenant })));
  if (!idle.length) return;
  const share = idle.reduce((sum, one) => sum + (one.tenant.share ?? 0), 0);
  const [first] = idle;
  const money = cost(idle);
  const text =
    idle.length === 1
      ? `${first.tenant.id} holds ${gpuCount(share)} and has not used it for ${duration(first.tenant.idleFor)}${money}.`
      : `${count(idle.length, "pod")} hold ${gpuCount(share)} and have not used them for 30 min or more${money}.`;
  found.push({ level: 1, kind: "Idle", text, next: "Ask their owners, or scale them down.", pod: idle.length === 1 ? first.tenant.id : "", view: "idle" });
}

/** `cost` writes what a list of idle holders costs, or nothing. */
export function alertsOf(model, cost) {
  const found = [];
  for (const node of model.nodes) {
    ofNode(node, found);
    for (const gpu of node.gpus) ofGpu(gpu, node.takenAt ?? 0, model.isCluster, found);
  }
  ofIdle(model.gpus, cost, found);
  return together(found).sort((a, b) => b.level - a.level);
}

/** Of many of one kind only the first is shown: a hot room must not hide a lost GPU. */
function together(alerts) {
  const kinds = new Map();
  for (const one of alerts) {
    const key = `${one.level} ${one.kind} ${one.next}`;
    if (!kinds.has(key)) kinds.set(key, []);
    kinds.get(key).push(one);
  }
  return [...kinds.values()].flatMap((some) => (some.length <= ALIKE ? some : [{ ...some[0], text: `${some[0].text} And ${integer(some.length - 1)} more like it.` }]));
}
