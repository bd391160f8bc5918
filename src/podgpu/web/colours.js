// The colours of namespaces, which stay the same while the page is open. What is outside Kubernetes is grey.

const COUNT = 10;
// Pairs that are hard to tell apart side by side, in light or dark. A test computes them from app.css.
const LIKE = [[0, 8], [1, 3], [1, 6], [3, 8], [4, 9]];

const isLike = (one, other) => one === other || LIKE.some((pair) => pair.includes(one) && pair.includes(other));

/** The pairs of names that are together on one card, as learn() takes them. */
export function pairsOf(names) {
  const all = [...new Set(names)].filter(Boolean).sort();
  return all.flatMap((one, place) => all.slice(place + 1).map((other) => `${one}\n${other}`));
}

export class Colours {
  constructor() {
    this.given = new Map();
    this.beside = new Map();
  }

  /** Give colours to new namespaces, in the order of their names, later as they come. Those that share a card, by `pairs`, get colours that differ. */
  learn(names, pairs = []) {
    const news = pairs.filter((pair) => !this.#isKnown(pair));
    for (const name of [...names].sort()) if (name && !this.given.has(name)) this.#give(name);
    // Two that had no card in common may have one now: the newer gets another colour, if there is a better one.
    for (const pair of news) {
      const [one, other] = pair.split("\n");
      if (this.given.has(one) && this.given.has(other) && isLike(this.#number(one), this.#number(other))) this.#give(this.#newer(one, other));
    }
  }

  #isKnown(pair) {
    const [one, other] = pair.split("\n");
    if (this.beside.get(one)?.has(other)) return true;
    for (const [name, neighbour] of [[one, other], [other, one]]) this.beside.set(name, (this.beside.get(name) ?? new Set()).add(neighbour));
    return false;
  }

  #number(name) {
    return Number(this.given.get(name).slice(1));
  }

  #newer(one, other) {
    const order = [...this.given.keys()];
    return order.indexOf(one) > order.indexOf(other) ? one : other;
  }

  /** The colour that least of its neighbours have, or one like it; of these the one that is used least. */
  #give(name) {
    const taken = [...(this.beside.get(name) ?? [])].filter((other) => this.given.has(other)).map((other) => this.#number(other));
    const used = [...this.given].filter(([other]) => other !== name).map(([, look]) => Number(look.slice(1)));
    const count = (list, is) => list.filter(is).length;
    const rank = (colour) => 1000 * count(taken, (other) => isLike(colour, other)) + count(used, (other) => other === colour);
    const colours = Array.from({ length: COUNT }, (_, colour) => colour).sort((a, b) => rank(a) - rank(b) || a - b);
    const before = this.given.has(name) ? this.#number(name) : -1;
    if (before < 0 || rank(colours[0]) < rank(before)) this.given.set(name, `c${colours[0]}`);
  }

  of(tenant) {
    return this.given.get(tenant.namespace) ?? "cx";
  }
}
