// Who was at work on a shared card, moment by moment in the last full minute, and what switching between them costs.

import { h, known, svg, write } from "./dom.js";
import { podId } from "./model.js";
import { duration, integer, percent, second } from "./numbers.js";
import { words } from "./words.js";

const HEIGHT = 30;

const sum = (columns) => columns.reduce((total, column) => total + column, 0);

/** The columns as one path. What the log does not cover is left out. */
function shape(columns, { seen_us: seen, step_us: step }) {
  const top = (column) => Math.round(10 * (HEIGHT - HEIGHT * Math.min(1, columns[column] / step))) / 10;
  return columns.map((_, at) => (seen[at] ? `M${at} ${HEIGHT}V${top(at)}H${at + 1}V${HEIGHT}Z` : "")).join("");
}

const unseen = ({ seen_us: seen }) => seen.map((part, at) => (part ? "" : `M${at} 0H${at + 1}V${HEIGHT}H${at}Z`)).join("");

function drawing(columns, lanes, look) {
  const made = svg("svg", { viewBox: `0 0 ${columns.length} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true", class: look });
  made.append(svg("path", { d: shape(columns, lanes), class: "busy" }), svg("path", { d: unseen(lanes), class: "unseen" }));
  return made;
}

/** A row for each lane, and one for switching: its name, how that is shown, columns, part of the minute, and look. */
function rowsOf(lanes, colours, link) {
  const tenants = lanes.lanes.map(({ container, reason, busy_us: columns }) => {
    const name = container ? podId(container) : words.reasons[reason] ?? reason;
    const shown = container?.pod ? h("a", { href: link({ gpu: "", pod: name }) }, name) : name;
    return { name, shown, columns, part: sum(columns) / lanes.elapsed_us, look: container ? colours.of(container) : "cx" };
  });
  const name = "Switching between them";
  const switching = lanes.switching_us;
  return [...tenants, { name, shown: name, columns: switching, part: lanes.logged_us ? sum(switching) / lanes.logged_us : undefined, look: "switching" }];
}

/** Make the table of the server's `lanes`; null without a log of context switches. `pointer` keeps the column that is pointed at. */
export function laneTable(lanes, { colours, link, pointer }) {
  if (!lanes) return null;
  const rows = rowsOf(lanes, colours, link);
  const count = lanes.seen_us.length;
  const began = lanes.ended_at - (count * lanes.step_us) / 1e6;
  // While the pointer is over the lanes, the numbers are those of its time.
  const isPointed = () => lanes.seen_us[pointer.column] > 0;
  const valueOf = (row) => percent(isPointed() ? row.columns[pointer.column] / lanes.step_us : row.part);
  const when = () => (isPointed() ? `At ${second(began + (pointer.column * lanes.step_us) / 1e6)}.` : "");
  const point = ({ currentTarget, clientX }) => {
    const { left, width } = currentTarget.querySelector("svg").getBoundingClientRect();
    pointer.column = Math.floor(((clientX - left) / width) * count);
    currentTarget.querySelectorAll("td.value").forEach((cell, place) => write(cell, valueOf(rows[place])));
    write(currentTarget.closest("section").querySelector(".when"), when());
  };
  const leave = ({ currentTarget }) => point({ currentTarget, clientX: -1 });
  const cost = rows.at(-1).part;
  const rate = lanes.logged_us ? (lanes.switches * 1e6) / lanes.logged_us : undefined;
  const span = lanes.is_whole ? "the last full minute" : `the first ${duration(lanes.elapsed_us / 1e6)}: a full minute is not over yet`;
  return h(
    "section",
    { class: "box lanes" },
    h("h3", {}, `Who was at work, in ${span}`),
    h("p", { class: "dim pad" }, known(rate) ? `${integer(Math.round(rate))} context switches a second took ${percent(cost)} of the time. ` : "", "Each lane is as high as the part of the time that was booked, every ", duration(lanes.step_us / 1e6), ", by the driver's log of context switches. ", h("span", { class: "when" }, when())),
    h(
      "table",
      { onpointermove: point, onpointerleave: leave },
      h("colgroup", {}, h("col", { class: "who" }), h("col"), h("col", { class: "part" })),
      h("thead", { class: "spoken" }, h("tr", {}, ...["Whose", "Over the minute", "Part of the minute"].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, ...rows.map((row) => h("tr", { "data-key": row.name }, h("th", { scope: "row" }, h("i", { class: `dot ${row.look}`, "aria-hidden": "true" }), " ", row.shown), h("td", { class: "lane" }, drawing(row.columns, lanes, row.look), h("span", { class: "spoken" }, spokenOf(row, lanes))), h("td", { class: "value" }, valueOf(row))))),
    ),
    h("div", { class: "span dim", "aria-hidden": "true" }, h("span", {}, second(began)), h("span", {}, second(lanes.ended_at))),
  );
}

/** How much it worked, for those who cannot see the lanes. */
function spokenOf({ columns }, { seen_us: seen, step_us: step }) {
  const parts = columns.filter((_, at) => seen[at]).map((column) => column / step);
  if (!parts.length) return "nothing was seen";
  return `from ${percent(Math.min(...parts))} to ${percent(Math.min(1, Math.max(...parts)))}, at work in ${percent(parts.filter((part) => part >= 0.005).length / parts.length)} of the columns`;
}
