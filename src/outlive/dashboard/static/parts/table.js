// @ts-check
// A table: any number of rows of one height, of which only those are drawn that are seen; j and k go through it.
import { html, useEffect, useLayoutEffect, useRef, useSignal } from '../vendor/preact.js';
import { useKeys } from '../keys.js';
import { copy } from './shown.js';

const ROW = 34;
const AROUND = 12;
const WHOLE_MAX = 120;
const COPIED_MAX = 10_000;

/** The number of the row whose link has the focus. */
const focusedRow = () => /** @type {HTMLElement | null} */ (document.activeElement)?.dataset.row;

/**
 * A column: `value` is for copies, and is shown unless `cell` says how; `number` is for figures, `wide` columns are
 * left out on a phone, and one that may `grow` takes the room that is left.
 *
 * @template T
 * @typedef {{
 *   name: string, label?: string, value?: (row: T) => unknown, cell?: (row: T) => unknown, number?: boolean,
 *   wide?: boolean, grow?: boolean,
 * }} Column
 */

/**
 * Props:
 * - label: what it lists, for those who do not see it.
 * - rows: an array, or `Pages`.
 * - columns: a list of `Column`.
 * - id(row); href(row): the first cell is a link to it, and Enter follows it.
 * - selection: a signal with a Set of ids, for tables with check boxes.
 * - empty: what is shown without rows. caption: what stands over it. search: a field there, which stays if nothing
 *   fits.
 * - keys: false if j and k are for another table.
 */
export function Table({
  label,
  rows,
  columns,
  id = (row) => row.id,
  href,
  selection,
  empty,
  caption,
  search,
  keys = true,
}) {
  const scroller = useRef(null);
  const window_ = useSignal([0, 60]);
  const focus = useRef(null);
  const paged = !Array.isArray(rows);
  if (paged) rows.version.value;
  const length = rows.length;
  const [from, to] =
    length <= WHOLE_MAX ? [0, length] : [Math.max(window_.value[0], 0), Math.min(window_.value[1], length)];
  const look = () => {
    const top = scroller.current.scrollTop;
    const seen = [Math.floor(top / ROW), Math.ceil((top + scroller.current.clientHeight) / ROW)];
    const wanted = [seen[0] - (seen[0] % AROUND) - AROUND, seen[1] + 2 * AROUND - (seen[1] % AROUND)];
    if (wanted.join() !== window_.peek().join()) window_.value = wanted;
    if (paged) rows.see(...seen);
  };
  useEffect(() => {
    if (scroller.current) look();
    else if (paged) rows.see(0, 60);
  }, [rows, length === 0]);
  useLayoutEffect(() => {
    if (focus.current === null) return;
    const link = scroller.current?.querySelector(`[data-row="${focus.current}"]`);
    if (link) {
      link.focus({ preventScroll: true });
      focus.current = null;
    }
  });
  const move = (by) => {
    const at = Number(focusedRow() ?? NaN);
    const index = Number.isNaN(at)
      ? by > 0
        ? Math.floor(scroller.current.scrollTop / ROW)
        : 0
      : Math.min(Math.max(at + by, 0), length - 1);
    const box = scroller.current;
    const [top, bottom] = [index * ROW, (index + 2) * ROW];
    if (top < box.scrollTop) box.scrollTop = top;
    else if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
    focus.current = index;
    look();
    const link = box.querySelector(`[data-row="${index}"]`);
    if (link) {
      link.focus({ preventScroll: true });
      focus.current = null;
      link.scrollIntoView({ block: 'nearest' });
    }
  };
  const mark = (row) => {
    const chosen = new Set(selection.peek());
    if (!chosen.delete(id(row))) chosen.add(id(row));
    selection.value = chosen;
  };
  const keyed = keys && length > 0;
  useKeys(
    keyed
      ? {
          j: ['next row', () => move(1)],
          k: ['row before', () => move(-1)],
          ...(href && { Enter: ['open the row', null] }),
          ...(selection && {
            x: [
              'choose the row',
              () => {
                const at = focusedRow();
                if (at) mark(paged ? rows.at(+at) : rows[at]);
              },
            ],
          }),
        }
      : {},
  );
  if (length === 0)
    return html`<div class="panel table">
      ${
        search &&
        html`<div class="bar">
          <div>${search}</div>
        </div>`
      }
      ${paged && !rows.isKnown ? html`<div class="empty soft">${rows.error.value ? '' : 'Looking…'}</div>` : empty}
    </div>`;
  const all = selection && seenRows(rows, paged);
  const chosen = selection?.value;
  const drawn = [];
  for (let index = from; index < to; index += 1) drawn.push(paged ? rows.at(index) : rows[index]);
  return html`<div class="panel table">
    <div class="bar">
      <div>
        ${search}
        ${caption}
      </div>
      <span class="copies">
        <button class="quiet" onClick=${() => copyRows(rows, columns, 'csv')}>
          Copy CSV
        </button>
        <button class="quiet" onClick=${() => copyRows(rows, columns, 'json')}>
          Copy JSON
        </button>
      </span>
    </div>
    <div
      class="scroll"
      ref=${scroller}
      onScroll=${look}
      tabindex=${href ? undefined : 0}
      role="region"
      aria-label=${label}
    >
      <table aria-rowcount=${paged && !rows.isWhole ? -1 : length + 1}>
        <thead>
          <tr aria-rowindex="1">
            ${
              selection &&
              html`<th class="choose">
                <input
                  type="checkbox"
                  aria-label="choose all that are loaded"
                  checked=${chosen.size > 0 && all.every((row) => chosen.has(id(row)))}
                  onChange=${(event) => {
                    selection.value = new Set(event.target.checked ? all.map(id) : []);
                  }}
                />
              </th>`
            }
            ${columns.map(
              (column) =>
                html`<th key=${column.name} scope="col" class=${classOf(column)}>
                  ${column.label ?? column.name}
                </th>`,
            )}
          </tr>
        </thead>
        <tbody>
          ${
            from > 0 &&
            html`<tr key="above" class="gap" aria-hidden="true">
              <td colspan=${columns.length + 1} style=${{ height: `${from * ROW}px` }}></td>
            </tr>`
          }
          ${drawn.map((row, n) =>
            row === undefined
              ? html`<tr key=${from + n} aria-rowindex=${from + n + 2}>
                <td colspan=${columns.length + 1} class="soft">
                  …
                </td>
              </tr>`
              : html`<tr key=${id(row)} aria-rowindex=${from + n + 2}>
                ${
                  selection &&
                  html`<td class="choose">
                    <input
                      type="checkbox"
                      aria-label=${`choose ${id(row)}`}
                      checked=${chosen.has(id(row))}
                      onChange=${() => mark(row)}
                    />
                  </td>`
                }
                ${columns.map(
                  (column, c) =>
                    html`<td key=${column.name} class=${classOf(column)}>
                      ${cellOf(column, row, c === 0, href, from + n)}
                    </td>`,
                )}
              </tr>`,
          )}
          ${
            to < length &&
            html`<tr key="below" class="gap" aria-hidden="true">
              <td colspan=${columns.length + 1} style=${{ height: `${(length - to) * ROW}px` }}></td>
            </tr>`
          }
        </tbody>
      </table>
    </div>
  </div>`;
}

const classOf = (column) =>
  `${column.number ? 'figure ' : ''}${column.wide ? 'wide ' : ''}${column.grow ? 'grow' : ''}`;

function cellOf(column, row, isFirst, href, index) {
  const inside = column.cell ? column.cell(row) : column.value(row);
  if (!isFirst) return inside;
  return href
    ? html`<a href=${href(row)} data-row=${index}>
      ${inside}
    </a>`
    : html`<span data-row=${index} tabindex="-1">
      ${inside}
    </span>`;
}

const seenRows = (rows, paged) => (paged ? rows.rows : rows);

function copyRows(rows, columns, as) {
  const found = seenRows(rows, !Array.isArray(rows)).slice(0, COPIED_MAX);
  const named = columns.filter((column) => column.value);
  if (as === 'json') copy(JSON.stringify(found, null, 1), `${found.length} rows copied as JSON.`);
  else {
    // A cell that begins like a formula is one to a spreadsheet.
    const quoted = (value) => {
      const text = String(value ?? '');
      const safe = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
      return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
    };
    const lines = [
      named.map((column) => column.label ?? column.name),
      ...found.map((row) => named.map((column) => column.value(row))),
    ];
    copy(lines.map((line) => line.map(quoted).join(',')).join('\n'), `${found.length} rows copied as CSV.`);
  }
}
