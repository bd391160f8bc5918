// Says above everything else what the numbers are: paused, recorded, made up, or not those that were asked for.

import { h, renew } from "./dom.js";
import { duration, moment, second } from "./numbers.js";

const MINUTE = 60;

/** Why the moment of the address is not shown, in the reader's time. */
function missedText({ error, isGone }, at, { from, to }) {
  if (!isGone || !to) return `${second(at)} cannot be shown: ${error.trim()}`;
  const why = at > to ? `${second(at)} has not come yet` : `Nothing is kept any more of ${second(at)}`;
  return `${why}, so you see the present. Kept is ${moment(from)} to ${moment(to)}.`;
}

export class Banners {
  constructor() {
    this.element = h("section", { class: "banners", "aria-label": "Where the numbers come from" });
  }

  /** `missed` is why the moment `at` is not shown, `kept` what can be shown, `newest` the time of the live numbers, `live` leads to them. */
  draw({ isDemo, isReplay, takenAt }, { isPast, missed, at, kept, newest, live }) {
    document.documentElement.classList.toggle("past", isPast);
    const recorded = `These numbers were recorded. This is how it was at ${moment(takenAt)}.`;
    const lines = [
      missed && ["LIVE", missedText(missed, at, kept)],
      isReplay && !isPast && ["REPLAY", recorded],
      isDemo && !isReplay && ["DEMO", "These numbers are made up. No GPU is read."],
    ].filter(Boolean);
    const minutes = Math.floor((newest - takenAt) / MINUTE);
    const paused = isPast ? `This page is paused at ${second(takenAt)}${minutes > 0 ? `, ${duration(minutes * MINUTE)} ago` : ""}. Nothing on it is live.` : "";
    const back = () => h("a", { class: "button", href: live }, "Back to live");
    renew(this.element, [lines, paused, live], () => [
      ...lines.map(([name, text]) => h("p", { class: "banner" }, h("b", {}, name), ` ${text}`)),
      ...(paused ? [h("p", { class: "banner paused", role: "status" }, h("b", {}, "PAUSED"), h("span", {}, paused), back())] : []),
    ]);
  }
}
