// The views by node, by namespace and by team: what each has and what it uses of it.

import { NO_TEAM } from "./address.js";
import { known } from "./dom.js";
import { count, gpus as gpuCount } from "./numbers.js";

const most = (name) => (a, b) => (b[name] ?? -1) - (a[name] ?? -1);
const byName = (a, b) => (a.name < b.name ? -1 : 1);
const SORT = {
  "": (a, b) => (b.held_gpus ?? 0) - (a.held_gpus ?? 0) || byName(a, b),
  busy: most("busy_gpus"),
  idle: most("unused_gpus"),
  memory: most("memory_used_bytes"),
  power: most("power_watts"),
  name: byName,
};

/** `by` is what the server calls the rows; `keyOf` how a row is called to which a tenant belongs. */
function view(by, { isOfCards, keysOf, changesOf, isOwn = () => true }) {
  return {
    NEEDS: [by],
    itemsOf({ gpus, sort, sizes, fits, label, link, answers: [{ rows }] }) {
      const meant = new Set(gpus.flatMap((gpu) => keysOf(gpu, fits, label)));
      const own = rows.filter((row) => isOwn(row, label) && meant.has(row.key)).sort(SORT[sort]);
      return own.map((row) => ({
        kind: "work",
        key: row.key,
        height: sizes.isNarrow ? 124 : 50,
        row,
        about: [row.model, count(row.cards, "GPU"), count(row.pods, "pod")].filter(Boolean).join(" · "),
        href: link({ view: "gpus", sort: "", cells: "", ...changesOf(row, label) }),
        total: isOfCards ? row.cards : row.held_gpus,
        given: isOfCards && known(row.held_gpus) ? `${gpuCount(row.held_gpus)}` : undefined,
        look: isOfCards ? "cx" : undefined,
      }));
    },
  };
}

export const byNode = view("nodes", { isOfCards: true, keysOf: (gpu) => [gpu.node.row.name], changesOf: (row) => ({ node: row.name }) });

export const byNamespace = view("namespaces", { keysOf: (gpu, fits) => gpu.tenants.filter(fits).map((one) => one.namespace), changesOf: (row) => ({ namespace: row.key }) });

export const byTeam = view("labels", {
  isOwn: (row, label) => row.kind === label,
  keysOf: (gpu, fits, label) => gpu.tenants.filter(fits).map((one) => `${label}=${one.labels?.[label] ?? ""}`),
  changesOf: (row, label) => ({ by: label, team: row.key.slice(label.length + 1) || NO_TEAM }),
});
