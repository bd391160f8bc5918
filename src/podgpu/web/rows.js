// Rows that the server makes, the same that `podgpu top` and `podgpu idle` show. They are asked for while they are looked at.

const LEAST_MS = 1000;
const EARLY = 0.9; // of the interval: documents do not come to the millisecond

export class Rows {
  constructor(onNews) {
    this.onNews = onNews;
    this.kept = new Map();
  }

  /** The newest answer; undefined while the first is on its way. With `error` if the last try had none. */
  of(by, { takenAt, interval }) {
    const kept = this.kept.get(by) ?? { at: 0 };
    const wait = kept.at + Math.max(LEAST_MS, EARLY * interval * 1000) - Date.now();
    if (kept.takenAt !== takenAt && !kept.isAsking && !kept.timer) {
      this.kept.set(by, kept);
      if (wait <= 0) this.#ask(by, kept, takenAt);
      else kept.timer = setTimeout(() => ((kept.timer = 0), this.onNews()), wait);
    }
    return kept.answer;
  }

  async #ask(by, kept, takenAt) {
    Object.assign(kept, { takenAt, at: Date.now(), isAsking: true });
    const answer = await fetch(`api/v1/rows?by=${by}`).catch(() => null);
    const said = await (answer?.ok ? answer.json() : answer?.text())?.catch(() => null);
    kept.answer = answer?.ok && said ? said : { rows: [], ...kept.answer, error: said || "The server does not answer." };
    kept.isAsking = false;
    this.onNews();
  }
}
