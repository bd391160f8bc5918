// Reads the events in another thread, so that the megabytes of a large cluster never hold up a frame.
// The document of a node is passed on whole; of a cluster's rows, only what the page draws.

import { askInLine } from "./ask.js";

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 15000;
const SILENT_MS = 10_000; // and five intervals without an event mean that the network is gone
const LOGIN_MS = 3000; // for the server to say whether to log in
const GONE = 404;
const FRAME_MS = 16;
const ROWS = 4; // passed on at a time, or more if
const BATCHES = 50; // would not be enough

const pick = (from, names) => Object.fromEntries(names.filter((name) => name in from).map((name) => [name, from[name]]));

const BOOKING = ["memory_bytes", "memory_limit_bytes", "instance_ratio", "allocated_ratio"];
const CLAIM = ["core_limit_ratio", "system"];
const TENANT = ["container", "mig", "workload", "use", "holding"];
const REST = ["reason", "memory_bytes", "use"];
const CARD = ["gpu", "fault", "readings", "instances", "use", "problems", "severity", "xids"];
const SNAPSHOT = ["node", "taken_at", "driver_version"];

const tenantOf = (tenant, labels) => ({
  ...pick(tenant, TENANT),
  labels: labels.get(podOf(tenant.container)),
  claims: tenant.claims.map((claim) => pick(claim, CLAIM)),
  booking: pick(tenant.booking, BOOKING),
});

const cardOf = (card, labels) => ({
  ...pick(card, CARD),
  tenants: card.tenants.map((tenant) => tenantOf(tenant, labels)),
  rest: card.rest.filter((rest) => rest.memory_bytes || rest.use?.watts || rest.use?.ratio).map((rest) => pick(rest, REST)),
  balance: card.balance && pick(card.balance, ["memory_bytes", "switches"]),
});

const podOf = ({ namespace, pod }) => `${namespace}/${pod}`;

// Of the insight of a node, only its sums are drawn: problems are those of the cluster.
const sumsOf = ({ insight }) => (insight ? { insight: pick(insight, ["sums"]) } : {});

// The labels that a bill may be grouped by.
const labelsOf = ({ pods = [] }) => [...new Set(pods.flatMap((pod) => Object.keys(pod.labels ?? {})))];

function snapshotOf(snapshot) {
  const labels = new Map((snapshot.pods ?? []).filter((pod) => pod.labels).map((pod) => [`${pod.namespace}/${pod.name}`, pod.labels]));
  const parts = (snapshot.parts ?? []).filter((part) => !part.up);
  return { ...pick(snapshot, SNAPSHOT), ...sumsOf(snapshot), parts, labels: labelsOf(snapshot), cards: snapshot.cards.map((card) => cardOf(card, labels)) };
}

const rowOf = (row) => ({ ...row, ...sumsOf(row), snapshot: row.snapshot && snapshotOf(row.snapshot) });

let queue = [];
let timer = 0;

/** Post one batch in each frame, so that the page stays smooth. */
function pass() {
  timer = 0;
  if (!queue.length) return;
  postMessage(queue.shift());
  timer = setTimeout(pass, FRAME_MS);
}

/** Pass on a cluster's document, or its change a few rows at a time. */
function passCluster(kind, { nodes, rows, ...head }) {
  if (kind === "full") {
    queue = [];
    postMessage({ kind, news: { ...head, nodes: nodes.map(rowOf) } });
    return;
  }
  const size = Math.max(ROWS, Math.ceil(rows.length / BATCHES));
  const batches = [];
  for (let at = 0; at < rows.length; at += size) batches.push(rows.slice(at, at + size).map(rowOf));
  (batches.length ? batches : [[]]).forEach((batch, place) => queue.push({ kind, news: { ...(place ? {} : head), rows: batch } }));
  if (!timer) pass();
}

class Reader {
  constructor(url) {
    this.url = url;
    this.wait = FIRST_WAIT;
    this.open();
    setInterval(() => this.listen(), SILENT_MS / 4);
  }

  open() {
    const source = new EventSource(this.url);
    for (const kind of ["full", "change"]) {
      source.addEventListener(kind, (event) => {
        this.wait = FIRST_WAIT;
        const news = JSON.parse(event.data);
        this.heardAt = Date.now();
        if (kind === "full") this.pause = news.replayed || !news.interval_seconds ? Infinity : SILENT_MS + 5000 * news.interval_seconds;
        if (news.nodes || news.rows) passCluster(kind, news);
        else postMessage({ kind, news });
      });
    }
    source.addEventListener("user", (event) => postMessage({ kind: "user", user: JSON.parse(event.data) }));
    source.onerror = async () => {
      // The browser connects again by itself, unless the answer was an error.
      const isRefused = source.readyState === EventSource.CLOSED;
      if (isRefused) this.later();
      postMessage({ kind: isRefused && (await this.isLoggedOut()) ? "out" : "away" });
    };
    this.source = source;
  }

  /** Connect again when nothing was heard for too long. A recording may be paused, and what is read once does not change. */
  listen() {
    if (!(Date.now() - this.heardAt > this.pause)) return;
    this.heardAt = Date.now();
    postMessage({ kind: "away" });
    this.again();
  }

  /** When a login has ended, the answer is an error, or a redirect that only the whole page can follow. */
  async isLoggedOut() {
    const answer = await fetch(this.url, { method: "HEAD", redirect: "manual", signal: AbortSignal.timeout(LOGIN_MS) }).catch(() => null);
    return answer !== null && (answer.type === "opaqueredirect" || [401, 403].includes(answer.status));
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.open(), this.wait);
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
  }

  /** Start again with a whole document. */
  again() {
    this.source.close();
    this.later();
  }
}

/** Fetches moments of the past, one at a time. Of those asked for meanwhile, only the newest is fetched. */
class MomentReader {
  ask(moment) {
    this.next = moment;
    if (!this.isAsking) this.#answer();
  }

  async #answer() {
    this.isAsking = true;
    while (this.next) {
      const { past, at } = this.next;
      this.next = null;
      const news = await askInLine(past, () => !this.next);
      if (news.error) postMessage({ kind: "past", at, error: news.error, isGone: news.status === GONE });
      else postMessage({ kind: "past", at, news: news.nodes ? { ...news, nodes: news.nodes.map(rowOf) } : news });
    }
    this.isAsking = false;
  }
}

let reader = null;
const moments = new MomentReader();
onmessage = ({ data }) => {
  if (data.past) moments.ask(data);
  else if (data.url) reader = new Reader(data.url);
  else reader.again();
};
