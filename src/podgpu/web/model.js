// Turns the document into what is drawn: nodes, GPUs and tenants. Those of a node are made again only when the node changes.

import { pairsOf } from "./colours.js";
import { known } from "./dom.js";

const LEAST_ROOM = 1e-6; // of a GPU: shares are counted in millionths
export const BUSY = 0.005; // of a GPU's time; less is written as 0

/** Index readings by name. The first of several with the same name counts for the card. */
function readingsOf(owner) {
  const first = new Map();
  for (const reading of owner.readings ?? []) if (!first.has(reading.metric)) first.set(reading.metric, reading.value);
  return first;
}

const useOf = ({ use = {} }) => ({ busy: use.ratio, least: use.likely_least ?? use.least, most: use.likely_most ?? use.most, certainty: use.certainty, proven: [use.least, use.most], watts: use.watts });

export const podId = ({ namespace, pod, container }) => (namespace || pod ? `${namespace}/${pod}` : container);

function makeTenant(tenant, node, place) {
  const { container, booking, workload, holding } = tenant;
  const isOutsider = !container.namespace && !container.pod;
  const claims = tenant.claims ?? [];
  const limits = claims.map((claim) => claim.core_limit_ratio).filter(known);
  const isIdle = holding?.state === "idle";
  return {
    namespace: container.namespace,
    pod: container.pod || container.container,
    container: container.container,
    id: podId(container),
    isOutsider,
    workload: workload ? workload.name : container.pod || container.container,
    kind: workload ? workload.kind : isOutsider ? "outside Kubernetes" : "Pod",
    // The keys of the server's rows.
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

const byMemory = (a, b) => (b.memory ?? 0) - (a.memory ?? 0) || (b.busy ?? 0) - (a.busy ?? 0) || (a.id < b.id ? -1 : 1);

/** Tenants keep their places, so that nothing moves under the pointer. New ones come after them. */
function inPlace(tenants, before = []) {
  const places = new Map(before.map((tenant, place) => [`${tenant.podKey} ${tenant.container} ${tenant.mig}`, place]));
  const placeOf = (tenant) => places.get(`${tenant.podKey} ${tenant.container} ${tenant.mig}`) ?? before.length;
  return tenants.sort((a, b) => placeOf(a) - placeOf(b) || byMemory(a, b));
}

function makeGpu(card, node, key, before) {
  const values = readingsOf(card);
  const place = `${node.name}\n${card.gpu.model}\n${card.gpu.uuid}\ngpu ${card.gpu.index}`.toLowerCase();
  const tenants = inPlace(card.tenants.map((tenant) => makeTenant(tenant, node, place)), before?.tenants);
  const idle = tenants.filter((tenant) => tenant.isIdle);
  const gpu = {
    key,
    node,
    index: card.gpu.index,
    isDark: node.isDark,
    number: card.gpu.index < 0 ? "?" : String(card.gpu.index),
    uuid: card.gpu.uuid,
    model: card.gpu.model || "",
    isMig: card.gpu.mig_enabled,
    fault: card.fault,
    isUp: !card.fault || node.isDark,
    period: card.use?.period,
    problems: card.problems ?? [],
    severity: card.severity ?? "",
    hasXid: (card.problems ?? []).some((title) => title.startsWith("XID")),
    tenants,
    idleTenants: node.isDark ? 0 : idle.length,
    // A card is idle if all who hold it are.
    idleFor: idle.length && !node.isDark && tenants.every((tenant) => tenant.isIdle) ? Math.min(...idle.map((tenant) => tenant.idleFor)) : undefined,
    rest: (card.rest ?? []).map((rest) => ({ reason: rest.reason, memory: rest.memory_bytes, ...useOf(rest) })),
    slices: card.instances.map((instance) => makeSlice(instance, card, values)).sort((a, b) => a.place - b.place),
    memoryTotal: values.get("memory_total_bytes"),
    memoryUsed: card.balance?.memory_bytes ?? values.get("memory_used_bytes"),
    busy: node.isDark ? undefined : card.use?.ratio,
    watts: node.isDark ? undefined : card.use?.watts,
    wattsLimit: values.get("power_limit_watts"),
    celsius: node.isDark ? undefined : values.get("temperature_celsius"),
    xids: card.xids ?? [],
    source: card,
  };
  gpu.states = statesOf(gpu);
  gpu.text = `${place}\n${tenants.map((tenant) => `${tenant.id}\n${tenant.kind}\n${tenant.workload}\n${tenant.container}`).join("\n")}`.toLowerCase();
  return gpu;
}

/** In place of the GPUs of a dark node that nobody knows: one cell and one row, which count as no GPU. */
function unknownGpu(node) {
  const gpu = { key: `${node.name} ?`, node, isDark: true, isUnknown: true, index: -1, number: "?", uuid: "", model: "", isMig: false, isUp: true, problems: [], hasXid: false, tenants: [], rest: [], slices: [], xids: [], source: {} };
  return { ...gpu, states: new Set(["dark"]), text: node.name.toLowerCase() };
}

/** What to say of a GPU that nobody holds. */
export function freeWord(gpu) {
  if (gpu.isDark) return "dark";
  if (gpu.node.isCordoned) return "cordoned";
  return isUndivided(gpu) ? "no instances known" : "free";
}

const isUndivided = (gpu) => gpu.isMig && !gpu.slices.length;

/** Whether nobody holds some of a GPU, as far as shares are known. */
const hasRoom = (holders) => 1 - holders.reduce((sum, { share }) => sum + (share ?? 0), 0) > LEAST_ROOM;

/** The states that the filter can choose. */
function statesOf(gpu) {
  const holders = gpu.tenants.filter((tenant) => tenant.holding);
  const states = {
    lost: !gpu.isUp,
    busy: gpu.busy >= BUSY,
    idle: gpu.idleTenants > 0,
    free: gpu.isUp && !gpu.isDark && !gpu.tenants.length && !gpu.node.isCordoned && !isUndivided(gpu),
    room: gpu.isUp && !gpu.isDark && !gpu.node.isCordoned && !isUndivided(gpu) && hasRoom(holders),
    shared: holders.length > 1 || holders.some((tenant) => tenant.share < 1),
    mig: gpu.isMig,
    dark: gpu.isDark,
    "not read": gpu.node.state === "allocation",
  };
  // And every kind of problem, XIDs without their code.
  return new Set([...Object.keys(states).filter((state) => states[state]), ...gpu.problems.map((title) => title.toLowerCase().replace(/ \d+$/, ""))]);
}

const NOTHING_AWAITED = { names: [], isStart: false };

function makeNode(row, before) {
  const isAwaited = before?.gpus.length && row.snapshot && awaitedOf(row.snapshot).names.length;
  const snapshot = isAwaited ? before.snapshot : row.snapshot;
  const node = {
    name: row.name,
    snapshot,
    state: isAwaited ? "starting" : row.state,
    isDark: Boolean(row.dark),
    heardAt: row.heard?.at,
    reason: row.reason ?? "",
    origin: row.origin ?? "",
    isCordoned: Boolean(row.cordoned),
    row,
    sums: (row.insight ?? snapshot?.insight)?.sums,
    driver: snapshot?.driver_version ?? "",
    takenAt: snapshot?.taken_at,
    // A cluster's tenants carry their labels.
    labels: new Map((snapshot?.pods ?? []).filter((pod) => pod.labels).map((pod) => [`${pod.namespace}/${pod.name}`, pod.labels])),
  };
  const known = new Map(before?.gpus.map((gpu) => [gpu.key, gpu]));
  node.gpus = (snapshot?.cards ?? []).map((card, at) => {
    const { uuid, index } = card.gpu;
    const key = `${node.name} ${uuid} ${uuid || index >= 0 ? index : -1 - at}`; // without a name, it is told by its place
    return makeGpu(card, node, key, known.get(key));
  });
  node.gpus.sort((a, b) => a.index - b.index);
  if (node.isDark && !node.gpus.length) node.gpus.push(unknownGpu(node));
  node.choices = choicesOf(node);
  node.models = countBy(node.gpus.filter((gpu) => !gpu.isUnknown), (gpu) => gpu.model);
  return node;
}

/** What the filters can choose on this node. Gathered by node, since a fleet has thousands of GPUs. */
function choicesOf({ name, gpus, labels, row }) {
  const choices = { namespace: new Set(), workload: new Set(), node: new Set(gpus.length ? [name] : []), model: new Set(), state: new Set(), period: new Set(), pair: new Set(), label: new Set(row.snapshot?.labels) };
  for (const ofPod of labels.values()) for (const label of Object.keys(ofPod)) choices.label.add(label);
  for (const gpu of gpus) {
    choices.model.add(gpu.model);
    if (gpu.period) choices.period.add(gpu.period);
    for (const state of gpu.states) choices.state.add(state);
    if (gpu.tenants.length > 1) for (const pair of pairsOf(gpu.tenants.map((tenant) => tenant.namespace))) choices.pair.add(pair);
    for (const tenant of gpu.tenants) {
      choices.namespace.add(tenant.namespace);
      choices.workload.add(tenant.workload);
    }
  }
  return choices;
}

/**
 * The names of the parts that are waited for: what a node has not read since its start, or cannot read now, is not gone.
 * Empty if the snapshot says who is on which card, or that there is no card.
 */
function awaitedOf({ cards, parts = [] }) {
  const isStarting = ({ fault }) => fault?.reason === "starting";
  const down = parts.filter((part) => !part.up);
  const awaited = !cards.length ? down : cards.some((card) => card.tenants.length) ? [] : down.filter(isStarting);
  return { names: awaited.map((part) => part.name), isStart: awaited.some(isStarting) };
}

/** Keeps what was made of each node until the node has another row. */
export class Model {
  constructor() {
    this.made = new Map();
    this.nodes = [];
  }

  /** Take a document, and return whether it is shown: while a node's source starts or fails, its last live rows stay, and `awaited` says so. */
  read(document, isPast = false) {
    const isCluster = Array.isArray(document.nodes);
    this.awaited = isCluster || isPast ? NOTHING_AWAITED : awaitedOf(document);
    if (this.awaited.names.length && (this.document ? this.#hasRowsOf(document) : this.awaited.isStart && !document.cards.length)) {
      // After a start, it is not known yet what is wrong.
      const { problems, answers } = document.insight;
      if (!this.awaited.isStart) this.insight = { ...this.insight, problems, answers: { ...this.insight.answers, wrong: answers?.wrong } };
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
    for (const node of this.nodes) node.shownAt = document.taken_at;
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

  /** What a filter can choose, in order. */
  choices(name) {
    const choices = new Set(this.nodes.flatMap((node) => [...node.choices[name]]));
    choices.delete("");
    return [...choices].sort();
  }

  /** Gather the GPUs of all nodes, when they are drawn: parts of a change come faster than that. */
  gather() {
    if (this.isGathered) return false;
    this.gpus = this.nodes.flatMap((node) => node.gpus);
    this.known = this.gpus.filter((gpu) => !gpu.isUnknown).length; // cells of nodes that never said what they have are no GPUs
    this.labels = this.choices("label");
    this.models = total(this.nodes.flatMap((node) => node.models));
    this.isGathered = true;
    return true;
  }
}

/** Add up pairs of a key and a number, by key, the largest first. */
function total(pairs) {
  const sums = new Map();
  for (const [key, number] of pairs) sums.set(key, (sums.get(key) ?? 0) + number);
  return [...sums].sort((a, b) => b[1] - a[1]);
}

export const countBy = (list, keyOf) => total(list.map((item) => [keyOf(item), 1]));
