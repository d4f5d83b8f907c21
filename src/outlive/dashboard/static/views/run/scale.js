// @ts-check
// Where moments are on a drawing. The axis is not even: time in which no worker owned the run (it waits, or its worker
// was lost) is squeezed, so that steps of milliseconds stay visible beside an approval of two days. Within a piece the
// axis is even. Pure.

const IDLE_SHARE = 0.12;
/** A piece of idle time is squeezed if it is longer than this share of all busy time. */
const IDLE_MAX = 0.25;
const STEPS = [1, 2, 5];

/**
 * A part of the time from one moment to another, and where it is drawn: two places, known when all pieces are.
 * @typedef {{from: number, to: number, squeezed: boolean, size: number, start: number, end: number}} Piece
 */

/**
 * Places of moments between 0 and 1. `busy` are the spans in which something runs: [[from, to], ...]; `moments` are
 * instants beside which there should be room. With `even`, one piece.
 */
export class Scale {
  /**
   * @param {number} from
   * @param {number} to
   * @param {[number, number][]} busy
   * @param {{even?: boolean, moments?: number[]}} how
   */
  constructor(from, to, busy = [], { even = false, moments = [] } = {}) {
    this.from = from;
    this.to = Math.max(to, from + 0.001);
    this.pieces = even
      ? [pieceOf(from, this.to, false, this.to - from)]
      : piecesOf(this.from, this.to, joined(busy, moments, this.from, this.to));
    const whole = this.pieces.reduce((sum, piece) => sum + piece.size, 0);
    let place = 0;
    for (const piece of this.pieces) {
      piece.start = place;
      place += piece.size / whole;
      piece.end = place;
    }
  }

  /** The place of a moment. */
  at(moment) {
    const piece = this.find((each) => moment <= each.to);
    const share = (moment - piece.from) / (piece.to - piece.from);
    return piece.start + Math.min(Math.max(share, 0), 1) * (piece.end - piece.start);
  }

  /** The moment at a place. */
  moment(place) {
    const piece = this.find((each) => place <= each.end);
    const share = (place - piece.start) / (piece.end - piece.start || 1);
    return piece.from + Math.min(Math.max(share, 0), 1) * (piece.to - piece.from);
  }

  find(fits) {
    let [low, high] = [0, this.pieces.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (fits(this.pieces[middle])) high = middle;
      else low = middle + 1;
    }
    return this.pieces[low];
  }

  /** Ticks between two places, with room for so many: [{place, after (milliseconds since the beginning), squeezed}]. */
  ticks(first, last, count) {
    const ticks = [];
    for (const piece of this.pieces) {
      const [start, end] = [Math.max(piece.start, first), Math.min(piece.end, last)];
      const room = ((end - start) / (last - first || 1)) * count;
      if (end <= start) continue;
      if (piece.squeezed || room < 1.5) {
        if (piece.end <= last && piece.end >= first && piece !== this.pieces[this.pieces.length - 1])
          ticks.push({ place: piece.end, after: piece.to - this.from, squeezed: piece.squeezed });
        continue;
      }
      const [from, to] = [this.moment(start), this.moment(end)];
      const step = niceStep((to - from) / room);
      for (let after = Math.ceil((from - this.from) / step - 1e-9) * step; this.from + after <= to; after += step)
        ticks.push({ place: this.at(this.from + after), after, squeezed: false });
    }
    return thinned(ticks, ((last - first) / count) * 0.7);
  }
}

/** Ticks that are not closer to each other than this. */
function thinned(ticks, room) {
  const kept = [];
  for (const tick of ticks) if (!kept.length || tick.place - kept[kept.length - 1].place >= room) kept.push(tick);
  return kept;
}

function niceStep(wanted) {
  if (wanted >= 60_000) {
    const sizes = [
      60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000,
    ];
    const found = sizes.find((size) => size >= wanted);
    return found ?? Math.ceil(wanted / 86_400_000) * 86_400_000;
  }
  if (wanted > 20_000) return wanted > 30_000 ? 60_000 : 30_000;
  const power = 10 ** Math.floor(Math.log10(Math.max(wanted, 1e-6)));
  return (STEPS.find((each) => each * power >= wanted) ?? 10) * power;
}

/** Spans and moments as few spans, in order, within an interval. */
function joined(spans, moments, from, to) {
  const all = [...spans, ...moments.map((at) => [at, at])]
    .filter((span) => span[1] >= from && span[0] <= to)
    .sort((a, b) => a[0] - b[0]);
  const found = [];
  for (const [begin, end] of all) {
    const last = found[found.length - 1];
    if (last && begin <= last[1]) last[1] = Math.max(last[1], end);
    else found.push([Math.max(begin, from), Math.min(end, to)]);
  }
  return found;
}

/** @returns {Piece} */
const pieceOf = (from, to, squeezed, size) => ({ from, to, squeezed, size, start: 0, end: 0 });

function piecesOf(from, to, busy) {
  const total = busy.reduce((sum, [begin, end]) => sum + end - begin, 0);
  const whole = to - from;
  const most = Math.max(total, whole * 1e-5) * IDLE_SHARE;
  /** @type {Piece[]} */
  const pieces = [];
  let done = from;
  const add = (end, squeezed) => {
    if (end <= done) return;
    const last = pieces[pieces.length - 1];
    if (last && !last.squeezed && !squeezed) {
      last.to = end;
      last.size = end - last.from;
    } else pieces.push(pieceOf(done, end, squeezed, end - done));
    done = end;
  };
  for (const [begin, end] of [...busy, [to, to]]) {
    const idle = begin - done;
    add(begin, idle > most * 2);
    add(end, false);
  }
  if (!pieces.length) pieces.push(pieceOf(from, to, false, whole));
  squeeze(pieces);
  return pieces;
}

/** All squeezed pieces together get at most a part of the width; each by the logarithm of its length. */
function squeeze(pieces) {
  const even = pieces.filter((piece) => !piece.squeezed).reduce((sum, piece) => sum + piece.size, 0);
  const squeezed = pieces.filter((piece) => piece.squeezed);
  if (!squeezed.length) return;
  const base = even || 1;
  const share = Math.min(IDLE_MAX + 0.04 * squeezed.length, 0.5);
  const logs = squeezed.map((piece) => Math.log2(2 + (piece.to - piece.from) / base));
  const sum = logs.reduce((total, each) => total + each, 0);
  squeezed.forEach((piece, index) => {
    piece.size = ((base * share) / (1 - share)) * (logs[index] / sum);
  });
}

/** The part of a scale that is seen: two places, zoomed around one and moved. */
export function zoomed([first, last], around, factor) {
  const size = Math.min(Math.max((last - first) * factor, 1e-6), 1);
  const start = Math.min(Math.max(around - (around - first) * (size / (last - first)), 0), 1 - size);
  return [start, start + size];
}

/** The same part, moved by a share of itself. */
export function panned([first, last], by) {
  const size = last - first;
  const start = Math.min(Math.max(first + by * size, 0), 1 - size);
  return [start, start + size];
}
