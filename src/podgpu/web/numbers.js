// Writes numbers for people, by the table of podgpu/numbers.py, which Python uses too.

import { words } from "./words.js";

const { quantities, plurals, unknown, most, group, point, minus, range, likely, months } = words.numbers;

export const UNKNOWN = unknown;

const isNumber = (value) => typeof value === "number" && Math.abs(value) <= most;

/** A positive number in units of 10^-decimals, as an integer: to 15 significant digits, then a half up. */
function rounded(size, decimals) {
  const [digits, exponent] = size.toExponential(14).split("e");
  const shift = Number(exponent) - 14 + decimals;
  const whole = BigInt(digits.replace(".", ""));
  if (shift >= 0) return whole * 10n ** BigInt(shift);
  const unit = 10n ** BigInt(-shift);
  return (whole + unit / 2n) / unit;
}

const seconds = (size) => rounded(size, 0);

const inStep = (size, step) => (step.down ? seconds(size) / BigInt(step.factor) : rounded(size / step.factor, step.decimals));

/** The step that a value is written in, and its digits as an integer. */
function stepOf({ steps, zero }, value) {
  if (value === 0) return [zero, 0n];
  const size = Math.abs(value);
  for (const step of steps) {
    if (step.below === null) return [step, inStep(size, step)];
    if (size / step.factor >= step.below) continue;
    const written = inStep(size, step);
    if (written < BigInt(step.below) * 10n ** BigInt(step.decimals)) return [step, written];
  }
  throw new Error("the last step has no end");
}

function signed(written, decimals, { trims }, isNegative) {
  const all = String(written).padStart(decimals + 1, "0");
  const digits = all.slice(0, all.length - decimals).replace(/\B(?=(\d{3})+$)/g, group);
  const fraction = trims ? all.slice(all.length - decimals).replace(/0+$/, "") : all.slice(all.length - decimals);
  return `${isNegative && written ? minus : ""}${digits}${fraction && decimals ? point + fraction : ""}`;
}

/** Write a value with its unit. */
export function written(quantity, value) {
  if (!isNumber(value)) return unknown;
  const how = quantities[quantity];
  const shown = how.least === null ? value : Math.max(value, how.least);
  const [step, size] = stepOf(how, shown);
  const number = signed(size, step.decimals, how, shown < 0);
  if (step.rest) {
    const [factor, unit] = step.rest;
    const left = (seconds(Math.abs(shown)) % BigInt(step.factor)) / BigInt(factor);
    if (left) return `${number}${step.unit} ${left}${unit}`;
  }
  const isOne = size > 0n && size <= 10n ** BigInt(step.decimals);
  return `${number}${!step.units || isOne ? step.unit : step.units}`;
}

/** Write a value without its unit, where the text around it has the unit. */
export function bare(quantity, value) {
  if (!isNumber(value)) return unknown;
  const how = quantities[quantity];
  const [step, size] = stepOf(how, value);
  return signed(size, step.decimals, how, value < 0);
}

/** Write a value of a column without its unit, with the decimals of the total. */
export function column(quantity, value, total) {
  if (!isNumber(value)) return unknown;
  const how = quantities[quantity];
  const [step] = stepOf(how, isNumber(total) ? total : value);
  return signed(inStep(Math.abs(value), step), step.decimals, { trims: false }, value < 0);
}

/** `691 of 700 W`: a unit that both have is written once. */
export function partOf(quantity, part, total) {
  const isAlike = isNumber(part) && isNumber(total) && (part === 0 || stepOf(quantities[quantity], part)[0].unit === stepOf(quantities[quantity], total)[0].unit);
  return `${isAlike ? bare(quantity, part) : written(quantity, part)} of ${written(quantity, total)}`;
}

export const percent = (ratio) => written("ratio", ratio);
/** Never 100% of what was not seen completely. */
export const coverage = (ratio) => (ratio < 1 && percent(ratio) === percent(1) ? `<${percent(1)}` : percent(ratio));
export const gpus = (value) => written("gpus", value);
export const gpuNumber = (value) => bare("gpus", value);
export const memory = (bytes) => written("memory", bytes);
export const watts = (value) => written("power", value);
export const energy = (joules) => written("energy", joules);
export const celsius = (value) => written("temperature", value);
export const gpuHours = (value) => written("gpu hours", value);
export const duration = (value) => written("duration", value);
/** A duration that is short enough for a tag: `3h`. */
export const age = (value) => written("age", value);
export const integer = (value) => written("count", value);

/** `1 process`, `2 processes`, `3 more pods`. */
export function count(things, noun) {
  const [, before, last] = noun.match(/^(.* )?(.*)$/);
  const many = `${before ?? ""}${Object.hasOwn(plurals, last) ? plurals[last] : `${last}s`}`;
  return `${integer(things)} ${Math.abs(things) === 1 ? noun : many}`;
}

export const money = (value, currency) => (isNumber(value) ? `${bare("money", value)} ${currency}` : unknown);

/** `12–34`, in percent; empty if they are unknown, or look the same. */
export function bounds(least, most) {
  if (!isNumber(least) || !isNumber(most)) return "";
  const [low, high] = [bare("ratio", least), bare("ratio", most)];
  return low === high ? "" : `${low}${range}${high}`;
}

/** `23% (12–34)`, the number and its bounds if there are any, or `23% (~12–34)`, with a likely range. */
export function use(ratio, least, most, certainty) {
  const span = isNumber(ratio) ? bounds(least, most) : "";
  return span ? `${percent(ratio)} (${certainty === "estimated" ? likely : ""}${span})` : percent(ratio);
}

const two = (number) => String(number).padStart(2, "0");
const dayOf = (day, month, year) => `${day} ${months[month]}${year ? ` ${year}` : ""}`;

/** A time of the past, in the time zone of the browser: `14:03`, `17 Nov 14:03` where that is not today, or with the year. */
export const moment = (at) => past(at, (date) => [date.getHours(), date.getMinutes()]);

/** The same to the second. */
export const second = (at) => past(at, (date) => [date.getHours(), date.getMinutes(), date.getSeconds()]);

/** The same for what is kept, as on paper: always with the date and the time zone. */
export function dated(at) {
  const date = new Date(at * 1000);
  return `${dayOf(date.getDate(), date.getMonth(), date.getFullYear())} ${two(date.getHours())}:${two(date.getMinutes())} ${zone(date)}`;
}

function past(at, clockOf) {
  const date = new Date(isNumber(at) ? at * 1000 : NaN);
  if (Number.isNaN(date.getTime())) return unknown;
  const now = new Date();
  const clock = clockOf(date).map(two).join(":");
  if (date.toDateString() === now.toDateString()) return clock;
  return `${dayOf(date.getDate(), date.getMonth(), date.getFullYear() === now.getFullYear() ? 0 : date.getFullYear())} ${clock}`;
}

/** The time zone of the browser: `UTC`, `UTC+1`, `UTC+5:30`. The page says it once. */
export function zone(date = new Date()) {
  const ahead = -date.getTimezoneOffset();
  const [hours, minutes] = [Math.floor(Math.abs(ahead) / 60), Math.abs(ahead) % 60];
  return ahead ? `UTC${ahead < 0 ? "-" : "+"}${hours}${minutes ? `:${two(minutes)}` : ""}` : "UTC";
}

/** An ISO time in its own time zone, with the year: a bill is kept. */
export function minute(iso) {
  const [year, month, day, clock] = [iso.slice(0, 4), iso.slice(5, 7), iso.slice(8, 10), iso.slice(11, 16)];
  return `${dayOf(Number(day), Number(month) - 1, year)} ${clock}`;
}
