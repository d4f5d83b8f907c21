// @ts-check
// The timeline as a drawing: names on the left, bars on the right; only the rows that are seen are drawn, so that ten
// thousand cost what fifty do.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useSignal } from '../../vendor/preact.js';
import { lasts, exact } from '../../parts/time.js';
import { useKeys } from '../../keys.js';
import { here } from '../../router.js';
import { Scale, panned, zoomed } from './scale.js';
import { criticalPath } from './path.js';
import { millis } from './timeline.js';

const ROW = 30;
const BAR = 14;
const AXIS = 54;
const CRASH = 22;
/** How wide a few words are, about. */
const LETTER = 6.9;
const AROUND = 10;
/** How the keys of rows begin that are not in the journal so far: of steps that run now. */
export const NOW = 'now:';
const NONE = [];
const RIGHT = 26;

/** How long a row took: from its first bar to its last. */
export function rowLength(row, now) {
  if (!row.bars.length) return null;
  const from = Math.min(...row.bars.map((bar) => bar.from));
  const to = Math.max(...row.bars.map((bar) => bar.to ?? now));
  return Math.max(to - from, 0);
}

/** What stands beside the last bar of a row. */
function beside(row, now) {
  const parts = [];
  const tries = row.bars.filter((bar) => bar.attempt).length;
  if (tries > 1) parts.push(`${tries} attempts`);
  if (row.bars.length && row.kind !== 'parked') parts.push(lasts(rowLength(row, now)));
  if (row.wasLost) parts.push('ran again after the crash');
  if (row.note) parts.push(row.note);
  return parts.join(', ').slice(0, 90);
}

/**
 * Props: timeline, steps (that run now), version (redraws), now, from and to (of the run, in milliseconds), number (of
 * the run in its tree), selected (key), urlOf(key), choose(key), isLoading (nothing is known yet), collapsed (signal
 * with a Set), label, keys, critical, even, view (signal [first, last]), beside: {timeline, from} of another run, so
 * that both are drawn with the same scale.
 *
 * @param {any} props
 */
export function Gantt({
  timeline,
  version,
  now,
  from,
  to,
  number = 0,
  running = false,
  steps = NONE,
  isLoading = false,
  selected,
  urlOf,
  choose,
  collapsed,
  label,
  keys = true,
  critical = false,
  even = false,
  view,
  beside: other = null,
}) {
  const box = useRef(null);
  const width = useSignal(0);
  const seen = useSignal([0, 40]);
  const drag = useSignal(null);
  const atEnd = useRef(false);
  const lines = useMemo(
    () => withNow(timeline.lines(collapsed.value, number), timeline, running, steps),
    [timeline, version, collapsed.value, number, running, steps],
  );
  const scale = useMemo(
    () =>
      new Scale(from, to, [...busyOf(timeline, to, number), ...shifted(other, from, to)], {
        even,
        moments: [from],
      }),
    [timeline, version, even, other?.timeline, Math.round(from), Math.round(to)],
  );
  const path = useMemo(
    () => (critical ? criticalPath(timeline, now) : null),
    [timeline, version, critical, timeline.byKey.size < 1000 && now],
  );
  const names_ = width.value < 620 ? 116 : 190;
  const room = Math.max(width.value - names_ - RIGHT, 80);
  const [first, last] = view.value;
  const x = (moment) => names_ + ((scale.at(moment) - first) / (last - first)) * room;

  const look = () => {
    const element = box.current;
    if (!element) return;
    const top = Math.floor(element.scrollTop / ROW);
    atEnd.current = element.scrollTop > 0 && element.scrollTop + element.clientHeight > element.scrollHeight - ROW;
    const wanted = [top - (top % AROUND) - AROUND, top + Math.ceil(element.clientHeight / ROW) + 2 * AROUND];
    if (wanted.join() !== seen.peek().join()) seen.value = wanted;
  };
  useLayoutEffect(() => {
    // Who has scrolled to the end stays there while it grows.
    const element = box.current;
    if (element && atEnd.current) element.scrollTop = element.scrollHeight;
  }, [lines.length]);
  useLayoutEffect(() => {
    const measure = () => {
      if (box.current) width.value = box.current.clientWidth;
      look();
    };
    const watcher = new ResizeObserver(measure);
    watcher.observe(box.current);
    measure();
    return () => watcher.disconnect();
  }, []);
  useEffect(() => {
    // What is chosen by a link is brought into view.
    const index = lines.findIndex(({ row }) => row.key === selected);
    const element = box.current;
    if (index < 0 || !element) return;
    const top = index * ROW;
    if (top < element.scrollTop || top + ROW * 2 + AXIS > element.scrollTop + element.clientHeight)
      element.scrollTop = Math.max(top - element.clientHeight / 2, 0);
  }, [selected]);
  useEffect(() => {
    // Zooming with the wheel must not scroll the page, and only a listener that is not passive may say so.
    const element = box.current;
    const wheel = (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const at = placeOf(event);
      view.value = zoomed(view.peek(), at, event.deltaY > 0 ? 1.25 : 0.8);
    };
    element.addEventListener('wheel', wheel, { passive: false });
    return () => element.removeEventListener('wheel', wheel);
  }, [names_, room]);

  const placeOf = (event) => {
    const left = box.current.getBoundingClientRect().left + names_;
    const [start, end] = view.peek();
    return start + Math.min(Math.max((event.clientX - left) / room, 0), 1) * (end - start);
  };
  // Keys may come faster than the page is drawn: what is chosen now is in the URL.
  const current = () => here.peek().query.get('at');
  const move = (by) => {
    const index = lines.findIndex(({ row }) => row.key === current());
    const next = lines[index < 0 ? 0 : Math.min(Math.max(index + by, 0), lines.length - 1)];
    if (next?.row.key && next.row.key !== current()) choose(next.row.key);
  };
  const fold = () => {
    const line = lines.find(({ row }) => row.key === current());
    if (line && line.row.child !== null) toggle(line.row.key);
  };
  const toggle = (key) => {
    const next = new Set(collapsed.peek());
    if (!next.delete(key)) next.add(key);
    collapsed.value = next;
  };
  const middle = () => (view.peek()[0] + view.peek()[1]) / 2;
  useKeys(
    keys
      ? {
          j: ['next row of the timeline', () => move(1)],
          k: ['row before', () => move(-1)],
          '+': [
            'zoom in',
            () => {
              view.value = zoomed(view.peek(), middle(), 0.5);
            },
          ],
          '-': [
            'zoom out',
            () => {
              view.value = zoomed(view.peek(), middle(), 2);
            },
          ],
          z: [
            'zoom to what is chosen, or out',
            () => {
              view.value = zoomTo(lines.find(({ row }) => row.key === current())?.row, scale, now, view.peek());
            },
          ],
          h: [
            'earlier',
            () => {
              view.value = panned(view.peek(), -0.25);
            },
          ],
          l: [
            'later',
            () => {
              view.value = panned(view.peek(), 0.25);
            },
          ],
          o: ['fold or unfold the child', fold],
        }
      : {},
  );

  const [top, bottom] = [Math.max(seen.value[0], 0), Math.min(seen.value[1], lines.length)];
  const height = lines.length * ROW;
  const ticks = scale.ticks(first, last, Math.max(Math.floor(room / 90), 2));
  const right = names_ + room;
  const gaps = timeline.gaps.filter((gap) => x(gap.to) > names_ && x(gap.from) < right);
  const clip = `clip-${number}-${label.replace(/\W/g, '')}`;
  const pointer = {
    onPointerDown: (event) => {
      if (event.button === 0 && event.pointerType === 'mouse')
        drag.value = { start: placeOf(event), end: placeOf(event), x: event.clientX };
    },
    onPointerMove: (event) => {
      if (drag.peek())
        drag.value = {
          ...drag.peek(),
          end: placeOf(event),
          far: Math.abs(event.clientX - drag.peek().x) > 6 || drag.peek().far,
        };
    },
    onPointerUp: () => {
      const it = drag.peek();
      drag.value = null;
      if (it?.far) view.value = it.start < it.end ? [it.start, it.end] : [it.end, it.start];
    },
    onPointerLeave: () => {
      drag.value = null;
    },
    onDblClick: () => {
      view.value = [0, 1];
    },
  };
  return html`<div
    class="gantt"
    ref=${box}
    onScroll=${look}
    tabindex="0"
    role="region"
    aria-label=${label}
    ...${pointer}
  >
    <div class="axis">
      <svg width=${width.value} height=${AXIS + (gaps.length ? CRASH : 0)} aria-hidden="true">
        ${ticks.map((tick, index) => {
          const at = names_ + ((tick.place - first) / (last - first)) * room;
          const word = wordOf(tick);
          return (at < right - 24 || index === ticks.length - 1) && (index === 0 || word !== wordOf(ticks[index - 1]))
            ? html`<text
              key=${tick.place}
              class="t"
              x=${at}
              y="16"
              text-anchor=${at < names_ + 16 ? 'start' : 'middle'}
            >
              ${word}
            </text>`
            : null;
        })}
        ${timeline.owners.map(
          (owner, index) =>
            html`<${Owner}
              key=${index}
              owner=${owner}
              x1=${x(owner.from)}
              x2=${x(owner.to ?? to)}
              min=${names_}
              max=${right}
            />`,
        )}
        <text class="t" x="14" y="46">
          workers
        </text>
      </svg>
      ${crashWords(gaps, x, names_, right).map(
        (each) =>
          html`<a
            key=${each.gap.seq}
            class="crash-words"
            href=${urlOf(`gap:${each.gap.seq}`)}
            aria-current=${selected === `gap:${each.gap.seq}` ? 'true' : undefined}
            style=${{ left: `${each.at}px`, top: `${AXIS - 2}px` }}
            onClick=${(event) => {
              event.preventDefault();
              choose(`gap:${each.gap.seq}`);
            }}
          >
            ${each.words}
          </a>`,
      )}
    </div>
    <div class="rows" style=${{ height: `${height}px` }}>
      <svg
        width=${width.value}
        height=${Math.max(bottom - top, 1) * ROW}
        style=${{ top: `${top * ROW}px` }}
        aria-hidden="true"
        onClick=${(event) => {
          const key = event.target.closest('[data-key]')?.dataset.key;
          if (key) choose(key);
        }}
      >
        <defs>
          <clipPath id=${clip}>
            <rect x=${names_ - 4} y="0" width=${room + RIGHT} height=${(bottom - top) * ROW} />
          </clipPath>
        </defs>
        <${Hatch} />
        ${lines
          .slice(top, bottom)
          .map(({ row }, n) =>
            row.key && row.key === selected
              ? html`<rect key="chosen" class="chosen" x="0" y=${n * ROW} width=${width.value} height=${ROW} />`
              : null,
          )}
        <g class="grid">
          ${ticks.map((tick) => {
            const at = names_ + ((tick.place - first) / (last - first)) * room;
            return html`<line
              key=${tick.place}
              x1=${at}
              x2=${at}
              y1="0"
              y2=${(bottom - top) * ROW}
              stroke-dasharray=${tick.squeezed ? '3 4' : undefined}
            />`;
          })}
        </g>
        <g clip-path=${`url(#${clip})`}>
          ${gaps.map(
            (gap) =>
              html`<rect
                key=${gap.seq}
                class="crash"
                data-key=${`gap:${gap.seq}`}
                x=${x(gap.from)}
                y="0"
                width=${Math.max(x(gap.to) - x(gap.from), 2)}
                height=${(bottom - top) * ROW}
              />`,
          )}
          ${lines.slice(top, bottom).map(
            ({ row }, n) =>
              html`<${Line}
                key=${row.key}
                row=${row}
                y=${n * ROW}
                x=${x}
                to=${to}
                now=${now}
                min=${names_}
                max=${right}
                path=${path}
                seen=${x}
              />`,
          )}
          ${
            drag.value?.far &&
            html`<rect
              class="drag"
              x=${names_ + ((Math.min(drag.value.start, drag.value.end) - first) / (last - first)) * room}
              y="0"
              width=${(Math.abs(drag.value.end - drag.value.start) / (last - first)) * room}
              height=${(bottom - top) * ROW}
            />`
          }
        </g>
      </svg>
      <ol class="row-names" start=${top + 1} style=${{ top: `${top * ROW}px`, width: `${names_ - 8}px` }}>
        ${lines.slice(top, bottom).map(
          ({ row, depth }) =>
            html`<li key=${row.key} style=${{ paddingLeft: `${14 + Math.min(depth, 5) * 14}px` }}>
              ${
                row.child !== null &&
                html`<button
                  class="fold"
                  aria-expanded=${!collapsed.value.has(row.key)}
                  aria-label=${`steps of ${row.label}`}
                  onClick=${() => toggle(row.key)}
                >
                  ${collapsed.value.has(row.key) ? '▸' : '▾'}
                </button>`
              }
              ${
                !row.key
                  ? html`<span class="soft">${row.label}</span>`
                  : html`<a
                    class="mono"
                    href=${urlOf(row.key)}
                    aria-current=${row.key === selected ? 'true' : undefined}
                    aria-label=${`${row.label}, ${wordsOf(row, now)}`}
                    title=${`${row.label}: ${wordsOf(row, now)}`}
                    onClick=${(event) => {
                      event.preventDefault();
                      choose(row.key);
                    }}
                  >
                    ${shownName(row)}
                  </a>`
              }
              ${row.kind === 'child' && html`<span class="t">child</span>`}
            </li>`,
        )}
      </ol>
      ${
        lines.length === 0 &&
        html`<p class="soft none">
          ${isLoading ? 'Looking…' : 'Nothing has happened yet that takes time. Steps are drawn when they end.'}
        </p>`
      }
    </div>
  </div>`;
}

const wordOf = (tick) => (tick.after < 0.0005 ? '0 s' : lasts(tick.after));

/** What a row is, for those who do not see it. */
function wordsOf(row, now) {
  return [row.state === 'open' ? 'under way' : row.state, beside(row, now)].filter(Boolean).join(', ');
}

function shownName(row) {
  const [, scope, name] = /^(.*\/)?([^/]*)$/.exec(row.label) ?? [null, '', row.label];
  return row.kind === 'step' && scope
    ? html`
      <span class="t">${scope}</span>
      ${name}
    `
    : row.label;
}

function zoomTo(row, scale, now, view) {
  if (!row || !row.bars.length || view[1] - view[0] < 1) return [0, 1];
  const from = scale.at(Math.min(...row.bars.map((bar) => bar.from)));
  const to = scale.at(Math.max(...row.bars.map((bar) => bar.to ?? now)));
  const room = Math.max((to - from) * 0.5, 0.002);
  return [Math.max(from - room, 0), Math.min(to + room, 1)];
}

/**
 * The spans in which a worker owned the tree, and moments beside which there should be room, for the scale; all else is
 * waiting.
 */
function busyOf(timeline, to, number) {
  const found = timeline.owners.map((owner) => [owner.from, owner.to ?? to]);
  for (const row of timeline.rows.get(number) ?? []) for (const mark of row.marks) found.push([mark.at, mark.at]);
  // The gap of a crash is drawn in its length beside work that is about as long, and squeezed beside less.
  const busy = found.reduce((sum, [from, end]) => sum + end - from, 0);
  for (const gap of timeline.gaps) if (gap.to - gap.from <= busy * 3) found.push([gap.from, gap.to]);
  return found;
}

/** The busy spans of another run, as if it had begun with this one. */
function shifted(other, from, to) {
  const by = other ? from - other.from : 0;
  return other ? busyOf(other.timeline, to - by, 0).map(([begin, end]) => [begin + by, end + by]) : [];
}

function Line({ row, y, x, to, now, min, max, path }) {
  const middle = y + ROW / 2;
  const top = middle - BAR / 2;
  const dim = path && !path.keys.has(row.key);
  let end = min;
  const parts = [];
  row.bars.forEach((bar, index) => {
    const [a, b] = [x(bar.from), x(bar.to ?? to)];
    end = Math.max(end, Math.min(b, max));
    const before = row.bars[index - 1];
    if (before && before.to !== null && before.kind !== 'again' && row.kind === 'step' && x(before.to) < a)
      parts.push(html`<line class=${`backoff ${before.kind}`} x1=${x(before.to)} x2=${a} y1=${middle} y2=${middle} />`);
    if (b < min || a > max) return;
    const shape = bar.isHollow ? 'hollow' : bar.kind === 'wait' ? 'dashed' : '';
    parts.push(
      html`<rect
        class=${`bar ${bar.kind} ${shape} ${bar.undone ? 'undone' : ''}`}
        x=${a}
        y=${top}
        width=${Math.max(b - a, 2.5)}
        height=${BAR}
        rx="3"
      />`,
    );
    if (bar.to === null) parts.push(html`<circle class=${`now ${bar.kind}`} cx=${b} cy=${middle} r="3.5" />`);
  });
  const last = row.bars[row.bars.length - 1];
  if (row.open && last?.retryAt) {
    parts.push(
      html`<line class="backoff fail" x1=${x(last.to)} x2=${x(Math.max(to, last.to))} y1=${middle} y2=${middle} />`,
    );
    end = Math.min(x(Math.max(to, last.to)), max);
  }
  for (const mark of row.marks) {
    const at = x(mark.at);
    end = Math.max(end, Math.min(at + 6, max));
    if (at < min - 6 || at > max + 6) continue;
    parts.push(
      mark.kind === 'progress' || mark.kind === 'timer'
        ? html`<circle class=${`mark ${mark.kind}`} cx=${at} cy=${middle} r="3" />`
        : html`<path class=${`mark ${mark.kind}`} d=${`M${at} ${middle - 6}l6 6-6 6-6-6z`} />`,
    );
  }
  const text = beside(row, now);
  const fits = text.length * 6 < max - end + RIGHT - 12;
  const begin =
    row.bars.length || row.marks.length
      ? Math.min(...row.bars.map((bar) => x(bar.from)), ...row.marks.map((mark) => x(mark.at)))
      : min;
  const left = !fits && begin - min > text.length * 6 + 12;
  return html`<g class=${dim ? 'line dim' : 'line'} data-key=${row.key}>
    <rect class="hit" x=${min - 4} y=${y} width=${max - min + RIGHT} height=${ROW} />
    ${path && path.keys.has(row.key) && html`<${OnPath} row=${row} path=${path} x=${x} y=${middle} />`}
    ${parts}
    ${
      text &&
      (fits || left) &&
      html`<text class="t" x=${left ? begin - 7 : end + 8} y=${middle + 4} text-anchor=${left ? 'end' : 'start'}>
        ${text}
      </text>`
    }
  </g>`;
}

function OnPath({ row, path, x, y }) {
  return path.spans
    .filter((span) => span[2] === row.key)
    .map(
      ([from, to]) =>
        html`<rect
          class="path"
          x=${x(from) - 1.5}
          y=${y - BAR / 2 - 2.5}
          width=${Math.max(x(to) - x(from), 2.5) + 3}
          height=${BAR + 5}
          rx="4"
        />`,
    );
}

function Owner({ owner, x1, x2, min, max }) {
  const [a, b] = [Math.max(x1, min), Math.min(x2, max)];
  if (b <= a && (x2 < min || x1 > max)) return null;
  const name = owner.worker;
  return html`<g class=${owner.lost ? 'owner lost' : 'owner'}>
    <rect x=${a} y="42" width=${Math.max(b - a, 2)} height="4" rx="2" />
    <title>
      ${name}, from ${exact(owner.from)}
    </title>
    ${
      b - a > name.length * 6.4 + 4 &&
      html`<text class="t m" x=${a} y="37">
        ${name}
      </text>`
    }
  </g>`;
}

/** Who was lost and who took over, over each gap for which there is room: [{gap, at, words}]. */
function crashWords(gaps, x, left, right) {
  const found = [];
  let free = left - 60;
  for (const gap of gaps) {
    const lost = gap.lost ? `${gap.lost} was lost` : 'its worker was lost';
    const words = `${lost}, ${lasts(gap.to - gap.from)}, ${gap.taken} took over`;
    const width = words.length * LETTER + 12;
    const at = Math.max(Math.min(x(gap.from), right + RIGHT - width), 4);
    if (at < free) continue;
    found.push({ gap, at, words });
    free = at + width;
  }
  return found;
}

/** The key of the row of a step that runs now. */
export const keyOfStep = (step) => `${NOW}${step.run_id}/${step.call}`;

function rowOfStep(step) {
  const from = millis(step.since);
  const note = [
    step.attempt > 1 && `attempt ${step.attempt}${step.attempts_max ? ` of ${step.attempts_max}` : ''}`,
    step.last_failure,
  ]
    .filter(Boolean)
    .join(', ');
  return {
    key: keyOfStep(step),
    kind: 'step',
    label: step.name,
    number: 0,
    at: from,
    bars: [{ from, to: null, kind: 'run', isHollow: true, worker: step.worker }],
    marks: [],
    seqs: [],
    open: true,
    state: 'open',
    note,
    child: null,
  };
}

/**
 * While it runs, lines for the steps that run now, as their worker says; the journal has a step when it has ended.
 * While that is not known, one line from the last event to now.
 */
function withNow(lines, timeline, running, steps) {
  if (steps.length) return [...lines, ...steps.map((step) => ({ row: rowOfStep(step), depth: 0 }))];
  if (!running || lines.some(({ row }) => row.open && row.bars.some((bar) => bar.to === null))) return lines;
  const bar = { from: timeline.lastAt, to: null, kind: 'run', isHollow: true };
  return [
    ...lines,
    {
      row: {
        key: '',
        kind: 'now',
        label: 'under way',
        number: 0,
        at: timeline.lastAt,
        bars: [bar],
        marks: [],
        seqs: [],
        open: true,
        state: 'open',
        note: '',
        child: null,
      },
      depth: 0,
    },
  ];
}

function Hatch() {
  return html`<defs>
    <pattern id="crash" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
      <rect width="7" height="7" fill="var(--fail-soft)" />
      <line x1="0" y1="0" x2="0" y2="7" stroke="var(--fail)" stroke-opacity=".35" stroke-width="2" />
    </pattern>
    <linearGradient id="lost">
      <stop offset="0" stop-color="var(--off)" />
      <stop offset="1" stop-color="var(--off)" stop-opacity="0" />
    </linearGradient>
  </defs>`;
}
