// Two GPUs or two pods side by side: the same facts in two columns, and which of them differ.

import { h, shortModel } from "./dom.js";
import { factsOf } from "./facts.js";
import { toldLines } from "./pod.js";

const SPENT = new Set(["UUID"]); // differs always, and stands above the column

/** The card of that UUID, or the one with that MIG instance; undefined if the name is a pod's. */
const cardOf = (gpus, id) => gpus.find(({ uuid, slices }) => uuid === id || slices.some((slice) => slice.uuid === id));

const isCard = (gpus, id) => id.startsWith("GPU-") || id.startsWith("MIG-") || Boolean(cardOf(gpus, id));

const queryOf = (gpus, id) => `facts?${isCard(gpus, id) ? "gpu" : "pod"}=${encodeURIComponent(id)}`;

/** How people name it. */
function nameOf(gpus, id) {
  const gpu = cardOf(gpus, id);
  const slice = gpu?.slices.find(({ uuid }) => uuid === id);
  return gpu ? [`${gpu.node.name} GPU ${gpu.number}`, slice?.profile, shortModel(gpu.model)].filter(Boolean).join(" · ") : id;
}

/** Says that another one is to be chosen. */
export function choosing(model, id, cancel) {
  const asked = ` ${nameOf(model.gpus, id)} with another: choose a GPU by its number, or a pod. `;
  return h("p", { class: "banner choosing", role: "status" }, h("b", {}, "Compare"), asked, h("a", { href: cancel }, "Cancel"));
}

/** Topics with lines of [what, value] of one of the two. */
function topicsOf(answer, readings) {
  const summary = toldLines(answer.summary ?? []).filter(([what]) => !SPENT.has(what));
  const known = new Set(summary.map(([what]) => what));
  // A pod in one place has more to say.
  const more = answer.places?.length === 1 && !readings ? toldLines(answer.places[0].facts).filter(([what]) => !known.has(what)) : [];
  return new Map([["Now", [...summary, ...more]], ...(readings ? factsOf(readings) : [])]);
}

const merged = (one, other) => [...new Set([...one, ...other])];

function rowOf(what, values) {
  const isDifferent = values[0] !== values[1];
  const sign = isDifferent ? h("span", { title: "differs" }, "≠", h("span", { class: "spoken" }, " differs")) : "";
  const cells = values.map((value) => h("td", { class: "value" }, value ?? "not reported"));
  return h("tr", { class: isDifferent ? "differs" : null }, h("th", { scope: "row" }, what), h("td", { class: "unequal" }, sign), ...cells);
}

/** Fill the page of two names. `asked` returns what the server makes of a query, `more` has all readings of a cluster's cards. */
export function comparePage(pair, { model, asked, back, link, more }) {
  const { gpus } = model;
  const top = h("p", {}, h("a", { href: back, class: "back" }, "← All GPUs"));
  const title = h("div", { class: "title" }, h("h2", { tabindex: "-1" }, "Side by side"));
  const answers = pair.map((id) => asked(queryOf(gpus, id)));
  const said = answers.includes(undefined) ? "Waiting for the server." : answers.find((answer) => answer.error)?.error;
  if (said) return h("div", { class: "podpage" }, top, title, h("p", { class: "box pad" }, said));
  const sides = pair.map((id, place) => {
    const gpu = cardOf(gpus, id);
    const card = gpu && (more?.card(gpu) ?? gpu.source);
    return topicsOf(answers[place], card && ((card.instances ?? []).find(({ mig }) => mig.uuid === id) ?? card).readings);
  });
  const heads = pair.map((id) => h("th", { scope: "col" }, h("a", { href: link({ compare: "", [isCard(gpus, id) ? "gpu" : "pod"]: id }) }, nameOf(gpus, id))));
  const bodies = merged(sides[0].keys(), sides[1].keys()).map((topic) => {
    const lines = sides.map((side) => new Map((side.get(topic) ?? []).map(([what, value]) => [what, value])));
    const rows = merged(lines[0].keys(), lines[1].keys()).map((what) => rowOf(what, lines.map((line) => line.get(what))));
    return h("tbody", {}, h("tr", { class: "topic" }, h("th", { scope: "rowgroup", colspan: "4" }, topic)), ...rows);
  });
  const sign = h("th", { scope: "col", class: "unequal" }, h("span", { class: "spoken" }, "Differs"));
  const head = h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "What"), sign, ...heads));
  const table = h("section", { class: "box" }, h("table", { class: "pair" }, head, ...bodies));
  return h("div", { class: "podpage comparison" }, top, title, h("p", { class: "dim" }, "≠ marks what differs."), table);
}
