// The last hour of a pod or a GPU, as the server keeps it: its times, the XIDs in it, and what it leaves out.

import { h } from "./dom.js";
import { duration, moment } from "./numbers.js";

const LEAST_GAP = 60; // seconds without a value, from which on a line is broken
const LEAST_MS = 5000; // between two questions

/** Seconds between two moments: no more are kept than are read. */
const stepOf = ({ moment_seconds: step = 0 }, { interval }) => Math.max(step, interval);

/** What all charts of an answer share. `cursor` is the moment that the page shows, or 0 for the present. */
export function frameOf(answer, model, cursor) {
  const { kept, xids = [] } = answer;
  return { span: kept?.to > kept?.from ? [kept.from, kept.to] : undefined, gap: Math.max(LEAST_GAP, 3 * stepOf(answer, model)), xids, cursor };
}

/** How often it is asked for. */
export const refreshMs = (model) => Math.max(LEAST_MS, model.interval * 1000);

/** The heading above the charts: since when there are moments, how often, and where there are more. */
export function hourHeading(answer, model, ...more) {
  const { kept, note } = answer ?? {};
  const since = kept?.from ? `A moment every ${duration(stepOf(answer, model))}, since ${moment(kept.from)}.` : "";
  return h("div", { class: "over" }, h("h3", {}, "The last hour"), h("span", { class: "dim" }, [since, note].filter(Boolean).join(" ")), ...more);
}
