// The lists of the page: what each is made by, its name, its heads, and what is said where it is empty.

import { shortModel } from "./dom.js";
import * as byGpu from "./gpus.js";
import { byNamespace, byNode, byTeam } from "./groups.js";
import * as byIdle from "./idle.js";
import { duration } from "./numbers.js";
import * as byProblem from "./problems.js";
import * as byWorkload from "./workloads.js";

export const VIEWS = { gpus: byGpu, workloads: byWorkload, nodes: byNode, namespaces: byNamespace, teams: byTeam, idle: byIdle, problems: byProblem };
export const NAMES = { gpus: "GPUs", workloads: "Workloads", nodes: "Nodes", namespaces: "Namespaces", teams: "Teams", idle: "Idle holders", problems: "Problems" };
export const HEADS = {
  workloads: ["Workload", "Given", "Busy, of what it was given · of its GPUs' time", "Memory, of what it may use", "Power"],
  nodes: ["Node", "Held", "Busy, of its GPUs", "Memory", "Power"],
  namespaces: ["Namespace", "Given", "Busy, of what it was given · of its GPUs' time", "Memory, of what it may use", "Power"],
  teams: ["Team", "Given", "Busy, of what it was given · of its GPUs' time", "Memory, of what it may use", "Power"],
  idle: ["Pod", "Held", "Not used for", "Why it counts as idle", "Wasted"],
  problems: ["Problem", "What is wrong, and what to do"],
};

/** GPUs of virtual machines: the driver does not list them, so they have no row. */
function guestsText(guests) {
  const names = guests.map((guest) => `${guest.model ? `${shortModel(guest.model)} ` : ""}${guest.pci_bus_id}`);
  return names.length ? `Given to virtual machines, and not measured: ${names.join(", ")}.` : "";
}

/** Why the list is empty, or what it leaves out. */
export function emptyNote({ address, model }, answers, items, gpus) {
  const view = VIEWS[address.view];
  const guests = guestsText(model.document.guests ?? []);
  if (!model.gpus.length && guests) return `Every GPU is given away. ${guests}`;
  const { dark } = model.insight;
  if (!model.gpus.length && model.isCluster) return "No node has a GPU, or none could be read yet.";
  if (!model.gpus.length) return dark && dark.state !== "live" ? `Nothing is known of its GPUs: ${dark.text}.` : "No GPU found. If something is wrong, it is listed above.";
  if (answers.includes(undefined)) return "Waiting for the server.";
  const error = answers.find((answer) => answer.error)?.error;
  if (error) return `The rows could not be updated: ${error}`;
  if (!gpus) return "Nothing matches. Clear the filter to see all.";
  if (address.view === "problems" && !items) return "No such problem now.";
  const empty = address.view === "idle" ? `No pod holds a GPU without using it for ${duration(model.insight.idle_after_seconds)} or more.` : "No container uses these GPUs.";
  return [items ? "" : empty, view.noteOf?.(answers), address.view === "gpus" && guests].filter(Boolean).join(" ");
}
