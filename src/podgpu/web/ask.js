// Questions to the server.

/** Ask for a document. Without one, the result has the `error` and, if there was an answer, its `status`. `read` makes the content of an answer. */
export async function ask(path, read = (answer) => answer.json()) {
  const answer = await fetch(path).catch(() => null);
  const content = await (answer?.ok ? read(answer) : answer?.text())?.catch(() => null);
  return answer?.ok && content ? content : { error: (!answer?.ok && content?.trim()) || "the server does not answer", status: answer?.status };
}

const BUSY = 503;
const PAUSE_MS = 1000;
const MOST_PAUSES = 60;

/** Ask for a moment of the past. A busy server is asked again, for as long as `isWanted`. */
export async function askInLine(path, isWanted = () => true, read = undefined) {
  let answer = await ask(path, read);
  for (let pauses = 0; answer.status === BUSY && pauses < MOST_PAUSES && isWanted(); pauses++) {
    await new Promise((done) => setTimeout(done, PAUSE_MS));
    if (isWanted()) answer = await ask(path, read);
  }
  return answer;
}

/** The newest document of the path that was asked for last. */
export class LatestAnswer {
  constructor(onNews) {
    this.onNews = onNews;
  }

  /** Undefined until the first answer is here. After a failure, the document before with the `error`. */
  of(path, refreshMs) {
    if (this.path !== path) Object.assign(this, { path, at: 0, answer: undefined });
    if (Date.now() - this.at >= refreshMs) this.#ask(path);
    return this.answer;
  }

  async #ask(path) {
    this.at = Infinity;
    const answer = await ask(path);
    if (this.path !== path) return;
    this.at = Date.now();
    this.answer = answer.error ? { ...this.answer, ...answer } : answer;
    this.onNews();
  }
}
