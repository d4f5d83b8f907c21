// @ts-check
// The text of a flow: with line numbers, with mistakes at their lines, as something that is written, and two of them
// side by side.
import { html, useEffect, useRef } from '../vendor/preact.js';

/** Comments, expressions, texts, keys and plain values of a line of YAML, in the order of their classes. */
const TOKEN = new RegExp(
  [
    /(\s#.*$|^#.*$)/,
    /(\$\{\{.*?\}\})/,
    /("(?:[^"\\]|\\.)*"|'[^']*')/,
    /(^\s*(?:- )?[\w.-]+(?=:(?:\s|$))|[\w.-]+(?=: ))/,
    /(\b(?:true|false|null|\d+(?:\.\d+)?)\b)/,
  ]
    .map((each) => each.source)
    .join('|'),
  'g',
);
const CLASSES = ['', 'comment', 'expr', 's', 'k', 'n'];

/** A line of YAML in its colours. */
function coloured(line) {
  const parts = [];
  let end = 0;
  for (const found of line.matchAll(TOKEN)) {
    if (found.index > end) parts.push(line.slice(end, found.index));
    parts.push(
      html`<span class=${CLASSES[found.slice(1).findIndex((each) => each !== undefined) + 1]}>${found[0]}</span>`,
    );
    end = found.index + found[0].length;
  }
  parts.push(line.slice(end));
  return parts;
}

/** The lines of each step, [first, last], by the graph of its document. */
export function rangesOf(graph, text) {
  const lines = text.split('\n');
  const deep = (line) => line.length - line.trimStart().length;
  const found = {};
  for (const node of graph?.nodes ?? []) {
    if (!node.line) continue;
    let last = node.line;
    const own = deep(lines[node.line - 1] ?? '');
    while (last < lines.length && (!lines[last].trim() || deep(lines[last]) > own)) last += 1;
    while (last > node.line && !lines[last - 1].trim()) last -= 1;
    found[node.id] = [node.line, last];
  }
  return found;
}

/** Mistakes at one line. */
function Mistakes({ problems }) {
  return problems.map(
    (each, n) =>
      html`<p key=${n} class=${`mistake ${each.is_warning ? 'wait' : 'fail'}`}>
        ${each.message}
        ${
          each.suggestion &&
          html`
            ; <b>${each.suggestion}</b>
          `
        }
      </p>`,
  );
}

/**
 * A document. Props: text, problems, range: [first, last] of what is selected, hrefOf(line): where the number of a line
 * leads to.
 */
export function Document({ text, problems = [], range, hrefOf, label = 'document' }) {
  const box = useRef(null);
  useEffect(() => {
    box.current?.querySelector('.chosen')?.scrollIntoView({ block: 'nearest' });
  }, [range?.[0]]);
  const lines = text.replace(/\n$/, '').split('\n');
  return html`<div class="document mono" ref=${box} role="region" aria-label=${label} tabindex="0">
    ${lines.map((line, n) => {
      const number = n + 1;
      const wrong = problems.filter((each) => each.line === number);
      const chosen = range && number >= range[0] && number <= range[1];
      const to = hrefOf?.(number);
      return html`<div key=${number} class=${`line${chosen ? ' chosen' : ''}${wrong.length ? ' wrong' : ''}`}>
        ${
          to
            ? html`<a class="no" href=${to} aria-label=${`line ${number}`} tabindex="-1">
              ${number}
            </a>`
            : html`<span class="no">${number}</span>`
        }
        <code>${coloured(line)}</code>
        ${wrong.length > 0 && html`<${Mistakes} problems=${wrong} />`}
      </div>`;
    })}
  </div>`;
}

/**
 * A document that is being written. Props: text, change(text), problems. Tab leaves it, as in every field; the indent
 * of a line is kept by Enter.
 */
export function Editor({ text, change, problems = [], jump }) {
  const area = useRef(null);
  const gutter = useRef(null);
  const lines = text.split('\n');
  const wrong = new Map();
  for (const each of problems)
    wrong.set(each.line, wrong.get(each.line) === 'fail' || !each.is_warning ? 'fail' : 'wait');
  const goTo = (line, column = 1) => {
    const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    area.current.focus();
    area.current.setSelectionRange(before + column - 1, before + column - 1);
    area.current.scrollTop = Math.max(0, (line - 6) * 20);
  };
  if (jump) jump.current = goTo;
  const press = (event) => {
    if (event.key !== 'Enter' || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const { selectionStart: from, selectionEnd: to, value } = event.target;
    const line = value.slice(value.lastIndexOf('\n', from - 1) + 1, from);
    const indent = `\n${line.match(/^ */)[0]}${/:\s*$/.test(line) ? '  ' : ''}`;
    event.preventDefault();
    event.target.setRangeText(indent, from, to, 'end');
    change(event.target.value);
  };
  return html`<div class="editor mono">
    <div class="gutter" ref=${gutter} aria-hidden="true">
      ${lines.map(
        (_, n) =>
          html`<span key=${n} class=${wrong.get(n + 1) ?? ''}>
            ${n + 1}
          </span>`,
      )}
    </div>
    <textarea
      ref=${area}
      class="mono"
      aria-label="document"
      spellcheck="false"
      wrap="off"
      rows=${Math.min(Math.max(lines.length + 1, 16), 34)}
      value=${text}
      onKeyDown=${press}
      onInput=${(event) => change(event.target.value)}
      onScroll=${(event) => {
        gutter.current.scrollTop = event.target.scrollTop;
      }}
    ></textarea>
  </div>`;
}

/** All problems of a document as a list; a line leads to its place. */
export function Problems({ checked, goTo }) {
  if (!checked) return null;
  const { problems } = checked;
  const wrong = problems.filter((each) => !each.is_warning).length;
  const said = checked.is_fine
    ? problems.length
      ? `It can be published. ${problems.length === 1 ? 'One warning' : `${problems.length} warnings`}.`
      : 'It can be published.'
    : `${wrong === 1 ? 'One mistake' : `${wrong} mistakes`}: it cannot be published.`;
  return html`<div class="problems">
    <p class=${checked.is_fine ? 'ok' : 'fail'} role="status">
      ${said}
    </p>
    ${
      problems.length > 0 &&
      html`<ul>
        ${problems.map(
          (each, n) =>
            html`<li key=${n} class=${each.is_warning ? 'wait' : 'fail'}>
              <button class="quiet mono" onClick=${() => goTo?.(each.line, each.column)}>
                ${each.line ? `${each.line}:${each.column}` : each.path || 'document'}
              </button>${' '}
              <span>
                ${each.message}
                ${
                  each.suggestion &&
                  html`
                    ; <b>${each.suggestion}</b>
                  `
                }
              </span>
            </li>`,
        )}
      </ul>`
    }
  </div>`;
}

/**
 * Which lines of two texts are the same: [[left or null, right or null], ...] of line numbers. By the longest common
 * subsequence.
 */
export function compared(left, right) {
  const [a, b] = [left.split('\n'), right.split('\n')];
  let [from, aEnd, bEnd] = [0, a.length, b.length];
  while (from < aEnd && from < bEnd && a[from] === b[from]) from += 1;
  while (aEnd > from && bEnd > from && a[aEnd - 1] === b[bEnd - 1]) {
    aEnd -= 1;
    bEnd -= 1;
  }
  const [rows, columns] = [aEnd - from, bEnd - from];
  const table = Array.from({ length: rows + 1 }, () => new Uint16Array(columns + 1));
  for (let i = rows - 1; i >= 0; i -= 1)
    for (let j = columns - 1; j >= 0; j -= 1)
      table[i][j] = a[from + i] === b[from + j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
  const pairs = [];
  for (let n = 0; n < from; n += 1) pairs.push([n + 1, n + 1]);
  let [i, j] = [0, 0];
  /** @type {[number[], number[]]} */
  let [gone, come] = [[], []];
  const flush = () => {
    for (let n = 0; n < Math.max(gone.length, come.length); n += 1) pairs.push([gone[n] ?? null, come[n] ?? null]);
    [gone, come] = [[], []];
  };
  while (i < rows || j < columns) {
    if (i < rows && j < columns && a[from + i] === b[from + j]) {
      flush();
      pairs.push([from + ++i, from + ++j]);
    } else if (j < columns && (i === rows || table[i][j + 1] >= table[i + 1][j])) come.push(from + ++j);
    else gone.push(from + ++i);
  }
  flush();
  for (let n = 0; n < a.length - aEnd; n += 1) pairs.push([aEnd + n + 1, bEnd + n + 1]);
  return pairs;
}

const AROUND = 3;

/** Two documents side by side; what is the same far from a change is folded. Props: left, right: {label, text}. */
export function Compare({ left, right }) {
  const [a, b] = [left.text.replace(/\n$/, ''), right.text.replace(/\n$/, '')].map((text) => text.split('\n'));
  const pairs = compared(a.join('\n'), b.join('\n')).map(([i, j]) => ({
    i,
    j,
    same: i !== null && j !== null && a[i - 1] === b[j - 1],
  }));
  const near = pairs.map((_, n) => pairs.slice(Math.max(0, n - AROUND), n + AROUND + 1).some((each) => !each.same));
  /** @type {{ i?: any, j?: any, same?: boolean, folded?: number }[]} */
  const rows = [];
  for (const [n, pair] of pairs.entries()) {
    if (near[n]) rows.push(pair);
    else {
      const last = rows.at(-1);
      if (last?.folded) last.folded += 1;
      else rows.push({ folded: 1 });
    }
  }
  const side = (lines, number, mark) =>
    html`<div class=${`line ${mark}`}>
      <span class="no">${number ?? ''}</span>
      <code>${number === null ? '' : coloured(lines[number - 1])}</code>
    </div>`;
  const changed = pairs.filter((each) => !each.same).length;
  return html`<div class="sides mono" role="region" aria-label=${`${left.label} beside ${right.label}`} tabindex="0">
    <div class="side head">${left.label}</div>
    <div class="side head">${right.label}</div>
    ${changed === 0 && html`<p class="folded">Both are the same.</p>`}
    ${rows.map((row, n) =>
      row.folded
        ? html`<p key=${n} class="folded">
          ${row.folded} same ${row.folded === 1 ? 'line' : 'lines'}
        </p>`
        : html`<div key=${n} class=${`pair${row.same ? ' same' : ''}`}>
          ${side(a, row.i, row.same ? '' : row.i === null ? 'none' : 'gone')}
          ${side(b, row.j, row.same ? '' : row.j === null ? 'none' : 'come')}
        </div>`,
    )}
  </div>`;
}
