// @ts-check
// Small parts that every view has: how a status looks, what went wrong, what is missing, what can be done.
import { html, useSignal } from '../vendor/preact.js';
import { href, at } from '../router.js';
import { say } from '../session.js';

const KINDS = {
  succeeded: 'ok',
  running: 'run',
  pending: 'off',
  waiting: 'wait',
  parked: 'park',
  paused: 'park',
  failed: 'fail',
  timed_out: 'fail',
  damaged: 'fail',
  cancelled: 'off',
  continued: 'off',
};

/** The class of a status: ok, run, wait, park, fail or off. Colour means this and nothing else. */
export const kindOf = (status) => KINDS[status] ?? 'off';

/** A whole number with its thousands apart: 10,003. The browser's own takes ten milliseconds when it is first asked. */
export const figure = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ',');

/** A status. */
export function Status({ of, kind }) {
  return html`<span class=${`pill ${kind ?? kindOf(of)}`}>${of.replace('_', ' ')}</span>`;
}

/** A link to a run, with the end of a long id left out. */
export function RunLink({ id, children }) {
  return html`<a class="mono" href=${href(at`/runs/${id}`)} title=${id}>
    ${children ?? id}
  </a>`;
}

/** What went wrong, and what to do next. */
export function Problem({ error, again }) {
  if (!error) return null;
  return html`<div class="panel problem" role="alert">
    <p>
      <b>${sentence(error.message)}</b>
      ${error.next && html`<small>${error.next}</small>`}
    </p>
    ${error.code && html`<code>${error.code}</code>`}
    ${again && html`<button onClick=${again}>Try again</button>`}
  </div>`;
}

const sentence = (text) => (text ? text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.') : '');

/** What a list says that has nothing in it: what would be here, and what to do next. */
export function Empty({ title, children }) {
  return html`<div class="empty">
    <p>
      <b>${title}</b>
    </p>
    ${children && html`<div>${children}</div>`}
  </div>`;
}

/** The head of a view: its title, what is beside it, and buttons. Facts are [[label, value], ...] under it. */
export function Head({ title, beside, facts = [], children }) {
  return html`<div class="head">
    <div class="title">
      <h1 tabindex="-1">${title}</h1>
      ${beside}
      <div class="actions">${children}</div>
    </div>
    ${
      facts.length > 0 &&
      html`<dl class="facts">
        ${facts.filter(Boolean).map(
          ([label, value]) =>
            html`<div key=${label}>
              <dt>${label}</dt>
              <dd>${value}</dd>
            </div>`,
        )}
      </dl>`
    }
  </div>`;
}

/** A figure with a word, and the list behind it. */
export function Tile({ label, value, note, to, kind }) {
  const inside = html`
    <small>${label}</small>
    <b class=${kind ?? ''}>${value}</b>
    ${note && html`<small>${note}</small>`}
  `;
  return to
    ? html`<a class="panel tile" href=${to}>
      ${inside}
    </a>`
    : html`<div class="panel tile">${inside}</div>`;
}

/** Copy text, and say so. */
export async function copy(text, what = 'Copied.') {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = Object.assign(document.createElement('textarea'), { value: text });
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  say(what);
}

/** A button that copies. */
export function Copy({ text, label = 'Copy' }) {
  return html`<button class="quiet" onClick=${() => copy(typeof text === 'function' ? text() : text)}>
    ${label}
  </button>`;
}

/** A button whose work takes time: it rests until that is done, and an error is told. */
export function Act({ act, children, kind = '', ...rest }) {
  const busy = useSignal(false);
  const press = async () => {
    busy.value = true;
    try {
      await act();
    } catch (error) {
      say([error.message, error.next].filter(Boolean).join('. '), 'fail');
    } finally {
      busy.value = false;
    }
  };
  return html`<button class=${kind} disabled=${busy.value} onClick=${press} ...${rest}>
    ${children}
  </button>`;
}
