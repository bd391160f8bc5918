// Lines over time, as SVG.

import { h, svg } from "./dom.js";
import { moment } from "./numbers.js";

const round = (value) => Math.round(value * 10) / 10;

/** Break a series into runs without gaps. */
function runs(points, gap) {
  const found = [];
  let last = null;
  for (const point of points) {
    if (Number.isNaN(point[1])) {
      last = null;
      continue;
    }
    if (!last || point[0] - last[0] > gap) found.push([]);
    found.at(-1).push(point);
    last = point;
  }
  return found;
}

function path(points, [from, to], top, width, height) {
  const x = (at) => round(((at - from) / (to - from || 1)) * width);
  const y = (value) => round(height - (Math.min(value, top) / (top || 1)) * height);
  return points.map(([at, value], place) => `${place ? "L" : "M"}${x(at)} ${y(value)}`).join("");
}

/** A small line without axes. */
export function spark(points, top) {
  const seen = points.filter(([, value]) => !Number.isNaN(value));
  const drawing = svg("svg", { class: "spark", viewBox: "0 0 100 24", preserveAspectRatio: "none", "aria-hidden": "true" });
  if (seen.length > 1) {
    const most = top || Math.max(...seen.map(([, value]) => value)) * 1.15;
    for (const run of runs(seen, 60)) {
      drawing.append(svg("path", { d: path(run, [seen[0][0], seen.at(-1)[0]], most, 100, 23) }));
    }
  }
  return drawing;
}

const WIDTH = 560;
const HEIGHT = 110;

/** A chart with its scale. `write` formats a value. */
export function chart(title, points, { top, write, gap = 60, look = "c0" }) {
  const seen = points.filter(([, value]) => !Number.isNaN(value));
  if (seen.length < 2) return h("figure", { class: "chart" }, h("figcaption", {}, title), h("p", { class: "dim" }, "There are not enough values yet."));
  const most = Math.max(top || 0, Math.max(...seen.map(([, value]) => value)) * 1.05) || 1;
  const span = [seen[0][0], seen.at(-1)[0]];
  const values = seen.map(([, value]) => value);
  const spoken = `${title}: now ${write(values.at(-1))}, least ${write(Math.min(...values))}, most ${write(Math.max(...values))}`;
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": spoken, class: look });
  for (const part of [0, 0.5, 1]) drawing.append(svg("line", { x1: 0, x2: WIDTH, y1: HEIGHT * part, y2: HEIGHT * part, class: "grid" }));
  for (const run of runs(seen, gap)) {
    const line = path(run, span, most, WIDTH, HEIGHT);
    drawing.append(svg("path", { d: `${line}L${round(((run.at(-1)[0] - span[0]) / (span[1] - span[0] || 1)) * WIDTH)} ${HEIGHT}L${line.slice(1).split(" ")[0]} ${HEIGHT}Z`, class: "area" }));
    drawing.append(svg("path", { d: line, class: "line" }));
  }
  const value = h("b", {}, write(values.at(-1)));
  // While the pointer is over the chart, the number is that of its time.
  const pointed = ({ currentTarget, offsetX }) => {
    const at = span[0] + (offsetX / (currentTarget.clientWidth || 1)) * (span[1] - span[0]);
    const [time, number] = seen.reduce((best, point) => (Math.abs(point[0] - at) < Math.abs(best[0] - at) ? point : best));
    currentTarget.previousElementSibling.lastElementChild.textContent = `${write(number)} at ${moment(time)}`;
  };
  const left = ({ currentTarget }) => (currentTarget.previousElementSibling.lastElementChild.textContent = write(values.at(-1)));
  return h(
    "figure",
    { class: "chart" },
    h("figcaption", {}, title, value),
    h("div", { class: "plot", onpointermove: pointed, onpointerleave: left }, drawing),
    h("div", { class: "span dim" }, h("span", {}, moment(span[0])), h("span", {}, `0 to ${write(most)}`), h("span", {}, moment(span[1]))),
  );
}
