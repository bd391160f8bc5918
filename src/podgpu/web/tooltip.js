// A tip for what the mouse, a finger or the keyboard points at. It lies over the page and moves nothing.

import { h, write } from "./dom.js";

const GAP = 8; // pixels to the element, and to the edge of the window

/** The text is the `data-tip` of an element. */
export class Tooltip {
  constructor(root) {
    this.element = h("div", { class: "tip", role: "tooltip", hidden: true });
    root.append(this.element);
    root.addEventListener("pointerover", ({ target }) => this.#point(target));
    root.addEventListener("focusin", ({ target }) => target.matches(":focus-visible") && this.#point(target));
    root.addEventListener("focusout", () => this.hide());
    // A finger leaves when it is lifted, so its tip stays until the next touch.
    root.addEventListener("pointerleave", ({ pointerType }) => pointerType !== "touch" && this.hide());
    addEventListener("keydown", ({ key }) => key === "Escape" && this.hide());
    addEventListener("scroll", () => this.hide(), { passive: true });
  }

  #point(target) {
    const tipped = target instanceof Element ? target.closest("[data-tip]") : null;
    if (tipped?.dataset.tip) this.show(tipped);
    else this.hide();
  }

  hide() {
    this.element.hidden = true;
  }

  show(tipped) {
    write(this.element, tipped.dataset.tip);
    this.element.hidden = false;
    const at = tipped.getBoundingClientRect();
    const own = this.element.getBoundingClientRect();
    const left = Math.max(GAP, Math.min(at.left + at.width / 2 - own.width / 2, document.documentElement.clientWidth - own.width - GAP));
    const top = at.bottom + GAP + own.height > innerHeight ? at.top - own.height - GAP : at.bottom + GAP;
    this.element.style.left = `${Math.round(left)}px`;
    this.element.style.top = `${Math.round(Math.max(GAP, top))}px`;
  }
}
