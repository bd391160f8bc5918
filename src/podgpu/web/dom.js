// Elements and numbers as people read them. Text is only ever set as text: names may be hostile.

const TURNS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Characters that turn the direction of writing could make a name read as another: they are shown as what they are. */
const visible = (text) => (typeof text === "string" ? text.replace(TURNS, "\ufffd") : text);

/** Make an element. Attributes that are null or false are left out; children may be text. */
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined).map(visible));
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Put text into an element, without touching it if nothing changed. */
export function write(element, text) {
  const shown = visible(text);
  if (element.textContent !== shown) element.textContent = shown;
}

const UNKNOWN = "–";

export const known = (value) => value !== null && value !== undefined;

export const percent = (ratio) => (known(ratio) ? `${Math.round(ratio * 100)} %` : UNKNOWN);

export function gib(bytes) {
  if (!known(bytes)) return UNKNOWN;
  const size = bytes / 2 ** 30;
  return `${size > 0 && size < 1 ? size.toFixed(2) : size.toFixed(1)} GiB`;
}

export function watts(value) {
  if (!known(value)) return UNKNOWN;
  if (value >= 1000) return `${(value / 1000).toFixed(value < 9950 ? 2 : 1)} kW`;
  return value === 0 || value >= 10 ? `${Math.round(value)} W` : `${value.toFixed(1)} W`;
}

/** A number of GPUs: whole ones without a fraction. */
export function gpus(value) {
  if (!known(value)) return UNKNOWN;
  const rounded = Math.round(value * 10) / 10;
  if (value > 0 && rounded === 0) return value.toFixed(2);
  return Number.isInteger(rounded) ? String(rounded) : rounded.toFixed(1);
}

export function energy(millijoules) {
  if (!known(millijoules)) return UNKNOWN;
  const wh = millijoules / 3.6e6;
  if (wh < 1) return `${(millijoules / 1000).toFixed(0)} J`;
  return wh < 1000 ? `${wh.toFixed(1)} Wh` : `${(wh / 1000).toFixed(1)} kWh`;
}

/** `42 s`, `12 min`, `3 h 12 min`, `5 d`. */
export function duration(seconds) {
  if (!known(seconds)) return UNKNOWN;
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 120) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.floor(hours / 24)} d ${hours % 24 ? `${hours % 24} h` : ""}`.trim();
}

/** The same in one unit, for a tag: `90 s`, `12 min`, `3 h`, `5 d`. */
export function short(seconds) {
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]]) if (seconds >= 2 * size) return `${Math.floor(seconds / size)} ${unit}`;
  return `${Math.round(seconds)} s`;
}

// Made once: a new one for each number is slow. Hours run to 24 everywhere, as in logs.
const TIME = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const DAY = new Intl.DateTimeFormat([], { day: "numeric", month: "short" });

export function moment(at) {
  if (!known(at)) return UNKNOWN;
  const date = new Date(at * 1000);
  if (Number.isNaN(date.getTime())) return UNKNOWN;
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? TIME.format(date) : `${DAY.format(date)}, ${TIME.format(date)}`;
}

export const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

export const shortModel = (model) => model.replace(/^NVIDIA\s+/, "") || "GPU";
