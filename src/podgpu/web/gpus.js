// The view by node and GPU: each GPU with its memory, its busy time and its power.

import { Bar } from "./bar.js";
import { h, known, shortModel, write, writeWhole } from "./dom.js";
import { countBy } from "./model.js";
import { age, celsius, gpuNumber, gpus as gpuCount, integer, memory, partOf, percent, use, watts } from "./numbers.js";
import { words } from "./words.js";

const NARROW = "screen and (max-width: 768px)"; // the same as in app.css
const NAMED = 3; // tenants whose part of the busy time is written out
const SORT = {
  busy: (a, b) => (b.busy ?? -1) - (a.busy ?? -1),
  memory: (a, b) => (b.memoryUsed ?? -1) - (a.memoryUsed ?? -1),
  power: (a, b) => (b.watts ?? -1) - (a.watts ?? -1),
  heat: (a, b) => (b.celsius ?? -1) - (a.celsius ?? -1),
  idle: (a, b) => (b.idleFor ?? -1) - (a.idleFor ?? -1),
};
const PERIODS = { minute: "in the last full minute", reading: "since the previous reading" };

/** What the numbers below are: all on one card are of one time, and on most of them of the same. */
export function headsOf([first, other]) {
  const busy = other ? `Busy ${PERIODS.reading}, or ${PERIODS.minute}` : `Busy ${PERIODS[first] ?? ""}`;
  return ["GPU", "Memory", busy, "Power in the same time"];
}

/** Widths of the three bars in whole pixels, and heights of rows, for a list of that width. */
export function measure(width) {
  if (matchMedia(NARROW).matches) return { isNarrow: true, memory: width - 28, busy: width - 28, power: width - 28, row: 186, head: 36, lost: 72 };
  const room = width - 28 - 136 - 3 * 20;
  const memory = Math.floor(room * 0.4);
  const busy = Math.floor(room * 0.36);
  return { isNarrow: false, memory, busy, power: room - memory - busy, row: 50, head: 36, lost: 50 };
}

export function itemsOf({ gpus, sort, sizes }) {
  const height = (gpu) => (gpu.isUp ? sizes.row : sizes.lost);
  if (sort) {
    return [...gpus].sort(SORT[sort]).map((gpu) => ({ kind: "gpu", key: gpu.key, height: height(gpu), gpu, isAlone: true }));
  }
  const items = [];
  let head = null;
  for (const gpu of gpus) {
    if (gpu.node !== head?.node) {
      head = { kind: "node", key: gpu.node.name, height: sizes.head, node: gpu.node, gpus: [] };
      items.push(head);
    }
    head.gpus.push(gpu);
    items.push({ kind: "gpu", key: gpu.key, height: height(gpu), gpu });
  }
  return items;
}

/** A node's own line: what it has, and what is wrong with it. */
export function nodeRow() {
  const name = h("h2");
  const about = h("span", { class: "dim" });
  const tag = h("span", { class: "tag" });
  const element = h("div", { class: "node" }, name, tag, about);
  return {
    element,
    update({ node, gpus }) {
      writeWhole(name, node.name);
      const { gpus: all, busy_gpus: busy, lost_gpus: lost, guest_gpus: guests, unused_pods: idle } = node.sums ?? {};
      const models = countBy(gpus, (one) => one.model).map(([model, count]) => `${integer(count)} × ${shortModel(model)}`);
      const facts = [models.join(", "), node.driver && `driver ${node.driver}`, known(busy) && `${gpuNumber(busy)} of ${gpuCount(all)} busy`, idle && `${integer(idle)} idle`, guests && `${integer(guests)} given to VMs`];
      writeWhole(about, facts.filter(Boolean).join(" · "));
      const [look, word] = lost ? ["bad", `${integer(lost)} lost`] : node.state === "fresh" ? ["", ""] : ["warn", node.state === "allocation" ? "allocation only" : node.state];
      tag.className = `tag ${look}`;
      tag.hidden = !word;
      write(tag, word);
    },
  };
}

/** A tenant's colour is its namespace's; who holds and does not work is an outline. */
const lookOf = (tenant, colours) => `${colours.of(tenant)}${tenant.isIdle ? " idle" : ""}`;

/** Make rows of GPUs. `at()` gives the sizes of now, `link(id)` a pod's address, `linkGpu(uuid)` a card's, `fits` dims who is not meant. */
export function gpuRows({ colours, at, link, linkGpu, fits }) {
  return () => {
    const title = h("b");
    const open = h("a", { class: "number" }, title);
    const tags = h("span", { class: "tags" });
    const heat = h("small", { class: "dim" });
    const bars = { memory: new Bar("memory", "Memory"), busy: new Bar("busy", "Busy"), power: new Bar("power", "Power") };
    const notice = h("div", { class: "notice" });
    const element = h("div", { class: "gpu" }, h("div", { class: "who" }, open, heat, tags), ...Object.values(bars).map((one) => one.element), notice);
    return {
      element,
      update({ gpu, isAlone }) {
        open.href = linkGpu(gpu.uuid);
        open.dataset.tip = [`GPU ${gpu.index} of ${gpu.node.name}`, shortModel(gpu.model), ...gpu.tenants.map(tenantTip)].join("\n");
        writeWhole(title, isAlone ? `${gpu.node.name} · ${gpu.index}` : String(gpu.index));
        drawTags(tags, gpu);
        write(heat, known(gpu.celsius) ? celsius(gpu.celsius) : "");
        const isLost = !gpu.isUp;
        element.classList.toggle("lost", isLost);
        element.classList.toggle("old", gpu.node.state !== "fresh");
        notice.hidden = !isLost;
        for (const bar of Object.values(bars)) bar.element.hidden = isLost;
        if (isLost) {
          writeWhole(notice, lostText(gpu));
          return;
        }
        const sizes = at();
        const look = (tenant) => `${lookOf(tenant, colours)}${fits(tenant) ? "" : " dimmed"}`;
        bars.memory.draw(memoryBar(gpu, look, link), sizes.memory);
        bars.busy.draw(busyBar(gpu, look), sizes.busy);
        bars.power.draw(powerBar(gpu, look), sizes.power);
      },
    };
  };
}

export function lostText(gpu) {
  const was = gpu.tenants.map((one) => one.id).join(", ");
  return `${gpu.fault.reason.replaceAll("_", " ")}${gpu.fault.detail ? `: ${gpu.fault.detail}` : ""}${was ? ` · held by ${was}` : ""}`;
}

function drawTags(tags, gpu) {
  const holders = gpu.tenants.filter((one) => one.holding).length;
  const look = gpu.isUp ? "warn" : "bad";
  const found = [
    ...gpu.problems.map((title) => [look, title === "Idle" && known(gpu.idleFor) ? `idle ${age(gpu.idleFor)}` : title]),
    gpu.isMig && ["", "MIG"],
    !gpu.isMig && holders > 1 && ["", `× ${holders}`],
  ].filter(Boolean);
  const sign = JSON.stringify(found);
  if (tags.dataset.sign === sign) return;
  tags.dataset.sign = sign;
  tags.title = found.map(([, word]) => word).join(", ");
  tags.replaceChildren(...found.map(([look, word]) => h("span", { class: `tag ${look}` }, word)));
}

const restOf = (gpu, name) => gpu.rest.filter((one) => one[name] > 0).map((one) => ({ look: "rest", value: one[name], reason: one.reason, tip: restTip(one) }));

/** All that is known of a tenant on its card, whichever of its segments is pointed at. */
export function tenantTip(one) {
  const parts = [known(one.memory) && memory(one.memory), known(one.busy) && `busy ${use(one.busy, one.least, one.most)}`, known(one.watts) && watts(one.watts), known(one.share) && `given ${percent(one.share)}`];
  return [one.id, ...parts, one.isIdle && `idle ${age(one.idleFor)}`].filter(Boolean).join(" · ");
}

const restTip = (one) => [words.reasons[one.reason] ?? one.reason, one.memory > 0 && memory(one.memory), one.busy > 0 && `busy ${percent(one.busy)}`, one.watts > 0 && watts(one.watts), words.meanings[one.reason]].filter(Boolean).join(" · ");

/** Slices in their place, or the whole card as one. */
function slicesOf(gpu, part) {
  if (!gpu.slices.length) return null;
  const taken = gpu.slices.reduce((sum, one) => sum + one[part], 0);
  const slices = gpu.slices.map((slice) => ({ size: slice[part], slice, tenants: gpu.tenants.filter((one) => one.mig === slice.uuid) }));
  if (taken < 0.995) slices.push({ size: 1 - taken, slice: null, tenants: gpu.tenants.filter((one) => !one.mig) });
  return slices;
}

function memoryBar(gpu, look, link) {
  const total = gpu.memoryTotal || gpu.memoryUsed || 1;
  const slices = slicesOf(gpu, "memoryPart");
  const rest = restOf(gpu, "memory");
  const drawn = slices
    ? slices.map(({ size, slice, tenants }, place) => filled(size, slice?.memoryTotal ?? size * total, tenants, place === slices.length - 1 && !slice ? rest : [], look, link))
    : [filled(1, total, gpu.tenants, rest, look, link)];
  const limits = gpu.tenants.filter((one) => one.holding && known(one.memoryLimit));
  return {
    slices: drawn,
    rail: limits.map((one) => ({ look: look(one), value: one.memoryLimit / total, tip: `${one.id} may have ${memory(one.memoryLimit)}` })),
    label: memoryLabel(gpu),
    spoken: `Memory: ${spoken(gpu, (one) => known(one.memory) && memory(one.memory), rest, memory)}${partOf("memory", gpu.memoryUsed, gpu.memoryTotal)} in use`,
  };
}

/** Who holds it and how much. A holder whose memory is not known has what it was given, as far as there is room: an outline, not a number. */
function filled(size, total, tenants, rest, look, link) {
  const unseen = tenants.filter((one) => one.holding && !known(one.memory));
  const used = [...tenants, ...rest].reduce((sum, one) => sum + (one.memory ?? one.value ?? 0), 0);
  const asked = unseen.reduce((sum, one) => sum + (one.share || 1), 0);
  const room = Math.min(Math.max(0, total - used), (total * Math.min(asked, size)) / size);
  const segments = tenants.map((one) => ({
    key: keyOf(one),
    look: `${look(one)}${unseen.includes(one) ? " unseen" : ""}`,
    value: unseen.includes(one) ? (room * (one.share || 1)) / asked : one.memory,
    name: one.pod,
    link: link(one.id),
    tip: tenantTip(one),
    spoken: `${one.id}, ${known(one.memory) ? memory(one.memory) : "memory not known"}${one.isIdle ? ", idle" : ""}`,
  }));
  return { size, total, segments: [...segments, ...rest] };
}

const keyOf = ({ id, container, mig }) => `${id} ${container} ${mig}`;

function memoryLabel(gpu) {
  const used = !known(gpu.memoryUsed) ? "not known" : known(gpu.memoryTotal) ? partOf("memory", gpu.memoryUsed, gpu.memoryTotal) : memory(gpu.memoryUsed);
  if (!gpu.tenants.length) return `${used} · ${gpu.rest.some((one) => one.memory > 2 ** 28) ? "no pod" : "free"}`;
  const systems = [...new Set(gpu.tenants.map((one) => one.system).filter(Boolean))].join(", ");
  const unseen = gpu.tenants.filter((one) => !known(one.memory)).length;
  return [used, gpu.slices.length ? gpu.slices.map((one) => one.profile).join(" ") : systems, unseen && `${integer(unseen)} without memory`].filter(Boolean).join(" · ");
}

function busyBar(gpu, look) {
  const rest = restOf(gpu, "busy");
  const slices = slicesOf(gpu, "timePart");
  const segment = (one) => ({ key: keyOf(one), look: look(one), value: one.busy, tip: tenantTip(one) });
  const drawn = slices
    ? slices.map(({ size, tenants }) => ({ size, total: size, segments: tenants.map(segment) }))
    : [{ size: 1, total: 1, segments: [...gpu.tenants.map(segment), ...rest] }];
  const shared = gpu.tenants.filter((one) => one.holding && (known(one.coreLimit) || one.share < 1));
  return {
    slices: drawn,
    whiskers: slices ? [] : whiskersOf(gpu.tenants),
    rail: slices ? [] : shared.map((one) => ({ look: look(one), value: one.coreLimit ?? one.share, tip: `${one.id} was given ${percent(one.coreLimit ?? one.share)}` })),
    label: busyLabel(gpu, rest),
    about: PERIODS[gpu.period],
    spoken: `Busy ${PERIODS[gpu.period] ?? ""}: ${spoken(gpu, (one) => known(one.busy) && use(one.busy, one.least, one.most), rest, percent)}${percent(gpu.busy)} in all`,
  };
}

/** A doubt begins where the segment begins. */
function whiskersOf(tenants) {
  const found = [];
  let start = 0;
  for (const one of tenants) {
    if (known(one.least)) found.push({ from: start + one.least, to: start + one.most });
    start += one.busy ?? 0;
  }
  return found;
}

function busyLabel(gpu, rest) {
  const parts = [percent(gpu.busy)];
  const active = gpu.tenants.filter((one) => one.busy >= 0.005);
  if (gpu.slices.length) {
    const inside = gpu.slices.filter((one) => known(one.active)).map((one) => percent(one.active));
    if (inside.length) parts.push(`slices ${inside.join(", ")}`);
  } else if (active.length > 1 || active.some((one) => known(one.least))) {
    parts.push(...active.slice(0, NAMED + 1).map((one) => `${one.pod} ${use(one.busy, one.least, one.most)}`));
  }
  const unattributed = rest.reduce((sum, one) => sum + one.value, 0);
  if (unattributed >= 0.005) parts.push(`unattributed ${percent(unattributed)}`);
  return parts.join(" · ");
}

function powerBar(gpu, look) {
  const rest = restOf(gpu, "watts");
  const segments = gpu.tenants.map((one) => ({ key: keyOf(one), look: look(one).replace(" idle", ""), value: one.watts, tip: tenantTip(one) }));
  const booked = [...segments, ...rest].reduce((sum, one) => sum + (one.value ?? 0), 0);
  // Before anything is booked, the card's own power is unattributed.
  const loose = booked > 0 || !gpu.watts ? [] : [{ look: "rest", value: gpu.watts }];
  return {
    slices: [{ size: 1, total: gpu.wattsLimit || gpu.watts || 1, segments: [...segments, ...rest, ...loose] }],
    label: known(gpu.wattsLimit) ? partOf("power", gpu.watts, gpu.wattsLimit) : watts(gpu.watts),
    about: PERIODS[gpu.period],
    spoken: `Power: ${spoken(gpu, (one) => known(one.watts) && watts(one.watts), rest, watts)}${partOf("power", gpu.watts, gpu.wattsLimit)}`,
  };
}

function spoken(gpu, of, rest, unit) {
  const parts = gpu.tenants.filter((one) => of(one)).map((one) => `${one.id} ${of(one)}${one.isIdle ? ", idle" : ""}`);
  for (const one of rest) parts.push(`${words.reasons[one.reason] ?? "unattributed"} ${unit(one.value)}`);
  return parts.length ? `${parts.join(", ")}; ` : "";
}
