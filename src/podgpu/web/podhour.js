// The charts of a pod: its last hour, which the server keeps, or a day or a week, which are in the store.

import { PERIODS } from "./address.js";
import { chart } from "./chart.js";
import { h } from "./dom.js";
import { frameOf, hourHeading, refreshMs } from "./hour.js";
import { gpus as gpuCount, memory, watts } from "./numbers.js";

const STORED_MS = 30_000;
const LONG_GAP = 600;

/** The tops of the charts: what it was given, and the memory it may use. */
function topsOf(places) {
  const sum = (of) => places.reduce((total, place) => total + (of(place) ?? 0), 0);
  const memoryOf = ({ gpu, tenant }) => tenant.memoryLimit ?? (gpu.slices.find(({ uuid }) => uuid === tenant.mig) ?? gpu).memoryTotal;
  return { busy: sum(({ tenant }) => tenant.share), memory: sum(memoryOf) };
}

function charts(answer, frame, places, look) {
  if (!answer) return h("p", { class: "box pad" }, "Waiting for the server.");
  if (answer.error) return h("p", { class: "box pad" }, `There are no charts: ${answer.error}.`);
  const tops = topsOf(places);
  return h(
    "div",
    { class: "charts" },
    chart("Busy", answer.busy, { top: tops.busy, write: gpuCount, look, frame }),
    chart("Memory", answer.memory, { top: tops.memory, write: memory, look, frame }),
    chart("Power", answer.watts, { top: 0, write: watts, look, frame }),
  );
}

/** The choice between the last hour and longer periods, which are in the store. */
function periods(chosen, link) {
  const choice = ([period, [name]]) => h("a", { href: link(period), "aria-current": period === chosen ? "page" : null }, name);
  return h("nav", { "aria-label": "Period" }, ...Object.entries(PERIODS).map(choice));
}

/** The heading and the charts. `hour` and `past` ask the server and the store; `linkPeriod` is null without a store. */
export function podHour(id, places, { model, hour, past, period, linkPeriod, look, cursor }) {
  const name = encodeURIComponent(id);
  const choice = linkPeriod ? periods(period, linkPeriod) : null;
  if (period && linkPeriod) {
    const stored = past.of(`api/v1/history?pod=${name}&hours=${PERIODS[period][1]}`, STORED_MS);
    const gap = stored?.busy && ((stored.busy[1]?.[0] - stored.busy[0]?.[0]) * 3 || LONG_GAP);
    return [h("div", { class: "over" }, h("h3", {}, "From the store"), choice), charts(stored, { gap, cursor }, places, look)];
  }
  const kept = hour.of(`api/v1/history?pod=${name}`, refreshMs(model));
  return [hourHeading(kept, model, choice), charts(kept, frameOf(kept ?? {}, model, cursor), places, look)];
}
