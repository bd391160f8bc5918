// Lines and layers over time, as SVG.

import { h, svg } from "./dom.js";
import { UNKNOWN, moment, second } from "./numbers.js";

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

/** The place of a time from left to right; undefined if it is not on the chart. */
const placeOf = (at, [from, to]) => (at >= from && at <= to ? round(((at - from) / (to - from || 1)) * WIDTH) : undefined);

const lineAt = (x, name) => svg("line", { x1: x, x2: x, y1: 0, y2: HEIGHT, class: name });

const [POINT, WIDE_POINT] = [5, 2.5]; // half of the width of a mark's point: a wide chart is stretched

/** A line with a point on top, as on the timeline. */
const markAt = (x, severity, half) => svg("path", { d: `M${x} 0V${HEIGHT}M${x - half} 0H${x + half}L${x} 8Z`, class: `xid ${severity}` });

/** XIDs as lines, and the moment that the page shows, after which everything is paler. */
function signs(span, { xids = [], cursor = 0 }, half) {
  const marks = xids.flatMap(({ at, severity = "" }) => (placeOf(at, span) === undefined ? [] : [markAt(placeOf(at, span), severity, half)]));
  const x = cursor ? placeOf(cursor, span) : undefined;
  return x === undefined ? marks : [...marks, svg("rect", { x, y: 0, width: WIDTH - x, height: HEIGHT, class: "later" }), lineAt(x, "then")];
}

/** The value at the moment that the page shows: of the last point before it, unless that is long ago. */
function valueAt(seen, { cursor = 0, gap }) {
  const last = cursor ? seen.findLast(([at]) => at <= cursor + 1) : seen.at(-1);
  return last && (!cursor || cursor - last[0] <= gap) ? last[1] : undefined;
}

const written = (value, write) => (value === undefined ? UNKNOWN : write(value));
const nearest = (seen, at) => seen.reduce((best, point) => (Math.abs(point[0] - at) < Math.abs(best[0] - at) ? point : best));
const whenOf = ({ cursor }) => (cursor ? `at ${second(cursor)}` : "now");
const isOn = (span) => ({ at }) => placeOf(at, span) !== undefined;
const spokenXids = (span, { xids = [] }) => xids.filter(isOn(span)).map(({ at, code }) => `, XID ${code} at ${moment(at)}`).join("");

function canvas(spoken, look) {
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": spoken, class: look });
  for (const part of [0, 0.5, 1]) drawing.append(svg("line", { x1: 0, x2: WIDTH, y1: HEIGHT * part, y2: HEIGHT * part, class: "grid" }));
  return drawing;
}

/** The time under the pointer. */
const timeOf = ({ currentTarget, offsetX }, [from, to]) => from + (offsetX / (currentTarget.clientWidth || 1)) * (to - from);

const scale = ([from, to], most, write) =>
  h("div", { class: "span dim" }, ...[moment(from), `0 to ${write(most)}`, moment(to)].map((text) => h("span", {}, text)));

const tooFew = (title) => h("figure", { class: "chart" }, h("figcaption", {}, title), h("p", { class: "dim" }, "There are not enough values yet."));

/** A chart with its scale. `write` formats a value. `frame` has its times, gap, XIDs and cursor: see hour.js. */
export function chart(title, points, { top, write, look = "c0", frame }) {
  const seen = points.filter(([, value]) => !Number.isNaN(value));
  if (seen.length < 2) return tooFew(title);
  const values = seen.map(([, value]) => value);
  const most = Math.max(top || 0, Math.max(...values) * 1.05) || 1;
  const span = frame.span ?? [seen[0][0], seen.at(-1)[0]];
  const shown = written(valueAt(seen, frame), write);
  const spoken = `${title}: ${whenOf(frame)} ${shown}, least ${write(Math.min(...values))}, most ${write(Math.max(...values))}${spokenXids(span, frame)}`;
  const drawing = canvas(spoken, look);
  for (const run of runs(seen, frame.gap)) {
    const line = path(run, span, most, WIDTH, HEIGHT);
    const ends = [run.at(-1)[0], run[0][0]].map((at) => round(((at - span[0]) / (span[1] - span[0] || 1)) * WIDTH));
    drawing.append(svg("path", { d: `${line}L${ends[0]} ${HEIGHT}L${ends[1]} ${HEIGHT}Z`, class: "area" }), svg("path", { d: line, class: "line" }));
  }
  drawing.append(...signs(span, frame, POINT));
  // While the pointer is over the chart, the number is that of its time.
  const caption = ({ currentTarget }, text) => (currentTarget.previousElementSibling.lastElementChild.textContent = text);
  const pointed = (event) => {
    const [time, number] = nearest(seen, timeOf(event, span));
    caption(event, `${write(number)} at ${moment(time)}`);
  };
  const plot = h("div", { class: "plot", onpointermove: pointed, onpointerleave: (event) => caption(event, shown) }, drawing);
  return h("figure", { class: "chart" }, h("figcaption", {}, title, h("b", {}, shown)), plot, scale(span, most, write));
}

/** The outlines of layers that stand on each other: `totals` are pairs of time and value, `layers` have a Map of values by time. */
function outlines(totals, layers, span, top, gap) {
  const y = (value) => round(HEIGHT - (Math.min(value, top) / top) * HEIGHT);
  const paths = layers.map(() => "");
  for (const run of runs(totals, gap)) {
    const xs = run.map(([at]) => round(((at - span[0]) / (span[1] - span[0] || 1)) * WIDTH));
    let lower = run.map(() => 0);
    layers.forEach(({ values }, number) => {
      const upper = run.map(([at], place) => lower[place] + (values.get(at) ?? 0));
      const line = (heights) => heights.map((height, place) => `${xs[place]} ${y(height)}`);
      paths[number] += `M${line(upper).join("L")}L${line(lower).reverse().join("L")}Z`;
      lower = upper;
    });
  }
  return paths;
}

/** A chart of parts that add up: `layers` have a name, a look, a link and points; what is left of the total belongs to nobody. */
export function stack(title, totals, layers, { top, write, frame, rest }) {
  if (totals.length < 2) return tooFew(title);
  const span = frame.span ?? [totals[0][0], totals.at(-1)[0]];
  const parts = layers.map((layer) => ({ ...layer, values: new Map(layer.points) }));
  const left = new Map(totals.map(([at, value]) => [at, Math.max(0, value - parts.reduce((sum, { values }) => sum + (values.get(at) ?? 0), 0))]));
  if ([...left.values()].some((value) => value > 0.005)) parts.push({ name: rest, look: "rest", values: left });
  const at = (time) => totals.find(([when]) => when === time)?.[1];
  const last = frame.cursor ? totals.findLast(([when]) => when <= frame.cursor + 1) : totals.at(-1);
  const shownAt = last && (!frame.cursor || frame.cursor - last[0] <= frame.gap) ? last[0] : undefined;
  const valueOf = ({ values }, time) => (values.has(time) ? write(values.get(time)) : UNKNOWN);
  const shown = written(at(shownAt), write);
  const each = parts.map((part) => `${part.name} ${valueOf(part, shownAt)}`).join(", ");
  const drawing = canvas(`${title}: ${whenOf(frame)} ${shown}: ${each}${spokenXids(span, frame)}`, "stack");
  outlines(totals, parts, span, top, frame.gap).forEach((d, place) => drawing.append(svg("path", { d, class: `layer ${parts[place].look}` })));
  drawing.append(...signs(span, frame, WIDE_POINT));
  const tell = (figure, time, text) => {
    figure.querySelector("figcaption b").textContent = text;
    figure.querySelectorAll(".parts b").forEach((cell, place) => (cell.textContent = valueOf(parts[place], time)));
  };
  const figureOf = ({ currentTarget }) => currentTarget.closest("figure");
  const pointed = (event) => {
    const [time, value] = nearest(totals, timeOf(event, span));
    tell(figureOf(event), time, `${write(value)} at ${moment(time)}`);
  };
  const nameOf = ({ name, href }) => (href ? h("a", { href }, name) : name);
  const dotOf = ({ look }) => h("i", { class: `dot ${look}`, "aria-hidden": "true" });
  const items = parts.map((part) => h("li", {}, dotOf(part), nameOf(part), h("b", {}, valueOf(part, shownAt))));
  const plot = h("div", { class: "plot", onpointermove: pointed, onpointerleave: (event) => tell(figureOf(event), shownAt, shown) }, drawing);
  const legend = h("ul", { class: "parts" }, ...items);
  return h("figure", { class: "chart wide" }, h("figcaption", {}, title, h("b", {}, shown)), plot, scale(span, top, write), legend);
}
