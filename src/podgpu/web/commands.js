// Commands that lead on from what is shown, in the words of the server. A click copies one.

import { h } from "./dom.js";

const button = ({ text }) => h("button", { type: "button", class: "copy command", "data-copy": text }, h("span", {}, "Copy "), h("code", {}, text));

/** What can be done from here: a link that compares, where there is one, and buttons, each with the command that it copies. */
export const actions = (commands = [], compare) =>
  h(
    "ul",
    { class: "commands", "data-key": "commands", "aria-label": "What to do from here" },
    compare ? h("li", {}, h("a", { href: compare, class: "button" }, "Compare with another")) : null,
    ...commands.map((command) => h("li", {}, button(command))),
  );
