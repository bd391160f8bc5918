// Buttons that copy a text: a UUID, a cgroup, a command, a message.

import { h, write } from "./dom.js";

const DONE_MS = 1500;
const CONTROLS = /[\u0000-\u001f\u007f-\u009f]/g;

/** `name` says what is copied, for screen readers. */
export const copyButton = (text, name, label = "Copy") => h("button", { type: "button", class: "copy", "data-copy": text, "aria-label": `${label} ${name}` }, label);

/** Write a word of a command so that a shell takes it as it is. A terminal might act on control characters. */
export const shellWord = (text) => (/^[\w.,:@%+=/-]+$/.test(text) ? text : `'${text.replace(CONTROLS, "?").replaceAll("'", "'\\''")}'`);

/** Copy a text. Only secure pages may use the clipboard API; others select the text and copy the selection. */
async function copied(text) {
  if (navigator.clipboard && isSecureContext) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // It may be forbidden even so.
    }
  }
  const before = document.activeElement;
  const area = h("textarea", { class: "spoken", readonly: true, "aria-hidden": "true" });
  area.value = text;
  document.getElementById("app").append(area);
  area.select();
  const isDone = document.execCommand("copy");
  area.remove();
  before?.focus({ preventScroll: true });
  return isDone;
}

/** One listener for all such buttons, since rows are made again and again. */
export function copyOnClick(root) {
  const voice = h("p", { class: "spoken", "aria-live": "polite" });
  root.append(voice);
  root.addEventListener("click", async ({ target }) => {
    const button = target instanceof Element ? target.closest("button[data-copy]") : null;
    if (!button) return;
    const isDone = await copied(button.dataset.copy);
    write(voice, isDone ? "Copied" : "The browser does not allow copying");
    button.dataset.done = isDone ? "yes" : "no";
    setTimeout(() => delete button.dataset.done, DONE_MS);
  });
}
