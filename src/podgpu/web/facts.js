// What a card reports about itself, by topic: the lines of the page without scripts, by the same table.

import { known } from "./dom.js";
import { duration, partOf, written } from "./numbers.js";
import { words } from "./words.js";

const { rows, trouble, clock_reasons: now, throttle_reasons: past, clocks, now: held, so_far: soFar } = words.card_facts;

const keyOf = (metric, labels) => [metric, ...labels].join(" ");

/** Readings by their name and the values of their labels. */
export const indexOf = (readings = []) => new Map(readings.map((one) => [keyOf(one.metric, Object.values(one.labels ?? {})), one.value]));

function lineOf({ name, metric, labels = [], quantity, of, about = "" }, index) {
  const value = index.get(keyOf(metric, labels));
  if (!known(value) || (!value && trouble.includes(metric))) return null;
  const most = of ? index.get(keyOf(of, labels)) : undefined;
  return [name, known(most) ? partOf(quantity, value, most) : written(quantity, value), about];
}

function heldBack(index) {
  const found = [];
  const causes = Object.entries(now).filter(([reason]) => index.get(`clock_event ${reason}`)).map(([, words_]) => words_);
  if ([...index.keys()].some((key) => key.startsWith("clock_event "))) found.push([held[0], [...new Set(causes)].join(", ") || "nothing", held[1]]);
  const times = Object.entries(past).filter(([reason]) => index.get(`throttle_seconds_total ${reason}`)).map(([reason, words_]) => `${words_} ${duration(index.get(`throttle_seconds_total ${reason}`))}`);
  if (times.length) found.push([soFar[0], times.join(", "), soFar[1]]);
  return found;
}

/** [[topic, [[name, value, what it means]]]]; what is not reported has no line. */
export function factsOf(readings) {
  const index = indexOf(readings);
  const found = Object.entries(rows).map(([topic, own]) => [topic, [...own.map((row) => lineOf(row, index)).filter(Boolean), ...(topic === clocks ? heldBack(index) : [])]]);
  return found.filter(([, lines]) => lines.length);
}
