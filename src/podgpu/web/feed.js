// The live document: whole at first, then its changes. It continues after the agent was unreachable.

/** Apply a change to a document: a merge patch, in which an object changes elements of an array by their number. */
function apply(target, patch) {
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete target[key];
    else if (isObject(value) && typeof target[key] === "object") apply(target[key], value);
    else target[key] = value;
  }
}

const isObject = (value) => typeof value === "object" && !Array.isArray(value);

/** Replace changed rows in a cluster's document. */
function applyRows(target, change) {
  const { rows, gone = [], ...head } = change;
  Object.assign(target, head);
  const left = new Set(gone);
  const newer = new Map(rows.map((row) => [row.name, row]));
  target.nodes = target.nodes.filter((node) => !left.has(node.name)).map((node) => take(newer, node));
  if (newer.size) {
    target.nodes.push(...newer.values());
    target.nodes.sort((a, b) => (a.name < b.name ? -1 : 1));
  }
}

function take(newer, node) {
  const row = newer.get(node.name);
  newer.delete(node.name);
  return row ?? node;
}

/** Start the worker that reads the events. The policy allows no other script. */
function startWorker() {
  const path = new URL("worker.js", import.meta.url).href;
  const policy = globalThis.trustedTypes?.createPolicy("podgpu", { createScriptURL: () => path });
  return new Worker(policy ? policy.createScriptURL("") : path, { type: "module" });
}

/**
 * Calls `onDocument` with each newer document, `onState` with "live", "away" or "out", `onUser` with who has logged in, if a proxy
 * says so, and `onPast` with the answer to `past`.
 */
export class Feed {
  constructor(url, { onDocument, onState, onUser, onPast }) {
    this.document = null;
    this.worker = startWorker();
    this.worker.onmessage = ({ data }) => {
      if (data.kind === "past") onPast(data);
      else if (data.kind === "user") onUser(data.user);
      else if (data.kind === "away" || data.kind === "out" || !this.take(data)) onState(data.kind === "out" ? "out" : "away");
      else {
        onState("live");
        onDocument(this.document);
      }
    };
    this.worker.postMessage({ url: new URL(url, document.baseURI).href });
  }

  /** Ask for the document of a moment. */
  past(at) {
    this.worker.postMessage({ past: new URL(`api/v1/history?at=${at}`, document.baseURI).href, at });
  }

  /** Take a document or a change of it. If a change cannot be applied, ask for the whole document. */
  take({ kind, news }) {
    try {
      if (kind === "full") this.document = news;
      else if (news.rows) applyRows(this.document, news);
      else apply(this.document, news);
      return true;
    } catch (error) {
      console.error("podgpu: an event cannot be applied; asking for the whole document", error);
      this.worker.postMessage({});
      return false;
    }
  }
}
