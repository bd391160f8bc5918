// For each line, a list of [quantity, value] as JSON, writes a line of texts. An infinity or NaN comes as its name.

import { createInterface } from "node:readline";

import * as numbers from "./numbers.js";

const value = (given) => (typeof given === "string" ? Number(given) : given);

function text([quantity, given]) {
  if (quantity === "use" || quantity === "bounds") return numbers[quantity](...given);
  if (quantity.startsWith("part of ")) return numbers.partOf(quantity.slice(8), ...given);
  if (["moment", "second", "dated", "minute"].includes(quantity)) return numbers[quantity](given);
  if (quantity === "coverage") return numbers.coverage(given);
  if (quantity.startsWith("column of ")) return numbers.column(quantity.slice(10), ...given);
  if (quantity.startsWith("count of ")) return numbers.count(given, quantity.slice(9));
  if (quantity.startsWith("money in ")) return numbers.money(given, quantity.slice(9));
  if (quantity.startsWith("bare ")) return numbers.bare(quantity.slice(5), value(given));
  return numbers.written(quantity, value(given));
}

for await (const line of createInterface({ input: process.stdin })) process.stdout.write(`${JSON.stringify(JSON.parse(line).map(text))}\n`);
