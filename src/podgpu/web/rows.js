// What the server makes of the newest document: rows, the same that `podgpu top` and `podgpu idle` show, and the facts of a pod or a GPU.
// They are asked for while they are looked at.

import { ask, askInLine } from "./ask.js";

const LEAST_MS = 1000;
const EARLY = 0.9; // of the interval: documents do not come on the millisecond
const SETTLE_MS = 1500;
const KEPT_MS = 300_000; // of what is no longer looked at

export class Rows {
  constructor(onNews) {
    this.onNews = onNews;
    this.kept = new Map();
    this.past = new Map();
  }

  /** The answer for a moment of the past; undefined until it is here. */
  at(query, moment) {
    const key = `${query}&at=${moment}`;
    if (this.past.get(query)?.key !== key) {
      const asked = { key };
      this.past.set(query, asked);
      const isWanted = () => this.past.get(query) === asked;
      answerOf(key, undefined, (path) => askInLine(path, isWanted)).then((answer) => ((asked.answer = answer), this.onNews()));
    }
    return this.past.get(query).answer;
  }

  /** The newest answer; undefined until the first is here. With `error` if the last attempt failed. */
  of(query, { takenAt, interval, isCluster }) {
    if (!this.kept.has(query)) this.#forget().set(query, { at: 0 });
    const kept = this.kept.get(query);
    if (kept.seen !== takenAt) Object.assign(kept, { seen: takenAt, changedAt: Date.now() });
    if (kept.takenAt === takenAt || kept.isAsking || kept.timer) return kept.answer;
    const pause = Math.max(LEAST_MS, interval * 1000);
    // A cluster's document changes node by node during a round: ask for rows at its end.
    const settled = isCluster && kept.answer ? kept.changedAt + Math.min(SETTLE_MS, pause / 4) : 0;
    const wait = Math.min(Math.max(kept.at + EARLY * pause, settled), kept.at + 2 * pause) - Date.now();
    if (wait <= 0) this.#ask(query, kept, takenAt);
    else kept.timer = setTimeout(() => ((kept.timer = 0), this.onNews()), wait);
    return kept.answer;
  }

  /** Drop what was asked for long ago: many pods may be looked at, one after the other. */
  #forget() {
    for (const [query, { at, isAsking, timer }] of this.kept) if (!isAsking && !timer && Date.now() - at > KEPT_MS) this.kept.delete(query);
    return this.kept;
  }

  async #ask(query, kept, takenAt) {
    Object.assign(kept, { takenAt, at: Date.now(), isAsking: true });
    kept.answer = await answerOf(query, kept.answer);
    kept.isAsking = false;
    this.onNews();
  }
}

/** After a failure, the answer before with the `error`. */
async function answerOf(query, before, asking = ask) {
  const answer = await asking(`api/v1/${query}`);
  return answer.error ? { rows: [], ...before, ...answer } : answer;
}
