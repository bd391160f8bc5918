// Commands that lead on from what is shown, in the words of the server. A click copies one.

import { h } from "./dom.js";

const button = ({ text }) => h("button", { type: "button", class: "copy command", "data-copy": text }, h("span", {}, "Copy "), h("code", {}, text));

/** A group of buttons, each with the command that it copies; null without commands. */
export function commandList(commands = []) {
  if (!commands.length) return null;
  return h("ul", { class: "commands", "data-key": "commands", "aria-label": "Commands to copy" }, ...commands.map((command) => h("li", {}, button(command))));
}
