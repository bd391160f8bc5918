// What the groups of a bill had day by day: a small chart, and the same as a table.

import { h, known, svg } from "./dom.js";
import { bare, column } from "./numbers.js";

const HEIGHT = 64;
const WIDE = 10;

/** A bar for each day, as high as its cost or, without prices, its hours; what was wasted of it is its upper, pale part. */
export function trend({ periods = [], currency, currency_decimals: decimals = 2 }) {
  if (periods.length < 2) return null;
  const isMoney = Boolean(currency) && periods.every((period) => known(period.cost));
  const [whole, wasted] = isMoney ? ["cost", "wasted_cost"] : ["gpu_hours", "wasted_hours"];
  const money = (value) => bare(decimals === 2 ? "money" : `money ${decimals}`, value);
  const most = Math.max(...periods.map((period) => period[whole] ?? 0));
  const hours = (name) => (period) => column("gpu hours", period[name], Math.max(...periods.map((each) => each.gpu_hours ?? 0)));
  const spent = (name) => (period) => money(period[name]);
  const columns = [
    ["Held", "GPU-hours", hours("gpu_hours")],
    ["Used", "GPU-hours", hours("busy_hours")],
    ["Wasted", "GPU-hours", hours("wasted_hours")],
    ...(isMoney ? [["Wasted", currency, spent("wasted_cost")], ["Cost", currency, spent("cost")]] : []),
  ];
  const unit = isMoney ? currency : "GPU-hours";
  const text = isMoney ? money : (value) => bare("gpu hours", value);
  return h(
    "figure",
    { class: "trend" },
    h("figcaption", {}, h("b", {}, `Day by day, ${unit}`), h("span", { class: "dim" }, ` at most ${text(most)}; the pale part was held and not used`)),
    drawing(periods, whole, wasted, most, `${unit} of each day. The table below has the numbers.`),
    h("div", { class: "span dim" }, h("span", {}, periods[0].name), h("span", {}, periods.at(-1).name)),
    h("details", {}, h("summary", {}, "As a table"), tableOf(periods, columns)),
  );
}

function tableOf(periods, columns) {
  const heads = columns.map(([name, unit]) => h("th", { scope: "col" }, name, " ", h("small", {}, unit)));
  const line = (period) => h("tr", {}, h("th", { scope: "row" }, period.name), ...columns.map(([, , write]) => h("td", {}, write(period))));
  const table = h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Day, UTC"), ...heads)), h("tbody", {}, ...periods.map(line)));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Day by day" }, table);
}

function drawing(periods, whole, wasted, most, name) {
  const viewBox = `0 0 ${periods.length * WIDE} ${HEIGHT}`;
  const made = svg("svg", { viewBox, preserveAspectRatio: "none", role: "img", "aria-label": name, class: "c0" });
  periods.forEach((period, place) => {
    const high = (value) => ((value ?? 0) / (most || 1)) * (HEIGHT - 2);
    const [all, top] = [high(period[whole]), Math.min(high(period[wasted]), high(period[whole]))];
    const bar = (look, y, height) => height > 0 && made.append(svg("rect", { class: look, x: place * WIDE + 1, width: WIDE - 2, y, height }));
    bar("used", HEIGHT - all + top, all - top);
    bar("wasted", HEIGHT - all, top);
  });
  return made;
}
