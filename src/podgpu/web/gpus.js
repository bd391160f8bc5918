// The view by node and GPU: each GPU with its memory, its busy time and its power.

import { Bar } from "./bar.js";
import { h, known, renew, shortModel, write, writeWhole } from "./dom.js";
import { BUSY, countBy, freeWord } from "./model.js";
import { age, celsius, count, gpuNumber, gpus as gpuCount, integer, memory, partOf, percent, use, watts, written } from "./numbers.js";
import { listed, shortName, widthOf, writeShort } from "./room.js";
import { words } from "./words.js";

const NARROW = "screen and (max-width: 768px)"; // the same as in app.css
const NAMED = 4; // tenants whose part of the busy time is written out
const WIDE = 1400; // pixels of a list that has room to spare
const TITLE = 64; // pixels of a bar's title, which is before its label on a phone
const TAG = { font: "500 11px", edge: 15, sign: 12, line: 18 }; // the same as in app.css, in pixels
const SORT = {
  busy: (a, b) => (b.busy ?? -1) - (a.busy ?? -1),
  memory: (a, b) => (b.memoryUsed ?? -1) - (a.memoryUsed ?? -1),
  power: (a, b) => (b.watts ?? -1) - (a.watts ?? -1),
  heat: (a, b) => (b.celsius ?? -1) - (a.celsius ?? -1),
  idle: (a, b) => (b.idleFor ?? -1) - (a.idleFor ?? -1),
};
const PERIODS = { minute: "in the last full minute", reading: "since the previous reading" };

/** The heads of the columns. The numbers of a card are all of one period, on most cards of the same. */
export function headsOf([first, other]) {
  const busy = other ? `Busy ${PERIODS.reading}, or ${PERIODS.minute}` : `Busy ${PERIODS[first] ?? ""}`;
  return ["GPU", "Memory", busy, "Power in the same time"];
}

/** The widths of columns and bars, and the heights of rows, in whole pixels, for a list of that width. */
export function measure(width) {
  const whole = width - 28;
  if (matchMedia(NARROW).matches) {
    const columns = { who: whole, memory: whole, busy: whole, power: whole, label: whole - TITLE, name: whole, work: Math.floor((whole - 12) / 2) };
    return { isNarrow: true, whole, ...columns, row: 186, head: 54, lost: 72 };
  }
  const [who, name] = width >= WIDE ? [190, 360] : width >= WIDE - 200 ? [170, 310] : [150, 270];
  const room = whole - who - 3 * 20;
  const memory = Math.floor(room * 0.4);
  const busy = Math.floor(room * 0.36);
  const work = Math.floor((whole - name - 90 - 80 - 4 * 18) / 2);
  return { isNarrow: false, whole, who, memory, busy, power: room - memory - busy, name, work, row: 50, head: 36, lost: 50 };
}

export function itemsOf({ gpus, sort, sizes }) {
  const height = (gpu) => (gpu.isUp && !gpu.isDark ? sizes.row : sizes.lost) + TAG.line * moreLines(gpu, sizes, Boolean(sort));
  if (sort) {
    return [...gpus].sort(SORT[sort]).map((gpu) => ({ kind: "gpu", key: gpu.key, height: height(gpu), gpu, isAlone: true }));
  }
  const items = [];
  let head = null;
  for (const gpu of gpus) {
    if (gpu.node !== head?.node) {
      head = { kind: "node", key: gpu.node.name, height: sizes.head, node: gpu.node, gpus: [], sizes };
      items.push(head);
    }
    head.gpus.push(gpu);
    items.push({ kind: "gpu", key: gpu.key, height: height(gpu), gpu });
  }
  return items;
}

const NODE_FONT = "650 14px";
const NODE_PART = 0.6; // of the line, for its name

/** The line of a node: what it has, and what is wrong with it. */
export function nodeRow() {
  const name = h("h2");
  const about = h("span", { class: "dim" });
  const tag = h("span", { class: "tag" });
  const element = h("div", { class: "node" }, name, tag, about);
  return {
    element,
    update({ node, gpus, sizes: { whole: room, isNarrow } }) {
      const short = writeShort(name, node.name, room * NODE_PART, NODE_FONT);
      const { gpus: all, busy_gpus: busy, lost_gpus: lost, guest_gpus: guests, unused_pods: idle } = node.sums ?? {};
      const models = countBy(gpus.filter((gpu) => !gpu.isUnknown), (gpu) => gpu.model).map(([model, count]) => `${integer(count)} × ${shortModel(model)}`);
      const use = [known(busy) && `${gpuNumber(busy)} of ${gpuCount(all)} busy`, idle && count(idle, "idle pod"), guests && `${integer(guests)} given to VMs`];
      const facts = [models.join(", "), ...use, !isNarrow && node.driver && `driver ${node.driver}`].filter(Boolean);
      const [look, word] = lost ? ["bad", `${integer(lost)} lost`] : node.isDark ? ["bad", darkWord(node)] : node.state === "fresh" ? ["", ""] : ["warn", node.state === "allocation" ? "allocation only" : node.state];
      tag.className = `tag ${look}`;
      tag.hidden = !word;
      write(tag, word);
      const taken = isNarrow ? 0 : widthOf(short, NODE_FONT) + 10 + (word ? tagWidth([look, word]) + 10 : 0);
      write(about, facts.length ? listed(facts, room - taken, "12px") : "");
      about.title = facts.join(" · ");
    },
  };
}

const NUMBER_FONT = "650 15px";

/** A tenant has the colour of its namespace; an idle one is only an outline. */
const lookOf = (tenant, colours) => `${colours.of(tenant)}${tenant.isIdle ? " idle" : ""}`;

/** Make rows of GPUs. `at()` returns the current sizes, `link(id)` the address of a pod, `linkGpu(uuid)` that of a card. Tenants that the filter does not fit are dimmed. */
export function gpuRows({ colours, at, link, linkGpu, fits }) {
  return () => {
    const title = h("b", { "aria-hidden": "true" });
    const open = h("a", { class: "number" }, title);
    const tags = h("span", { class: "tags" });
    const heat = h("small", { class: "dim" });
    const bars = { memory: new Bar("memory", "Memory"), busy: new Bar("busy", "Busy"), power: new Bar("power", "Power") };
    const notice = h("div", { class: "notice" });
    const element = h("div", { class: "gpu" }, h("div", { class: "who" }, open, heat, tags), ...Object.values(bars).map((bar) => bar.element), notice);
    return {
      element,
      update({ gpu, isAlone }) {
        if (gpu.isUnknown) open.removeAttribute("href");
        else open.href = linkGpu(gpu.uuid);
        open.dataset.tip = [`GPU ${gpu.number} of ${gpu.node.name}`, shortModel(gpu.model), ...gpu.tenants.map(tenantTip)].join("\n");
        const sizes = at();
        const first = `${gpu.number} · `;
        write(title, isAlone ? `${first}${shortName(gpu.node.name, sizes.who - widthOf(first, NUMBER_FONT), NUMBER_FONT)}` : gpu.number);
        const name = isAlone ? `GPU ${gpu.number} · ${gpu.node.name}` : `GPU ${gpu.number}`;
        if (open.getAttribute("aria-label") !== name) open.setAttribute("aria-label", name);
        drawTags(tags, gpu);
        element.classList.toggle("alone", Boolean(isAlone));
        write(heat, known(gpu.celsius) ? celsius(gpu.celsius) : "");
        const isLost = !gpu.isUp || gpu.isDark;
        element.classList.toggle("lost", isLost);
        element.classList.toggle("old", gpu.node.state !== "fresh" && !gpu.isDark);
        notice.hidden = !isLost;
        for (const bar of Object.values(bars)) bar.element.hidden = isLost;
        if (isLost) {
          writeWhole(notice, gpu.isDark ? darkText(gpu) : lostText(gpu));
          return;
        }
        const look = (tenant) => `${lookOf(tenant, colours)}${fits(tenant) ? "" : " dimmed"}`;
        bars.memory.draw(memoryBar(gpu, look, link), sizes.memory, sizes.label);
        bars.busy.draw(busyBar(gpu, look), sizes.busy, sizes.label);
        bars.power.draw(powerBar(gpu, look), sizes.power, sizes.label);
      },
    };
  };
}

/** How long a node has been dark, by the clock of who reads it. */
const darkWord = ({ heardAt, shownAt }) => (known(heardAt) ? `dark ${age(Math.max(0, shownAt - heardAt))}` : "dark");

/** What was last heard of a card on a dark node. */
export function darkText(gpu) {
  if (gpu.isUnknown) return `${darkWord(gpu.node)} · nothing is known of its GPUs · ${gpu.node.row.detail}`;
  const was = gpu.tenants.map((tenant) => tenant.id).join(", ");
  return `${darkWord(gpu.node)} · ${gpu.node.reason.replaceAll("_", " ")} · last ${was ? `held by ${was}` : "held by nobody"}${gpu.fault ? `, ${gpu.fault.reason.replaceAll("_", " ")}` : ""}`;
}

export function lostText(gpu) {
  const was = gpu.tenants.map((tenant) => tenant.id).join(", ");
  return `${gpu.fault.reason.replaceAll("_", " ")}${gpu.fault.detail ? `: ${gpu.fault.detail}` : ""}${was ? ` · held by ${was}` : ""}`;
}

/** How grave what is wrong with the card is. */
export function tagLook(gpu) {
  if (!gpu.isUp || gpu.isDark || gpu.severity === "critical") return "bad";
  return gpu.severity === "info" ? "" : "warn";
}

/** How long the card is idle, or how many of those who hold it are. */
function idleWords(gpu) {
  return known(gpu.idleFor) ? `idle ${age(gpu.idleFor)}` : `${integer(gpu.idleTenants)} of ${integer(gpu.tenants.length)} idle`;
}

/** [look, word] of each tag. */
function tagsOf(gpu) {
  const holders = gpu.tenants.filter((tenant) => tenant.holding).length;
  const look = tagLook(gpu);
  return [
    ...gpu.problems.map((title) => [look, title === "Idle" ? idleWords(gpu) : title]),
    gpu.isMig && ["", "MIG"],
    !gpu.isMig && holders > 1 && ["", `× ${holders}`],
  ].filter(Boolean);
}

const tagWidth = ([look, word]) => widthOf(word, TAG.font) + TAG.edge + (look ? TAG.sign : 0);

const measured = new WeakMap(); // lines of each card's tags: all rows are asked for with each change, and few cards have changed

/** How many lines its tags need besides the first. Most cards have one tag at most. */
function moreLines(gpu, { who, isNarrow }, isAlone) {
  if (gpu.problems.length + Number(gpu.isMig || gpu.tenants.length > 1) < 2) return 0;
  const before = measured.get(gpu);
  if (before?.who === who && before.isAlone === isAlone) return before.lines;
  const lines = linesOf(tagsOf(gpu).map(tagWidth), who, who - (isNarrow ? BESIDE : isAlone ? BESIDE / 2 : 0));
  measured.set(gpu, { who, isAlone, lines });
  return lines;
}

/** Where a tag is wider than the room `beside` the temperature, all are below it. */
function linesOf(widths, who, beside) {
  const isBelow = Math.max(...widths) > beside;
  const most = isBelow ? who : beside;
  let [lines, left] = [Number(isBelow), most];
  for (const width of widths) {
    if (width > left && left < most) [lines, left] = [lines + 1, most];
    left -= width;
  }
  return lines;
}

const BESIDE = 100; // pixels for the number and the temperature, which are beside the tags on a phone; in a sorted list half of it

function drawTags(tags, gpu) {
  const labels = tagsOf(gpu);
  renew(tags, labels, () => labels.map(([look, word]) => h("span", { class: `tag ${look}` }, word)));
  const title = labels.map(([, word]) => word).join(", ");
  if (tags.title !== title) tags.title = title;
}

/** What is booked to no pod, as segments of a bar. */
const restOf = (gpu, name) => gpu.rest.filter((rest) => rest[name] > 0).map((rest) => ({ look: "rest", value: rest[name], reason: rest.reason, tip: restTip(rest) }));

/** All numbers of a tenant on its card. Each of its segments has the same tip. */
function tenantTip(tenant) {
  const parts = [known(tenant.memory) && memory(tenant.memory), known(tenant.busy) && `busy ${use(tenant.busy, tenant.least, tenant.most, tenant.certainty)}`, known(tenant.watts) && watts(tenant.watts), known(tenant.share) && `given ${percent(tenant.share)}`];
  return [tenant.id, ...parts, tenant.isIdle && `idle ${age(tenant.idleFor)}`].filter(Boolean).join(" · ");
}

const restTip = (rest) => [words.reasons[rest.reason] ?? rest.reason, rest.memory > 0 && memory(rest.memory), rest.busy > 0 && `busy ${percent(rest.busy)}`, rest.watts > 0 && watts(rest.watts), words.meanings[rest.reason]].filter(Boolean).join(" · ");

/** The MIG slices and what is left of the card, each with its tenants; null for a card without slices. */
function slicesOf(gpu, part) {
  if (!gpu.slices.length) return null;
  const taken = gpu.slices.reduce((sum, slice) => sum + slice[part], 0);
  const slices = gpu.slices.map((slice) => ({ size: slice[part], slice, tenants: gpu.tenants.filter((tenant) => tenant.mig === slice.uuid) }));
  if (taken < 0.995) slices.push({ size: 1 - taken, slice: null, tenants: gpu.tenants.filter((tenant) => !tenant.mig) });
  return slices;
}

function memoryBar(gpu, look, link) {
  const total = gpu.memoryTotal || gpu.memoryUsed || 1;
  const slices = slicesOf(gpu, "memoryPart");
  const rest = restOf(gpu, "memory");
  const drawn = slices
    ? slices.map(({ size, slice, tenants }, place) => filled(size, slice?.memoryTotal ?? size * total, tenants, place === slices.length - 1 && !slice ? rest : [], look, link))
    : [filled(1, total, gpu.tenants, rest, look, link)];
  const limits = gpu.tenants.filter((tenant) => tenant.holding && known(tenant.memoryLimit));
  return {
    slices: drawn,
    rail: limits.map((tenant) => ({ look: look(tenant), value: tenant.memoryLimit / total, tip: `${tenant.id} may use ${memory(tenant.memoryLimit)}` })),
    label: memoryLabel(gpu),
    spoken: `Memory: ${spoken(gpu, (tenant) => known(tenant.memory) && memory(tenant.memory), rest, memory)}${ofTotal("memory", gpu.memoryUsed, gpu.memoryTotal)} in use`,
  };
}

/** Tenants and the rest, by memory. A holder of unknown memory gets the room it was given, as far as there is any: an outline, not a number. */
function filled(size, total, tenants, rest, look, link) {
  const unseen = tenants.filter((tenant) => tenant.holding && !known(tenant.memory));
  const used = [...tenants, ...rest].reduce((sum, part) => sum + (part.memory ?? part.value ?? 0), 0);
  const asked = unseen.reduce((sum, tenant) => sum + (tenant.share || 1), 0);
  const room = Math.min(Math.max(0, total - used), (total * Math.min(asked, size)) / size);
  const segments = tenants.map((tenant) => ({
    key: keyOf(tenant),
    look: `${look(tenant)}${unseen.includes(tenant) ? " unseen" : ""}`,
    value: unseen.includes(tenant) ? (room * (tenant.share || 1)) / asked : tenant.memory,
    name: tenant.pod,
    link: link(tenant.id),
    tip: tenantTip(tenant),
    spoken: `${tenant.id}, ${known(tenant.memory) ? memory(tenant.memory) : "memory not known"}${tenant.isIdle ? ", idle" : ""}`,
  }));
  return { size, total, segments: [...segments, ...rest] };
}

const keyOf = ({ id, container, mig }) => `${id} ${container} ${mig}`;

/** `72 of 80 GiB`, or without the total if that is not known. */
const ofTotal = (quantity, part, total) => (known(total) ? partOf(quantity, part, total) : written(quantity, part));

function memoryLabel(gpu) {
  const used = known(gpu.memoryUsed) ? ofTotal("memory", gpu.memoryUsed, gpu.memoryTotal) : "not known";
  if (!gpu.tenants.length) return [used, gpu.rest.some((rest) => rest.memory > 2 ** 28) ? "no pod" : freeWord(gpu)];
  const systems = [...new Set(gpu.tenants.map((tenant) => tenant.system).filter(Boolean))].join(", ");
  const unseen = gpu.tenants.filter((tenant) => !known(tenant.memory)).length;
  const profiles = countBy(gpu.slices, (slice) => slice.profile).map(([profile, number]) => (number > 1 ? `${integer(number)} × ${profile}` : profile));
  return [used, unseen && `${integer(unseen)} with unknown memory`, gpu.slices.length ? profiles.join(", ") : systems].filter(Boolean);
}

function busyBar(gpu, look) {
  const rest = restOf(gpu, "busy");
  const slices = slicesOf(gpu, "timePart");
  const segment = (tenant) => ({ key: keyOf(tenant), look: look(tenant), value: tenant.busy, tip: tenantTip(tenant) });
  const drawn = slices
    ? slices.map(({ size, tenants }) => ({ size, total: size, segments: tenants.map(segment) }))
    : [{ size: 1, total: 1, segments: [...gpu.tenants.map(segment), ...rest] }];
  const shared = gpu.tenants.filter((tenant) => tenant.holding && (known(tenant.coreLimit) || tenant.share < 1));
  return {
    slices: drawn,
    whiskers: slices ? [] : whiskersOf(gpu.tenants),
    rail: slices ? [] : shared.map((tenant) => ({ look: look(tenant), value: tenant.coreLimit ?? tenant.share, tip: `${tenant.id} was given ${percent(tenant.coreLimit ?? tenant.share)}` })),
    label: busyLabel(gpu, rest),
    about: PERIODS[gpu.period],
    spoken: `Busy ${PERIODS[gpu.period] ?? ""}: ${spoken(gpu, (tenant) => known(tenant.busy) && use(tenant.busy, tenant.least, tenant.most, tenant.certainty), rest, percent)}${percent(gpu.busy)} in all`,
  };
}

/** The range of each tenant, from where its segment begins. */
function whiskersOf(tenants) {
  const whiskers = [];
  let start = 0;
  for (const tenant of tenants) {
    if (known(tenant.least)) whiskers.push({ from: start + tenant.least, to: start + tenant.most });
    start += tenant.busy ?? 0;
  }
  return whiskers;
}

function busyLabel(gpu, rest) {
  const parts = [percent(gpu.busy)];
  const active = gpu.tenants.filter((tenant) => tenant.busy >= BUSY);
  if (gpu.slices.length) {
    const inside = gpu.slices.filter((slice) => known(slice.active)).map((slice) => percent(slice.active));
    if (inside.length) parts.push(`slices ${inside.join(", ")}`);
  } else if (active.length > 1 || active.some((tenant) => known(tenant.least))) {
    parts.push(...active.slice(0, NAMED).map((tenant) => [tenant.pod, use(tenant.busy, tenant.least, tenant.most, tenant.certainty)]));
  }
  const unattributed = rest.reduce((sum, part) => sum + part.value, 0);
  if (unattributed >= BUSY) parts.push(`unattributed ${percent(unattributed)}`);
  return parts;
}

function powerBar(gpu, look) {
  const rest = restOf(gpu, "watts");
  const segments = gpu.tenants.map((tenant) => ({ key: keyOf(tenant), look: look(tenant).replace(" idle", ""), value: tenant.watts, tip: tenantTip(tenant) }));
  const booked = [...segments, ...rest].reduce((sum, segment) => sum + (segment.value ?? 0), 0);
  // Before anything is booked, the card's own power is unattributed.
  const loose = booked > 0 || !gpu.watts ? [] : [{ look: "rest", value: gpu.watts }];
  return {
    slices: [{ size: 1, total: gpu.wattsLimit || gpu.watts || 1, segments: [...segments, ...rest, ...loose] }],
    label: [ofTotal("power", gpu.watts, gpu.wattsLimit)],
    about: PERIODS[gpu.period],
    spoken: `Power: ${spoken(gpu, (tenant) => known(tenant.watts) && watts(tenant.watts), rest, watts)}${ofTotal("power", gpu.watts, gpu.wattsLimit)}`,
  };
}

function spoken(gpu, of, rest, unit) {
  const parts = gpu.tenants.filter((tenant) => of(tenant)).map((tenant) => `${tenant.id} ${of(tenant)}${tenant.isIdle ? ", idle" : ""}`);
  for (const part of rest) parts.push(`${words.reasons[part.reason] ?? "unattributed"} ${unit(part.value)}`);
  return parts.length ? `${parts.join(", ")}; ` : "";
}
