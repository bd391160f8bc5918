// Keeps an incident: a recording of the minutes around the moment that is shown, and what still leads to it tomorrow.

import { askInLine } from "./ask.js";
import { copyButton, shellWord } from "./copy.js";
import { h, renew } from "./dom.js";
import { moment, second, written } from "./numbers.js";

const MINUTES = 10;
const HOUR = 3600;

const nameOf = (answer) => answer.headers.get("content-disposition")?.match(/filename="([^"]+)"/)?.[1] ?? "podgpu.recording";
const read = async (answer) => ({ blob: await answer.blob(), name: nameOf(answer) });

/** Hand a file to the browser's downloads. */
function download({ blob, name }) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

const command = (text, what) => h("p", { class: "command" }, `${what}: `, h("code", {}, text), copyButton(text, `the command for ${what.toLowerCase()}`));

export class Keep {
  /**
   * `shown()` is the moment on the page, `link(at)` leads to it, and `facts()` says whether the page is of a cluster, which node it is about, and whether
   * a store has the time before the hour.
   */
  constructor({ shown, link, facts }) {
    Object.assign(this, { shown, link, facts });
    const opens = { "aria-expanded": "false", "aria-controls": "kept" };
    this.button = h("button", { type: "button", class: "keep", ...opens, onclick: () => this.#keep() }, "Keep this incident");
    this.panel = h("section", { class: "box kept", id: "kept", "aria-label": "What was kept", hidden: true, tabindex: "-1" });
  }

  #show(sign, children) {
    this.panel.hidden = false;
    this.button.setAttribute("aria-expanded", "true");
    const close = () => {
      this.panel.hidden = true;
      this.button.setAttribute("aria-expanded", "false");
      this.button.focus();
    };
    renew(this.panel, sign, () => [...children, h("button", { type: "button", class: "close", onclick: close }, "Close")]);
  }

  async #keep() {
    const at = Math.ceil(this.shown());
    if (!at || this.isBusy) return;
    this.isBusy = true;
    this.#show([at, "wait"], [h("p", { role: "status" }, `The file of ${MINUTES} minutes around ${second(at)} is being made.`)]);
    const file = await askInLine(`api/v1/recording?at=${at}&minutes=${MINUTES}`, undefined, read);
    this.isBusy = false;
    if (file.blob) download(file);
    const said = file.blob ? this.#played(at, file) : [h("p", { role: "status" }, `There is no file of ${second(at)}: ${file.error}`)];
    this.#show([at, Date.now()], [...said, this.#linked(at)]);
    this.panel.focus({ preventScroll: true });
  }

  #played(at, { blob, name }) {
    const { isCluster, node } = this.facts();
    const file = shellWord(name);
    const page = `podgpu agent --source=replay --replay.file=${file}${isCluster ? ` --node-name=${node ? shellWord(node) : "NODE"}` : ""}`;
    const says = `is in your downloads: up to ${MINUTES} minutes around ${second(at)}. It stays when the hour that is kept here is over.`;
    return [
      h("p", { role: "status" }, h("b", {}, name), `, ${written("size", blob.size)}, ${says}`),
      command(page, isCluster ? "This page of one node" : "This page"),
      command(`podgpu top --replay.file=${file}`, "In a terminal"),
    ];
  }

  /** Without a store, a link leads nowhere once the hour is over. */
  #linked(at) {
    const address = new URL(this.link(at), location.href).href;
    const { isStored } = this.facts();
    const stored = "This link shows the moment for as long as the store has it, later without processes and claims: ";
    const brief = `There is no store here, so this link works at most until ${moment(at + HOUR)}; after that, only the file is left: `;
    return h("p", { class: "link" }, isStored ? stored : brief, h("code", {}, address), copyButton(address, "the link"));
  }
}
