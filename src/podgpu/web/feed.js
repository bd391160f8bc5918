// The live document: whole at first, then its changes. It goes on after the agent was away.

/** Lay a change upon a document: a merge patch; an object upon an array changes elements by their number. */
export function apply(target, patch) {
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete target[key];
    else if (isObject(value) && typeof target[key] === "object") apply(target[key], value);
    else target[key] = value;
  }
}

const isObject = (value) => typeof value === "object" && !Array.isArray(value);

/** Lay changed rows of nodes upon a cluster's document. */
export function applyRows(target, change) {
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

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 15000;

/** Calls `onDocument(document)` for each newer one, and `onState("live" | "away")`. */
export class Feed {
  constructor(url, { onDocument, onState }) {
    this.url = url;
    this.onDocument = onDocument;
    this.onState = onState;
    this.document = null;
    this.wait = FIRST_WAIT;
    this.open();
  }

  open() {
    const source = new EventSource(this.url);
    this.source = source;
    source.addEventListener("full", (event) => this.take(() => (this.document = JSON.parse(event.data))));
    source.addEventListener("change", (event) =>
      this.take(() => {
        const change = JSON.parse(event.data);
        if (change.rows) applyRows(this.document, change);
        else apply(this.document, change);
      }),
    );
    source.onerror = () => {
      this.onState("away");
      // The browser comes again by itself, unless the answer was an error.
      if (source.readyState === EventSource.CLOSED) this.later();
    };
  }

  take(change) {
    try {
      change();
    } catch (error) {
      console.error("podgpu: an event makes no sense; asking for the whole document", error);
      this.source.close();
      this.later();
      return;
    }
    this.wait = FIRST_WAIT;
    this.onState("live");
    this.onDocument(this.document);
  }

  later() {
    setTimeout(() => this.open(), this.wait);
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
  }
}
