// @ts-check
// Where two runs of one workflow differ. Pure.

/** How long a row took: from its first bar to its last; null if it took no time. */
function lengthOf(row, now) {
  if (!row.bars.length) return null;
  return Math.max(Math.max(...row.bars.map((bar) => bar.to ?? now)) - Math.min(...row.bars.map((bar) => bar.from)), 0);
}

function sideOf(row, now) {
  return (
    row && {
      length: lengthOf(row, now),
      state: row.state,
      attempts: row.bars.filter((bar) => bar.attempt).length,
    }
  );
}

/**
 * The rows of two timelines by their keys: [{key, name, a, b, longer (milliseconds by which the first took longer),
 * outcome}].
 */
export function differences(a, b, now) {
  const keys = new Set([...a.byKey.keys(), ...b.byKey.keys()]);
  const found = [];
  for (const key of keys) {
    const [left, right] = [a.byKey.get(key), b.byKey.get(key)];
    const [one, two] = [sideOf(left, now), sideOf(right, now)];
    const longer = one && two && one.length !== null && two.length !== null ? one.length - two.length : null;
    const outcome =
      one && two && one.state !== two.state
        ? `${one.state} here, ${two.state} there`
        : !one || !two
          ? `${(one ?? two).state} ${one ? 'here' : 'there'}`
          : '';
    found.push({ key, name: (left ?? right).label, a: one, b: two, longer, outcome });
  }
  const weight = (it) => (it.longer === null ? Math.max(it.a?.length ?? 0, it.b?.length ?? 0) : Math.abs(it.longer));
  return found.sort(
    (left, right) => Number(Boolean(right.outcome)) - Number(Boolean(left.outcome)) || weight(right) - weight(left),
  );
}
