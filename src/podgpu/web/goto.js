// A field that goes to a time: `14:03`, `14:03:20`, or `20m` ago.

import { h, write } from "./dom.js";
import { moment, second } from "./numbers.js";

const UNITS = { s: 1, m: 60, h: 3600 };
const DAY = 24 * 3600;
const WORDS = "Write 14:03, 14:03:20, or 20m for 20 minutes ago.";

/** The time that is meant, in seconds since 1970: of the browser's zone, and never after `now`. Null if it cannot be read. */
export function timeMeant(text, now) {
  const ago = text.trim().match(/^[-−]?\s*(\d{1,4})\s*([smh])(?:in|ec)?(?:\s*ago)?$/i);
  if (ago) return now - Number(ago[1]) * UNITS[ago[2].toLowerCase()];
  const clock = text.trim().match(/^(\d{1,2})[:.](\d{2})(?:[:.](\d{2}))?$/);
  if (!clock) return null;
  const [hours, minutes, seconds = 0] = clock.slice(1).map((part) => (part === undefined ? undefined : Number(part)));
  if (hours > 23 || minutes > 59 || seconds > 59) return null;
  const at = new Date(now * 1000).setHours(hours, minutes, seconds, 0) / 1000;
  return at > now + 60 ? at - DAY : at;
}

export class GoTo {
  /** `onMoment(at)` gets seconds. `kept()` has the times of the first and the last moment, if there are any, and whether the store has older ones. */
  constructor({ onMoment, kept }) {
    Object.assign(this, { onMoment, kept });
    const names = { "aria-label": "Go to a time", "aria-describedby": "goto-said", placeholder: "14:03 or 20m", title: WORDS };
    this.field = h("input", { type: "text", id: "goto", size: "9", autocomplete: "off", spellcheck: "false", ...names });
    this.said = h("p", { id: "goto-said", class: "tellings", role: "status" });
    const parts = [h("label", { for: "goto" }, "Go to"), this.field, h("button", { class: "spoken" }, "Go"), this.said];
    this.element = h("form", { class: "goto", onsubmit: (event) => this.#go(event) }, ...parts);
    this.field.addEventListener("input", () => this.#tell(""));
    this.field.addEventListener("blur", () => this.#tell(""));
  }

  focus() {
    this.field.focus();
    this.field.select();
  }

  #tell(text) {
    write(this.said, text);
    this.field.setAttribute("aria-invalid", String(Boolean(text)));
  }

  #go(event) {
    event.preventDefault();
    const { from, to, step, isStored } = this.kept();
    if (!to) return this.#tell("Nothing is kept yet.");
    const at = timeMeant(this.field.value, to);
    const span = `Kept is ${moment(from)} to ${moment(to)}.`;
    if (at === null) return this.#tell(`${WORDS} ${span}`);
    if (at < from - step && !isStored) return this.#tell(`Nothing is kept any more of ${second(at)}. ${span}`);
    this.#tell("");
    this.field.value = "";
    return this.onMoment(Math.ceil(isStored ? at : Math.max(at, from)));
  }
}
