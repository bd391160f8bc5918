// The view of all problems, one by one: those that the overview only counts have a row here.

import { h, write } from "./dom.js";
import { integer } from "./numbers.js";

export const NEEDS = ["problems"];

const LETTER = 7.2; // pixels of a letter, rather more than less
const LINE = 20;

/** What a group of problems is called in the address. */
export const groupOf = ({ kind, severity }) => `${kind}.${severity}`;

/** Where to look: the pod, the card or the node. */
export function linkOf({ kind, pod, uuid, node }) {
  if (pod) return ["why", { pod }];
  if (uuid) return ["show", { view: "gpus", gpu: uuid }];
  if (node) return ["show", { view: "gpus", node }];
  return kind === "nodes_dark" ? ["show", { view: "nodes", state: "dark" }] : null;
}

export const severityLook = ({ severity }) => ({ critical: "bad", info: "note" })[severity] ?? "";

const linesOf = (text, width) => Math.ceil((text.length * LETTER) / width);

/** The problems of a group, or all, of the GPUs and nodes that the filter leaves. */
export function itemsOf({ gpus, isFiltered, sizes, group, answers: [{ rows }] }) {
  const [cards, nodes] = [new Set(gpus.map(({ uuid }) => uuid)), new Set(gpus.map(({ node }) => node.row.name))];
  const isMeant = ({ uuid, node }) => !isFiltered || (uuid ? cards.has(uuid) : nodes.has(node));
  const shown = rows.filter((row) => (!group || groupOf(row) === group) && isMeant(row));
  const room = sizes.isNarrow ? sizes.width - 40 : sizes.width - 280;
  return shown.map((row) => ({
    kind: "problem",
    key: row.key,
    height: (sizes.isNarrow ? 2 * LINE : 0) + LINE * (linesOf(`${row.node}: ${textOf(row)}`, room) + linesOf(row.next_step, room)) + 14,
    row,
  }));
}

const textOf = ({ text, more }) => (more ? `${text} And ${integer(more)} more like it.` : text);

export function problemRows({ link }) {
  return () => {
    const title = h("strong", {});
    const where = h("b", {});
    const text = h("span", {});
    const next = h("small", { class: "dim" });
    const show = h("a", {});
    const element = h("div", {}, title, h("div", { class: "what" }, where, text, next), show);
    return {
      element,
      update({ row }) {
        element.className = `item problem ${severityLook(row)}`;
        write(title, row.title);
        write(where, row.node && !row.text.includes(row.node) ? `${row.node}: ` : "");
        write(text, textOf(row));
        write(next, row.next_step);
        const to = linkOf(row);
        show.hidden = !to;
        if (!to) return;
        show.href = link(to[1]);
        write(show, to[0]);
        show.setAttribute("aria-label", `${to[0]}: ${row.text}`);
      },
    };
  };
}
