// From the document to what is drawn: nodes, GPUs and tenants, each made again only when its node changed.

import { known } from "./dom.js";

export const IDLE_SECONDS = 1800; // from then on a holder that does nothing counts as idle
const PAUSE_SECONDS = 60; // who pauses for less is at work
const BUSY = 0.005; // of a GPU's time; less is written as 0

/** Index readings by name; of several of one name the first speaks for the card. */
function readingsOf(owner) {
  const first = new Map();
  for (const one of owner.readings ?? []) if (!first.has(one.metric)) first.set(one.metric, one.value);
  return first;
}

const bandRatio = (band, time) => (band.elapsed_us ? time / band.elapsed_us : 0);

const isWide = (band) => band && band.elapsed_us > 0 && band.least_us < band.most_us;

/** How busy somebody was: of the last full minute where there is a doubt anywhere on the card, else of the last reading. */
function useOf(ratio, band, isMinute) {
  if (!isMinute) return { busy: ratio };
  if (!band) return { busy: undefined };
  const use = { busy: bandRatio(band, band.booked_us) };
  if (isWide(band)) Object.assign(use, { least: bandRatio(band, band.least_us), most: bandRatio(band, band.most_us) });
  return use;
}

/** Since when it has not been used; undefined while it is, or where nobody can know. */
function idleSince(tenant) {
  const { booking } = tenant;
  if (tenant.idle !== true && !known(booking.sm_ratio)) return undefined;
  return booking.last_active_at ?? tenant.held_since;
}

function makeTenant(tenant, card, isMinute, now) {
  const { container, booking } = tenant;
  const isOutsider = !container.namespace && !container.pod;
  const since = tenant.claims?.length ? idleSince(tenant) : undefined;
  const seconds = known(since) ? Math.max(0, now - since) : undefined;
  const claims = tenant.claims ?? [];
  const limits = claims.map((one) => one.core_limit_ratio).filter(known);
  return {
    namespace: container.namespace,
    pod: container.pod || container.container,
    container: container.container,
    id: isOutsider ? container.container : `${container.namespace}/${container.pod}`,
    isOutsider,
    workload: tenant.workload ? tenant.workload.name : container.pod || container.container,
    kind: tenant.workload ? tenant.workload.kind : isOutsider ? "outside Kubernetes" : "Pod",
    mig: tenant.mig ?? "",
    share: booking.allocated_ratio,
    memoryLimit: booking.memory_limit_bytes,
    coreLimit: limits.length ? Math.max(...limits) : undefined,
    memory: booking.memory_bytes,
    ...useOf(booking.sm_ratio, booking.band, isMinute),
    ofInstance: booking.instance_ratio,
    watts: booking.power_watts,
    method: booking.method,
    system: claims[0]?.system ?? "",
    holds: claims.length > 0,
    isGiven: claims.length > 0 || isOutsider,
    isUnseen: !known(tenant.idle) && card.ability.sees_processes,
    idleFor: seconds >= PAUSE_SECONDS ? seconds : undefined,
    idleSince: seconds >= PAUSE_SECONDS ? since : undefined,
    neverUsed: !known(booking.last_active_at),
    isIdle: seconds >= IDLE_SECONDS,
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

function makeGpu(card, node, now) {
  const values = readingsOf(card);
  const bands = card.tenants.map((one) => one.booking.band);
  const isMinute = Boolean(card.balance?.band) && bands.every(Boolean) && bands.some(isWide);
  const tenants = card.tenants.map((one) => makeTenant(one, card, isMinute, now)).sort(byMemory);
  const rest = (card.rest ?? []).map((one) => ({
    reason: one.reason,
    memory: one.memory_bytes,
    watts: one.power_watts,
    ...useOf(one.sm_ratio, one.band, isMinute),
    source: one,
  }));
  const shares = tenants.filter((one) => one.holds).map((one) => one.share);
  const gpu = {
    key: `${node.name} ${card.gpu.uuid}`,
    node,
    index: card.gpu.index,
    uuid: card.gpu.uuid,
    model: card.gpu.model || "",
    isMig: card.gpu.mig_enabled,
    fault: card.fault,
    isUp: !card.fault,
    isMinute,
    tenants,
    rest,
    slices: card.instances.map((one) => makeSlice(one, card, values)).sort((a, b) => a.place - b.place),
    allocated: shares.reduce((sum, one) => sum + (one ?? 0), 0),
    isShareUnknown: shares.some((one) => !known(one)),
    memoryTotal: values.get("memory_total_bytes"),
    memoryUsed: card.balance?.memory_bytes ?? values.get("memory_used_bytes"),
    busy: busyOf(card, values, isMinute),
    watts: values.get("power_watts"),
    wattsLimit: values.get("power_limit_watts"),
    celsius: values.get("temperature_celsius"),
    values,
    card,
  };
  gpu.idle = tenants.filter((one) => one.isIdle);
  gpu.states = statesOf(gpu);
  gpu.text = textOf(gpu);
  return gpu;
}

function busyOf(card, values, isMinute) {
  const { balance } = card;
  if (isMinute) return bandRatio(balance.band, balance.band.booked_us);
  return balance?.busy_ratio ?? values.get("utilization_ratio");
}

/** What the filter by state may ask for. */
function statesOf(gpu) {
  const holders = gpu.tenants.filter((one) => one.holds);
  const found = new Set();
  if (!gpu.isUp) found.add("lost");
  if (gpu.busy >= BUSY) found.add("busy");
  if (gpu.idle.length) found.add("idle");
  if (gpu.isUp && !gpu.tenants.length) found.add("free");
  if (holders.length > 1 || holders.some((one) => one.share < 1)) found.add("shared");
  if (gpu.isMig) found.add("mig");
  if (gpu.node.state !== "fresh") found.add("stale");
  return found;
}

function textOf(gpu) {
  const words = [gpu.node.name, gpu.model, gpu.uuid, `gpu ${gpu.index}`];
  for (const one of gpu.tenants) words.push(one.id, one.kind, one.workload, one.container);
  return words.join("\n").toLowerCase();
}

function makeNode(row) {
  const { snapshot } = row;
  const node = {
    name: row.name,
    state: row.state,
    reason: row.reason ?? "",
    detail: row.detail ?? "",
    origin: row.origin ?? "",
    model: row.model ?? "",
    row,
    snapshot,
    driver: snapshot?.driver_version ?? "",
    takenAt: snapshot?.taken_at,
  };
  node.gpus = (snapshot?.cards ?? []).map((card) => makeGpu(card, named(node, card), snapshot.taken_at));
  node.gpus.sort((a, b) => (a.node.name < b.node.name ? -1 : a.node.name > b.node.name ? 1 : a.index - b.index));
  return node;
}

/** A source may read the cards of many nodes: then each card names its own. */
function named(node, card) {
  return card.gpu.node ? { ...node, name: card.gpu.node } : node;
}

/** Keeps what it made of each node, and makes it again only if the node's row is another. */
export class Model {
  constructor() {
    this.made = new Map();
    this.nodes = [];
  }

  read(document) {
    const isCluster = Array.isArray(document.nodes);
    const rows = isCluster ? document.nodes : [{ name: document.node, state: "fresh", origin: "agent", snapshot: document }];
    const before = this.made;
    this.made = new Map();
    for (const row of rows) {
      const old = before.get(row.name);
      // A node's own document is changed in place; rows of a cluster are replaced.
      this.made.set(row.name, isCluster && old?.row === row ? old : makeNode(row));
    }
    this.nodes = [...this.made.values()];
    this.isCluster = isCluster;
    this.name = isCluster ? document.name || "cluster" : document.node;
    this.document = document;
    this.pending = document.pending ?? [];
    this.isDemo = Boolean(document.demo);
    this.isReplay = Boolean(document.replayed);
    this.takenAt = document.taken_at;
    this.interval = isCluster ? Math.max(1, ...this.nodes.map((one) => one.snapshot?.interval_seconds ?? 0)) : document.interval_seconds;
    this.isGathered = false;
  }

  /** All GPUs, gathered when they are drawn: parts of a change come faster than that. */
  gather() {
    if (this.isGathered) return false;
    this.gpus = this.nodes.flatMap((node) => node.gpus);
    this.isGathered = true;
    return true;
  }
}

const sum = (list, of) => list.reduce((total, one) => total + (of(one) ?? 0), 0);

/** The first glance, all in GPUs, so that the numbers relate. Old numbers of a silent node count as what it holds only. */
export function totals(gpus) {
  const up = gpus.filter((one) => one.isUp);
  const fresh = up.filter((one) => one.node.state === "fresh");
  const idle = up.flatMap((one) => one.idle);
  const allocated = sum(up, (one) => Math.min(one.allocated, 1));
  const slices = up.flatMap((one) => one.slices.filter((slice) => !one.tenants.some((tenant) => tenant.mig === slice.uuid)));
  return {
    gpus: gpus.length,
    lost: gpus.length - up.length,
    models: countBy(gpus, (one) => one.model),
    allocated,
    isAllocatedUnknown: up.some((one) => one.isShareUnknown),
    busy: fresh.some((one) => known(one.busy)) ? sum(fresh, (one) => one.busy) : undefined,
    busyOf: fresh.filter((one) => known(one.busy)).length,
    idle: sum(idle, (one) => one.share),
    idleHolders: idle.length,
    free: up.length - allocated,
    freeWhole: up.filter((one) => !one.tenants.length && !one.slices.length).length,
    freeSlices: slices.length,
    watts: fresh.some((one) => known(one.watts)) ? sum(fresh, (one) => one.watts) : undefined,
    wattsLimit: sum(fresh, (one) => one.wattsLimit),
  };
}

export function countBy(list, of) {
  const counts = new Map();
  for (const one of list) counts.set(of(one), (counts.get(of(one)) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

/** Gather tenants by workload: what it was given, what it uses, and its pods. */
export function workloadsOf(gpus) {
  const found = new Map();
  for (const gpu of gpus) {
    for (const tenant of gpu.tenants) {
      const key = `${tenant.namespace}/${tenant.kind}/${tenant.workload}`;
      if (!found.has(key)) found.set(key, { key, namespace: tenant.namespace, kind: tenant.kind, name: tenant.workload, places: [] });
      found.get(key).places.push({ gpu, tenant });
    }
  }
  return [...found.values()].map((one) => Object.assign(one, summary(one.places), { pods: podsOf(one.places) }));
}

function podsOf(places) {
  const pods = new Map();
  for (const place of places) {
    const { id } = place.tenant;
    if (!pods.has(id)) pods.set(id, { id, places: [] });
    pods.get(id).places.push(place);
  }
  return [...pods.values()].map((pod) => Object.assign(pod, summary(pod.places)));
}

export function summary(places) {
  const total = (of) => (places.some((one) => known(of(one))) ? sum(places, of) : undefined);
  return {
    share: total(({ tenant }) => tenant.share),
    busy: total(({ tenant }) => tenant.busy),
    memory: total(({ tenant }) => tenant.memory),
    memoryRoom: total(({ tenant, gpu }) => tenant.memoryLimit ?? roomOf(tenant, gpu)),
    watts: total(({ tenant }) => tenant.watts),
    idleShare: sum(places.filter(({ tenant }) => tenant.isIdle), ({ tenant }) => tenant.share),
    idleFor: Math.max(0, ...places.map(({ tenant }) => (tenant.isIdle ? tenant.idleFor : 0))),
    isIdle: places.some(({ tenant }) => tenant.isIdle),
  };
}

function roomOf(tenant, gpu) {
  const slice = gpu.slices.find((one) => one.uuid === tenant.mig);
  return slice ? slice.memoryTotal : gpu.memoryTotal;
}
