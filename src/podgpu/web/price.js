// What idle GPUs cost, where prices are known.

import { money } from "./numbers.js";
import { words } from "./words.js";

/** A pattern as in file names: `*` stands for anything, `?` for one character. */
const fits = (pattern, text) => new RegExp(`^${pattern.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".")}$`).test(text);

function priceOf({ model }) {
  const { gpu_hour: prices } = words.prices;
  if (Object.hasOwn(prices, model)) return prices[model]; // a model may be called anything, even `constructor`
  return prices[Object.keys(prices).find((pattern) => fits(pattern, model))];
}

/** Write what the idle time of holders has cost, or costs in an hour; nothing where no price is known. */
export function costOf(idle, { isRate = false } = {}) {
  if (!words.prices) return "";
  let total = 0;
  let isKnown = false;
  for (const { gpu, tenant } of idle) {
    const price = priceOf(gpu);
    if (price === undefined) continue;
    isKnown = true;
    total += price * (tenant.share ?? 0) * (isRate ? 1 : tenant.idleFor / 3600);
  }
  if (!isKnown) return "";
  const cost = money(total, words.prices.currency);
  return isRate ? ` · ${cost}/h` : ` (${cost})`;
}
