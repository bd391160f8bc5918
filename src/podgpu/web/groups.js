// The views by node, by namespace and by team: what each has and what it uses of it.

import { NO_TEAM } from "./address.js";
import { count } from "./numbers.js";
import { SORT } from "./workloads.js";

/** `by` is what the server calls the rows, `keysOf` the keys of the rows that a GPU belongs to, `changesOf` what a row changes in the address. */
function view(by, { isOfCards, keysOf, changesOf }) {
  return {
    NEEDS: [by],
    itemsOf({ gpus, sort, sizes, fits, label, link, answers: [{ rows }] }) {
      const meant = new Set(gpus.flatMap((gpu) => keysOf(gpu, fits, label)));
      const shown = rows.filter((row) => meant.has(row.key)).sort(SORT[sort]);
      return shown.map((row) => ({
        kind: "work",
        key: row.key,
        height: sizes.isNarrow ? 124 : 50,
        row,
        about: [row.model, ...(row.state === "dark" && !row.cards ? ["GPUs not known"] : [count(row.cards, "GPU"), count(row.pods, "pod")])].filter(Boolean),
        href: link({ view: "gpus", sort: "", cells: "", ...changesOf(row, label) }),
        ...(isOfCards && { total: row.cards, look: "cx" }),
      }));
    },
  };
}

export const byNode = view("nodes", { isOfCards: true, keysOf: (gpu) => [gpu.node.row.name], changesOf: (row) => ({ node: row.name }) });

export const byNamespace = view("namespaces", { keysOf: (gpu, fits) => gpu.tenants.filter(fits).map((tenant) => tenant.namespace), changesOf: (row) => ({ namespace: row.key }) });

export const byTeam = view("labels", {
  keysOf: (gpu, fits, label) => gpu.tenants.filter(fits).map((tenant) => `${label}=${tenant.labels?.[label] ?? ""}`),
  changesOf: (row, label) => ({ by: label, team: row.key.slice(label.length + 1) || NO_TEAM }),
});
