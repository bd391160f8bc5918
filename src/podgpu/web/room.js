// Texts for narrow places. A name is shortened at its dashes and a list loses its last parts: no number is ever cut.

import { h, visible } from "./dom.js";

const FAMILY = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const MOST_KEPT = 5000; // widths
const GAP = " · ";
const NAMES = [Infinity, 150, 90, 60]; // pixels for each name of a list, until the list fits
const SHEET_BAR = 190; // pixels of a bar on a sheet

// Paper has room for whole lists, on as many lines as they need.
let isPaper = false;
addEventListener("beforeprint", () => (isPaper = true));
addEventListener("afterprint", () => (isPaper = false));

/** How much narrower a bar of that many pixels is on a sheet. */
export const onPaper = (pixels) => (isPaper ? Math.min(1, SHEET_BAR / pixels) : 1);

const pen = document.createElement("canvas").getContext("2d");
const kept = new Map();

/** The width of a text in pixels, in a font such as `500 11px`. */
export function widthOf(text, font) {
  const key = `${font} ${text}`;
  if (!kept.has(key)) {
    if (kept.size >= MOST_KEPT) kept.clear();
    pen.font = `${font} ${FAMILY}`;
    kept.set(key, pen.measureText(text).width);
  }
  return kept.get(key);
}

/** The forms of a name, the longest first: `a-b-c`, `a-b-…`, `a-…`. Each is how it begins, so that the name that is spoken has it too. */
function* formsOf(name) {
  yield name;
  const words = name.split(/(?<=[-/.])/);
  for (let first = words.length - 1; first > 0; first -= 1) yield `${words.slice(0, first).join("")}…`;
}

/** The name, as much of it as has room; empty if nothing has. */
export function shortName(name, pixels, font) {
  for (const form of formsOf(name)) if (widthOf(form, font) <= pixels) return form;
  return "";
}

/** Write a name, as much of it as has room. Its title has the whole, and who listens hears the whole. */
export function writeShort(element, given, pixels, font) {
  const name = visible(given);
  const short = shortName(name, pixels, font);
  if (element.dataset.short === short && element.title === name) return short;
  Object.assign(element.dataset, { short });
  element.title = name;
  element.replaceChildren(h("span", { "aria-hidden": "true" }, short));
  element.setAttribute("aria-label", name);
  return short;
}

/** A list of parts, each a text or a name with its number. The first one is always there; how many others are not is said. */
export function listed(parts, pixels, font) {
  if (isPaper) return parts.map((part) => [part].flat().join(" ")).join(GAP);
  for (let count = parts.length; count > 0; count -= 1) {
    const left = parts.length - count;
    for (const most of NAMES) {
      const texts = parts.slice(0, count).map((part) => (typeof part === "string" ? part : `${shortName(part[0], most, font)} ${part[1]}`.trim()));
      const text = [...texts, ...(left ? [`${left} more`] : [])].join(GAP);
      if (widthOf(text, font) <= pixels) return text;
    }
  }
  return typeof parts[0] === "string" ? parts[0] : parts[0][1];
}
