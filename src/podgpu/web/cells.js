// The cells of the fleet: a block for each node with a cell for each GPU. Where they are, and how they are painted.

import { known } from "./dom.js";

const SIZES = [18, 16, 14, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2]; // pixels of a cell
const COLUMNS = [16, 8, 4, 2]; // of a block
const NAMED = 74; // pixels that the name of a node needs
const NAME = 13; // pixels of its height
const MARKED = 5; // larger cells have thicker marks
const RING = 4; // pixels between a cell and its ring

/** Lay out blocks with these counts of cells, in the largest size that fits. Returns the places of all cells, in order. */
export function layOut(counts, width, height) {
  const most = Math.max(1, ...counts);
  let found = null;
  for (const size of SIZES) {
    for (const columns of COLUMNS) {
      if (columns > COLUMNS.at(-1) && columns / 2 >= most) continue;
      const made = blocks(counts.length, Math.min(columns, most), Math.ceil(most / columns), size, width);
      if (made.width <= width && (!found || found.height > height) && (!found || made.height < found.height)) found = made;
    }
    if (found && found.height <= height) break;
  }
  return place(counts, found);
}

function blocks(count, columns, rows, size, width) {
  const gap = size > 8 ? 10 : size > 4 ? 4 : 2;
  const wide = columns * (size + 1) - 1 + gap;
  const name = size > 8 && wide >= NAMED ? NAME : 0;
  const across = Math.max(1, Math.floor((width + gap) / wide));
  const high = rows * (size + 1) - 1 + name + (name ? 8 : gap);
  return { size, columns, name, wide, high, across, width: Math.min(count, across) * wide - gap, height: Math.ceil(count / across) * high };
}

function place(counts, shape) {
  const { size, columns, name, wide, high, across } = shape;
  const total = counts.reduce((sum, count) => sum + count, 0);
  const [xs, ys] = [new Int32Array(total), new Int32Array(total)];
  let at = 0;
  counts.forEach((count, block) => {
    for (let cell = 0; cell < count; cell += 1, at += 1) {
      xs[at] = (block % across) * wide + (cell % columns) * (size + 1);
      ys[at] = Math.floor(block / across) * high + name + Math.floor(cell / columns) * (size + 1);
    }
  });
  return { ...shape, xs, ys, total };
}

/** The cell at that point, or the nearest one. */
export function cellAt({ xs, ys, size, total }, x, y) {
  let [found, least] = [-1, Infinity];
  for (let at = 0; at < total; at += 1) {
    const [across, down] = [Math.max(xs[at] - x, 0, x - xs[at] - size), Math.max(ys[at] - y, 0, y - ys[at] - size)];
    if (across === 0 && down === 0) return at;
    if (across + 2 * down < least) [found, least] = [at, across + 2 * down];
  }
  return found;
}

/** The cell above or below, or the same if there is none. */
export function nextRow({ xs, ys, total }, from, step) {
  let [found, least] = [from, Infinity];
  for (let at = 0; at < total; at += 1) {
    const down = (ys[at] - ys[from]) * step;
    if (down <= 0) continue;
    const far = down * 10_000 + Math.abs(xs[at] - xs[from]);
    if (far < least) [found, least] = [at, far];
  }
  return found;
}

/** Paint a cell. `parts` are [part of its width, part of its height that is filled, colour]. */
export function paint(context, gpu, parts, { x, y, size, inks, isDim }) {
  context.globalAlpha = 1;
  context.clearRect(x - 1, y - 1, size + 2, size + 2);
  context.globalAlpha = isDim ? 0.2 : gpu.node.state === "fresh" || gpu.isDark ? 1 : 0.5;
  context.fillStyle = gpu.isDark ? inks.dark : inks.track;
  context.fillRect(x, y, size, size);
  if (gpu.isDark) {
    cross(context, x, y, size, inks);
    if (gpu.hasXid) dot(context, x, y, size, inks, gpu.severity === "critical");
    return;
  }
  if (!gpu.isUp) {
    hatch(context, x, y, size, inks);
    return;
  }
  let left = x;
  for (const [share, level, ink] of parts) {
    const wide = Math.min(x + size - left, Math.max(share > 0 ? 1 : 0, Math.round(share * size)));
    const high = level > 0 ? Math.max(1, Math.round(level * size)) : 0;
    context.fillStyle = ink;
    context.fillRect(left, y + size - high, wide, high);
    left += wide;
  }
  if (known(gpu.idleFor)) outline(context, x, y, size, inks.warn);
  if (gpu.hasXid) dot(context, x, y, size, inks, gpu.severity === "critical");
}

/** Of small cells only the lower corner is drawn: thousands of frames would hide what is wrong. */
function outline(context, x, y, size, ink) {
  if (size <= MARKED) {
    context.fillStyle = ink;
    context.fillRect(x, y + size - 1, size, 1);
    context.fillRect(x, y, 1, size);
    return;
  }
  const line = 1.5;
  context.strokeStyle = ink;
  context.lineWidth = line;
  context.strokeRect(x + line / 2, y + line / 2, size - line, size - line);
}

/** Crossed out, so that it is told from a busy cell without colour too. */
function cross(context, x, y, size, inks) {
  if (size <= MARKED) {
    context.fillStyle = inks.bad;
    for (let at = 0; at < size; at += 1) {
      context.fillRect(x + at, y + at, 1, 1);
      context.fillRect(x + size - 1 - at, y + at, 1, 1);
    }
    return;
  }
  context.strokeStyle = inks.bad;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x + 1, y + 1);
  context.lineTo(x + size - 1, y + size - 1);
  context.moveTo(x + size - 1, y + 1);
  context.lineTo(x + 1, y + size - 1);
  context.stroke();
}

/** A small cell has no room for lines: it is full. */
function hatch(context, x, y, size, inks) {
  if (size <= MARKED) {
    context.fillStyle = inks.bad;
    context.fillRect(x, y, size, size);
    return;
  }
  context.save();
  context.beginPath();
  context.rect(x, y, size, size);
  context.clip();
  context.fillStyle = inks.badbg;
  context.fillRect(x, y, size, size);
  context.strokeStyle = inks.bad;
  context.lineWidth = 1.5;
  context.beginPath();
  for (let from = -size; from < size; from += 4) {
    context.moveTo(x + from, y + size);
    context.lineTo(x + from + size, y);
  }
  context.stroke();
  context.restore();
}

/** A mark in the corner: a triangle for what is critical, else a dot. */
function dot(context, x, y, size, inks, isCritical) {
  const radius = Math.max(1.5, size / (isCritical ? 4 : 5));
  const [left, top] = [x + size - radius - 0.5, y + radius + 0.5];
  for (const [wide, ink] of [[radius + 1, inks.card], [radius, isCritical ? inks.bad : inks.warn]]) {
    context.beginPath();
    if (isCritical) {
      context.moveTo(left, top - wide);
      context.lineTo(left + wide, top + wide);
      context.lineTo(left - wide, top + wide);
    } else context.arc(left, top, wide, 0, 7);
    context.fillStyle = ink;
    context.fill();
  }
}

/** A ring around a cell that must be seen among thousands. */
export function ring(context, x, y, size, inks) {
  const middle = [x + size / 2, y + size / 2];
  for (const [ink, wide] of [[inks.card, 4], [inks.bad, 2]]) {
    context.beginPath();
    context.arc(...middle, size / 2 + RING, 0, 7);
    context.strokeStyle = ink;
    context.lineWidth = wide;
    context.stroke();
  }
}
