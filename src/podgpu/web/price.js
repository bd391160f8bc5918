// What idle GPUs cost, where prices are known.

import { shortModel } from "./dom.js";
import { words } from "./words.js";

const priceOf = (gpu) => words.prices?.hourly[gpu.model] ?? words.prices?.hourly[shortModel(gpu.model)];

/** Write what the idle time of holders has cost, or costs in an hour; nothing where no price is known. */
export function costOf(idle, { isRate = false } = {}) {
  let total = 0;
  let isKnown = false;
  for (const { gpu, tenant } of idle) {
    const price = priceOf(gpu);
    if (price === undefined) continue;
    isKnown = true;
    total += price * (tenant.share ?? 0) * (isRate ? 1 : tenant.idleFor / 3600);
  }
  if (!isKnown) return "";
  const money = `${total.toFixed(2)} ${words.prices.currency}`;
  return isRate ? ` · ${money}/h` : ` (${money})`;
}
