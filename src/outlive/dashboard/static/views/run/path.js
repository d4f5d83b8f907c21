// @ts-check
// What decided how long a run took: from its end backwards, always the bar that ended last before. Pure.

/** The bars of a timeline that can hold a run up: [{row, bar}]; those of a child stand for the child. */
function leaves(timeline, now) {
  const found = [];
  for (const row of timeline.byKey.values()) {
    if (row.child !== null && (timeline.rows.get(row.child) ?? []).some((each) => each.bars.length)) continue;
    for (const bar of row.bars) {
      if (bar.undone) continue;
      found.push({ row, bar, from: bar.from, to: bar.to ?? now });
      // A back-off holds the run up as an attempt does.
      if (bar.retryAt) {
        const next = row.bars[row.bars.indexOf(bar) + 1];
        found.push({ row, bar, from: bar.to, to: Math.min(next?.from ?? now, Math.max(bar.retryAt, bar.to)) });
      }
    }
  }
  return found;
}

/** The critical path: {keys: rows on it, spans: [[from, to, key], ...] in order, length: milliseconds}. */
export function criticalPath(timeline, now = timeline.lastAt) {
  const end = timeline.end?.at ?? now;
  const byEnd = leaves(timeline, now)
    .filter((leaf) => leaf.to > leaf.from)
    .sort((a, b) => a.to - b.to || a.from - b.from);
  const spans = [];
  let [cursor, index] = [end, byEnd.length - 1];
  while (index >= 0) {
    const leaf = byEnd[index];
    index -= 1;
    if (leaf.to > cursor + 0.5 || leaf.from >= cursor) continue;
    spans.push([leaf.from, Math.min(leaf.to, cursor), leaf.row.key]);
    cursor = leaf.from;
  }
  spans.reverse();
  return {
    keys: new Set(spans.map((span) => span[2])),
    spans,
    length: spans.reduce((sum, [from, to]) => sum + to - from, 0),
  };
}
