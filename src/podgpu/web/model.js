// From the document to what is drawn: nodes, GPUs and tenants, each made again only when its node changed.

import { known } from "./dom.js";

const BUSY = 0.005; // of a GPU's time; less is written as 0

/** Index readings by name; of several of one name the first speaks for the card. */
function readingsOf(owner) {
  const first = new Map();
  for (const one of owner.readings ?? []) if (!first.has(one.metric)) first.set(one.metric, one.value);
  return first;
}

const useOf = ({ use = {} }) => ({ busy: use.ratio, least: use.least, most: use.most, watts: use.watts });

export const podId = ({ namespace, pod, container }) => (namespace || pod ? `${namespace}/${pod}` : container);

function makeTenant(tenant, node, place) {
  const { container, booking, workload, holding } = tenant;
  const isOutsider = !container.namespace && !container.pod;
  const claims = tenant.claims ?? [];
  const limits = claims.map((one) => one.core_limit_ratio).filter(known);
  const isIdle = holding?.state === "idle";
  return {
    namespace: container.namespace,
    pod: container.pod || container.container,
    container: container.container,
    id: podId(container),
    isOutsider,
    workload: workload ? workload.name : container.pod || container.container,
    kind: workload ? workload.kind : isOutsider ? "outside Kubernetes" : "Pod",
    // As the rows of the server are called.
    workloadKey: isOutsider ? `//${container.container}` : `${container.namespace}/${workload?.kind ?? "Pod"}/${workload?.name ?? container.pod}`,
    podKey: `${container.namespace}/${isOutsider ? container.container : container.pod}/${container.pod_uid ?? ""}/${node.row.name}`,
    place,
    mig: tenant.mig ?? "",
    share: booking.allocated_ratio,
    memoryLimit: booking.memory_limit_bytes,
    coreLimit: limits.length ? Math.max(...limits) : undefined,
    memory: booking.memory_bytes,
    ...useOf(tenant),
    ofInstance: booking.instance_ratio,
    method: booking.method,
    system: claims[0]?.system ?? "",
    holding,
    isIdle,
    idleFor: isIdle ? Math.max(0, node.takenAt - holding.since) : undefined,
    labels: tenant.labels ?? node.labels.get(`${container.namespace}/${container.pod}`),
    source: tenant,
  };
}

function makeSlice(instance, card, values) {
  const own = readingsOf(instance);
  const { mig } = instance;
  const memoryTotal = own.get("memory_total_bytes");
  const whole = values.get("memory_total_bytes");
  const bySize = memoryTotal && whole ? memoryTotal / whole : undefined;
  const byUnits = mig.multiprocessors && card.gpu.multiprocessors ? mig.multiprocessors / card.gpu.multiprocessors : undefined;
  const byName = Number.parseInt(mig.profile, 10) / 7 || 1 / 7;
  return {
    uuid: mig.uuid,
    profile: mig.profile || "MIG",
    place: mig.start ?? mig.gpu_instance_id,
    memoryPart: bySize ?? byName,
    timePart: byUnits ?? byName,
    memoryTotal,
    active: own.get("sm_active_ratio"),
  };
}

const keyOf = ({ gpu }, node) => `${node.name} ${gpu.uuid} ${gpu.index}`;

const byMemory = (a, b) => (b.memory ?? 0) - (a.memory ?? 0) || (b.busy ?? 0) - (a.busy ?? 0) || (a.id < b.id ? -1 : 1);

/** Those who were there keep their places, so that nothing changes places under the hand. New ones come after them. */
function inPlace(tenants, before = []) {
  const places = new Map(before.map((one, place) => [`${one.podKey} ${one.container} ${one.mig}`, place]));
  const placeOf = (one) => places.get(`${one.podKey} ${one.container} ${one.mig}`) ?? before.length;
  return tenants.sort((a, b) => placeOf(a) - placeOf(b) || byMemory(a, b));
}

function makeGpu(card, node, before) {
  const values = readingsOf(card);
  const place = `${node.name}\n${card.gpu.model}\n${card.gpu.uuid}\ngpu ${card.gpu.index}`.toLowerCase();
  const tenants = inPlace(card.tenants.map((one) => makeTenant(one, node, place)), before?.tenants);
  const idle = tenants.filter((one) => one.isIdle);
  const gpu = {
    key: keyOf(card, node),
    node,
    index: card.gpu.index,
    uuid: card.gpu.uuid,
    model: card.gpu.model || "",
    isMig: card.gpu.mig_enabled,
    fault: card.fault,
    isUp: !card.fault,
    period: card.use?.period,
    problems: card.problems ?? [],
    hasXid: (card.problems ?? []).some((title) => title.startsWith("XID")),
    tenants,
    idleFor: idle.length ? Math.min(...idle.map((one) => one.idleFor)) : undefined,
    rest: (card.rest ?? []).map((one) => ({ reason: one.reason, memory: one.memory_bytes, ...useOf(one) })),
    slices: card.instances.map((one) => makeSlice(one, card, values)).sort((a, b) => a.place - b.place),
    memoryTotal: values.get("memory_total_bytes"),
    memoryUsed: card.balance?.memory_bytes ?? values.get("memory_used_bytes"),
    busy: card.use?.ratio,
    watts: card.use?.watts,
    wattsLimit: values.get("power_limit_watts"),
    celsius: values.get("temperature_celsius"),
    xids: card.xids ?? [],
    source: card,
  };
  gpu.states = statesOf(gpu);
  gpu.text = `${place}\n${tenants.map((one) => `${one.id}\n${one.kind}\n${one.workload}\n${one.container}`).join("\n")}`.toLowerCase();
  return gpu;
}

/** What the filter by state may ask for. */
function statesOf(gpu) {
  const holders = gpu.tenants.filter((one) => one.holding);
  const found = new Set();
  if (!gpu.isUp) found.add("lost");
  if (gpu.busy >= BUSY) found.add("busy");
  if (known(gpu.idleFor)) found.add("idle");
  if (gpu.isUp && !gpu.tenants.length) found.add("free");
  if (holders.length > 1 || holders.some((one) => one.share < 1)) found.add("shared");
  if (gpu.isMig) found.add("mig");
  if (gpu.node.state !== "fresh") found.add("stale");
  // Every kind of problem: of XIDs, any code.
  for (const title of gpu.problems) found.add(title.toLowerCase().replace(/ \d+$/, ""));
  return found;
}

const NOTHING_AWAITED = { names: [], isStart: false };

function makeNode(row, before) {
  const isAwaited = before?.gpus.length && row.snapshot && awaitedOf(row.snapshot).names.length;
  const snapshot = isAwaited ? before.snapshot : row.snapshot;
  const node = {
    name: row.name,
    snapshot,
    state: isAwaited ? "starting" : row.state,
    origin: row.origin ?? "",
    row,
    sums: (row.insight ?? snapshot?.insight)?.sums,
    driver: snapshot?.driver_version ?? "",
    takenAt: snapshot?.taken_at,
    // A cluster's tenants carry their labels.
    labels: new Map((snapshot?.pods ?? []).filter((pod) => pod.labels).map((pod) => [`${pod.namespace}/${pod.name}`, pod.labels])),
  };
  const known = new Map(before?.gpus.map((gpu) => [gpu.key, gpu]));
  node.gpus = (snapshot?.cards ?? []).map((card) => makeGpu(card, node, known.get(keyOf(card, node))));
  node.gpus.sort((a, b) => a.index - b.index);
  node.choices = choicesOf(node);
  node.models = countBy(node.gpus, (one) => one.model);
  return node;
}

/** What the filters can choose from on this node, found once: a fleet has thousands of GPUs. */
function choicesOf({ name, gpus, labels, row }) {
  const found = { namespace: new Set(), workload: new Set(), node: new Set(gpus.length ? [name] : []), model: new Set(), state: new Set(), period: new Set(), label: new Set(row.snapshot?.labels) };
  for (const own of labels.values()) for (const label of Object.keys(own)) found.label.add(label);
  for (const gpu of gpus) {
    found.model.add(gpu.model);
    if (gpu.period) found.period.add(gpu.period);
    for (const state of gpu.states) found.state.add(state);
    for (const one of gpu.tenants) {
      found.namespace.add(one.namespace);
      found.workload.add(one.workload);
    }
  }
  return found;
}

/**
 * What a node has not said yet after a start, or cannot say now, is not gone: the names of the parts that are waited for.
 * Empty if the snapshot says who is on which card, or knows that there is none.
 */
export function awaitedOf({ cards, parts = [] }) {
  const isStarting = ({ fault }) => fault?.reason === "starting";
  const down = parts.filter((part) => !part.up);
  const awaited = !cards.length ? down : cards.some((card) => card.tenants.length) ? [] : down.filter(isStarting);
  return { names: awaited.map((part) => part.name), isStart: awaited.some(isStarting) };
}

/** Keeps what it made of each node, and makes it again only if the node's row is another. */
export class Model {
  constructor() {
    this.made = new Map();
    this.nodes = [];
  }

  /** Take a document, and return whether it has news: while a node's source starts or fails, its last live rows stay, and `awaited` says so. */
  read(document, isPast = false) {
    const isCluster = Array.isArray(document.nodes);
    this.awaited = isCluster || isPast ? NOTHING_AWAITED : awaitedOf(document);
    if (this.awaited.names.length && (this.document ? this.#hasRowsOf(document) : this.awaited.isStart && !document.cards.length)) {
      // What is wrong with a start is known after it.
      if (!this.awaited.isStart) this.insight = { ...this.insight, problems: document.insight.problems };
      return false;
    }
    this.awaited = NOTHING_AWAITED;
    this.isPast = isPast;
    const rows = isCluster ? document.nodes : [{ name: document.node, state: "fresh", origin: "agent", snapshot: document }];
    const before = this.made;
    this.made = new Map();
    for (const row of rows) {
      const old = before.get(row.name);
      // A node's own document is changed in place; rows of a cluster are replaced.
      this.made.set(row.name, isCluster && old?.row === row ? old : makeNode(row, old));
    }
    this.nodes = [...this.made.values()];
    this.isCluster = isCluster;
    this.name = isCluster ? document.name || "cluster" : document.node;
    this.document = document;
    this.pending = document.pending ?? [];
    this.isDemo = Boolean(document.demo);
    this.hasStore = Boolean(document.has_store) || this.nodes.some((node) => node.origin === "store");
    this.isReplay = Boolean(document.replayed);
    this.takenAt = document.taken_at;
    this.interval = document.interval_seconds ?? 0;
    this.insight = { sums: {}, problems: [], ...document.insight };
    this.isGathered = false;
    return true;
  }

  #hasRowsOf({ node }) {
    return !this.isPast && this.name === node && this.nodes.some(({ gpus }) => gpus.length);
  }

  /** What a filter can choose from, in order. */
  choices(name) {
    const found = new Set();
    for (const node of this.nodes) for (const choice of node.choices[name]) found.add(choice);
    found.delete("");
    return [...found].sort();
  }

  /** All GPUs, gathered when they are drawn: parts of a change come faster than that. */
  gather() {
    if (this.isGathered) return false;
    this.gpus = this.nodes.flatMap((node) => node.gpus);
    this.labels = this.choices("label");
    this.models = total(this.nodes.map((node) => node.models));
    this.isGathered = true;
    return true;
  }
}

/** Add up what was counted in parts. */
function total(parts) {
  const counts = new Map();
  for (const part of parts) for (const [key, number] of part) counts.set(key, (counts.get(key) ?? 0) + number);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

export function countBy(list, of) {
  const counts = new Map();
  for (const one of list) {
    const key = of(one);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]);
}
