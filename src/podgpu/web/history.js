// The last hour of the totals and of each pod, kept in this browser: a ring of samples each, so that memory does not grow.

import { known } from "./dom.js";

const SECONDS = 3600;
const STEP = 10;
const SIZE = SECONDS / STEP;
const MOST_GPUS = 1024; // with more, only the pod that is looked at is kept

class Ring {
  constructor(width) {
    this.width = width;
    this.values = new Float32Array(SIZE * width).fill(Number.NaN);
    this.times = new Float64Array(SIZE);
    this.count = 0;
  }

  put(at, values) {
    const place = this.count % SIZE;
    this.times[place] = at;
    for (let column = 0; column < this.width; column += 1) this.values[place * this.width + column] = values[column] ?? Number.NaN;
    this.count += 1;
  }

  /** Pairs of time and value, oldest first; a gap has NaN. */
  series(column) {
    const found = [];
    for (let number = Math.max(0, this.count - SIZE); number < this.count; number += 1) {
      const place = number % SIZE;
      found.push([this.times[place], this.values[place * this.width + column]]);
    }
    return found;
  }
}

export const COLUMNS = { busy: 0, memory: 1, watts: 2 };

export class History {
  constructor() {
    this.totals = new Ring(4);
    this.pods = new Map();
    this.at = 0;
  }

  /** Take a sample, at most one every ten seconds. A pod that has been gone for an hour is forgotten. */
  note(model, pod) {
    if (model.takenAt - this.at < STEP - 1) return;
    this.at = model.takenAt;
    const { sums } = model.insight;
    this.totals.put(this.at, [sums.allocated_gpus, sums.busy_gpus, sums.power_watts, sums.unused_gpus]);
    const now = new Map();
    for (const gpu of model.gpus) {
      if (!gpu.isUp) continue;
      for (const tenant of gpu.tenants) {
        if (model.gpus.length > MOST_GPUS && tenant.id !== pod) continue;
        if (!now.has(tenant.id)) now.set(tenant.id, []);
        const sums = now.get(tenant.id);
        [tenant.busy, tenant.memory, tenant.watts].forEach((value, column) => known(value) && (sums[column] = (sums[column] ?? 0) + value));
      }
    }
    for (const [id, values] of now) {
      if (!this.pods.has(id)) this.pods.set(id, new Ring(3));
      this.pods.get(id).put(this.at, values);
    }
    for (const [id, ring] of this.pods) {
      if (this.at - ring.times[(ring.count - 1) % SIZE] > SECONDS) this.pods.delete(id);
    }
  }
}
