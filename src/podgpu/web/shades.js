// What a cell of the fleet can show: busy time, idle time, temperature, teams or money. Each has rows for the table.

import { Colours, pairsOf } from "./colours.js";
import { known } from "./dom.js";
import { age, celsius, gpuNumber, integer, money, percent } from "./numbers.js";

const HOUR = 3600;
const DAY = 24 * HOUR;
const COLD = 30; // degrees of a card without work
const HOT = 90;
const HALF = 0.5;
const MOST = 0.9;

/** The label that groups pods into teams: the one in the address, else `team`, else the first. */
export function labelOf(model, chosen) {
  return chosen && model.labels.includes(chosen) ? chosen : model.labels.includes("team") ? "team" : (model.labels[0] ?? "");
}

const part = (value, least, most) => Math.min(1, Math.max(0, (value - least) / (most - least)));
const wasted = (gpu) => gpu.tenants.reduce((sum, tenant) => sum + (tenant.isIdle ? (tenant.holding.cost_per_hour ?? 0) : 0), 0);

/** Rows of the table: the steps, each with the number of its GPUs. */
function stepped(gpus, of, steps, unknown) {
  const counts = new Array(steps.length).fill(0);
  let left = 0;
  for (const gpu of gpus) {
    const value = of(gpu);
    if (!known(value)) left += 1;
    else counts[Math.max(0, steps.findLastIndex(([least]) => value >= least))] += 1;
  }
  return [...steps.map(([, name], place) => [name, integer(counts[place])]), ...(left ? [[unknown, integer(left)]] : [])];
}

const teamOf = (tenant, label) => tenant.labels?.[label] ?? "";

/** The tenants side by side, each as wide as its share. */
function byTeam(gpu, label, inks) {
  const shares = gpu.tenants.map((tenant) => (tenant.holding ? (tenant.share ?? 1) : 0));
  const total = Math.max(1, shares.reduce((sum, share) => sum + share, 0));
  return gpu.tenants.map((tenant, place) => [shares[place] / total, 1, inks[swatch(teamOf(tenant, label))]]);
}

/** What each team holds, in whole cards, and how many shares of unknown size besides. */
function heldBy(gpus, label) {
  const held = new Map();
  for (const gpu of gpus) {
    for (const tenant of gpu.tenants.filter(({ holding }) => holding)) {
      const team = teamOf(tenant, label);
      const { shares = 0, unknown = 0 } = held.get(team) ?? {};
      held.set(team, known(tenant.share) ? { shares: shares + tenant.share, unknown } : { shares, unknown: unknown + 1 });
    }
  }
  return held;
}

/** Teams that share a card. */
const besideOf = (gpus, label) => [...new Set(gpus.flatMap(({ tenants }) => (tenants.length > 1 ? pairsOf(tenants.map((tenant) => teamOf(tenant, label))) : [])))];

const teams = new Colours();
const swatch = (team) => teams.given.get(team) ?? "cx";

/** `prepare` looks at all GPUs once, `parts` says how to fill a cell, `rows` returns those of the table. */
export const SHADES = {
  "": {
    name: "busy time",
    parts: (gpu, { inks }) => (known(gpu.busy) ? [[1, gpu.busy, inks.accent]] : []),
    rows: (gpus) => stepped(gpus.filter((gpu) => gpu.isUp), (gpu) => gpu.busy, [[0, `below ${percent(HALF)} busy`], [HALF, `${percent(HALF)} busy or more`], [MOST, `${percent(MOST)} busy or more`]], "busy time not known"),
  },
  idle: {
    name: "idle time",
    parts: (gpu, { inks }) => (known(gpu.idleFor) ? [[1, 0.25 + 0.75 * part(Math.log(gpu.idleFor + 1), Math.log(HOUR), Math.log(7 * DAY)), inks.warn]] : []),
    rows: (gpus) => stepped(gpus.filter((gpu) => gpu.tenants.length), (gpu) => gpu.idleFor ?? -1, [[-1, "in use, or not known"], [0, `idle for less than ${age(HOUR)}`], [HOUR, `idle for ${age(HOUR)} or more`], [DAY, `idle for ${age(DAY)} or more`]], ""),
  },
  heat: {
    name: "temperature",
    parts: (gpu, { inks }) => (known(gpu.celsius) ? [[1, part(gpu.celsius, COLD, HOT), gpu.celsius >= 80 ? inks.bad : inks.warn]] : []),
    rows: (gpus) => stepped(gpus.filter((gpu) => gpu.isUp), (gpu) => gpu.celsius, [[-Infinity, `below ${celsius(60)}`], [60, `${celsius(60)} or more`], [80, `${celsius(80)} or more`]], "not known"),
  },
  team: {
    name: "team",
    isThere: (model) => model.labels.length > 0,
    prepare: (model, { label }) => teams.learn(heldBy(model.gpus, label).keys(), besideOf(model.gpus, label)),
    parts: (gpu, { label, inks }) => byTeam(gpu, label, inks),
    swatch,
    rows: (gpus, { label }) => [...heldBy(gpus, label)].sort(([, a], [, b]) => b.shares - a.shares).map(([name, { shares, unknown }]) => [name || `without ${label}`, `${unknown ? "at least " : ""}${gpuNumber(shares)}`, name]),
  },
  money: {
    name: "money not used",
    isThere: (model) => Boolean(model.insight.currency),
    prepare: (model) => (model.mostWasted = Math.max(0.01, ...model.nodes.map((node) => Math.max(0, ...node.gpus.map(wasted))))),
    parts: (gpu, { model, inks }) => (wasted(gpu) ? [[1, 0.15 + 0.85 * (wasted(gpu) / model.mostWasted), inks.bad]] : []),
    rows: (gpus, { model }) => [["not used, an hour", money(model.insight.sums.unused_cost_per_hour, model.insight.currency)]],
  },
};
