// What a card reports about itself, by topic: the same lines as on the page without scripts, by the same table.

import { known } from "./dom.js";
import { duration, partOf, written } from "./numbers.js";
import { words } from "./words.js";

const { rows, trouble, clock_reasons: clockReasons, throttle_reasons: throttleReasons, clocks, now, so_far: soFar } = words.card_facts;

const keyOf = (metric, labels) => [metric, ...labels].join(" ");

/** Readings by their name and the values of their labels. */
export const indexOf = (readings = []) => new Map(readings.map((reading) => [keyOf(reading.metric, Object.values(reading.labels ?? {})), reading.value]));

function lineOf({ name, metric, labels = [], quantity, of, about = "" }, index) {
  const value = index.get(keyOf(metric, labels));
  if (!known(value) || (!value && trouble.includes(metric))) return null;
  const most = of ? index.get(keyOf(of, labels)) : undefined;
  return [name, known(most) ? partOf(quantity, value, most) : written(quantity, value), about];
}

function throttling(index) {
  const lines = [];
  const isSet = (metric) => ([reason]) => index.get(`${metric} ${reason}`);
  const causes = Object.entries(clockReasons).filter(isSet("clock_event")).map(([, cause]) => cause);
  if ([...index.keys()].some((key) => key.startsWith("clock_event "))) lines.push([now[0], [...new Set(causes)].join(", ") || "nothing", now[1]]);
  const times = Object.entries(throttleReasons).filter(isSet("throttle_seconds_total")).map(([reason, cause]) => `${cause} ${duration(index.get(`throttle_seconds_total ${reason}`))}`);
  if (times.length) lines.push([soFar[0], times.join(", "), soFar[1]]);
  return lines;
}

/** [topic, lines of [name, value, what it means]] for each topic. What is not reported has no line. */
export function factsOf(readings) {
  const index = indexOf(readings);
  const topics = Object.entries(rows).map(([topic, ofTopic]) => [topic, [...ofTopic.map((row) => lineOf(row, index)).filter(Boolean), ...(topic === clocks ? throttling(index) : [])]]);
  return topics.filter(([, lines]) => lines.length);
}
