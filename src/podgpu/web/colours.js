// The colours of namespaces, which stay the same while the page is open. What is outside Kubernetes is grey.

const COUNT = 10;

export class Colours {
  constructor() {
    this.given = new Map();
  }

  /** Give colours to new namespaces: at first in the order of their names, later as they come. */
  learn(names) {
    for (const name of [...names].sort()) if (name && !this.given.has(name)) this.given.set(name, `c${this.given.size % COUNT}`);
  }

  of(tenant) {
    return this.given.get(tenant.namespace) ?? "cx";
  }
}
