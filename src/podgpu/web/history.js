// The last hour of the totals, kept in this browser: a ring of samples, so that memory does not grow.

const SECONDS = 3600;
const STEP = 10;
const SIZE = SECONDS / STEP;

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

export class History {
  constructor() {
    this.totals = new Ring(4);
    this.at = 0;
  }

  /** Take a sample, at most one every ten seconds. */
  note(model) {
    if (model.takenAt - this.at < STEP - 1) return;
    this.at = model.takenAt;
    const { sums } = model.insight;
    this.totals.put(this.at, [sums.allocated_gpus, sums.busy_gpus, sums.power_watts, sums.unused_gpus]);
  }
}
