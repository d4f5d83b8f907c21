// @ts-check
// Values of users: plain JSON, which may be large, cut or hidden.
import { html, useSignal } from '../vendor/preact.js';
import { Act, Copy, figure } from './shown.js';

const OPEN_MAX = 40;
const SHOWN_MAX = 200;

/** How many things are in a value, a few levels deep; enough to tell small ones from large ones. */
function sizeOf(value, deep = 3) {
  if (value === null || typeof value !== 'object') return 1;
  const inside = Object.values(value);
  return deep === 0
    ? inside.length
    : inside.reduce((sum, each) => (sum > OPEN_MAX ? sum : sum + sizeOf(each, deep - 1)), 1);
}

/**
 * A value. Large parts are folded; `load(path)` gives what the API left out as `{"[large]": bytes}`.
 * Props: value, label (of the whole), load, open (how many levels are unfolded; by size unless given).
 */
export function Json({ value, label, load, open }) {
  const levels = open ?? (sizeOf(value) <= OPEN_MAX ? 9 : 1);
  return html`<div class="json mono" role="group" aria-label=${label ?? 'value'}>
    <${Node} value=${value} levels=${levels} load=${load} />
  </div>`;
}

function Node({ value, name, levels, load }) {
  const found = useSignal(undefined);
  const all = useSignal(false);
  const shown = found.value === undefined ? value : found.value;
  const label =
    name !== undefined &&
    html`
      <span class="k">${name}</span>:${' '}
    `;
  if (shown === null || typeof shown !== 'object')
    return html`<div>
      ${label}
      <${Leaf} value=${shown} />
    </div>`;
  const bytes = shown['[large]'];
  if (bytes !== undefined && Object.keys(shown).length === 1) {
    return html`<div>
      ${label}
      <span class="soft">${figure(bytes)} bytes</span>${' '}
      ${
        load &&
        html`<${Act}
          kind="quiet"
          act=${async () => {
            found.value = await load();
          }}
        >
          Load
        </${Act}>`
      }
    </div>`;
  }
  const list = Array.isArray(shown);
  const entries = Object.entries(shown);
  if (entries.length === 0)
    return html`<div>
      ${label}
      <span class="soft">${list ? '[]' : '{}'}</span>
    </div>`;
  const seen = all.value ? entries : entries.slice(0, SHOWN_MAX);
  return html`<details open=${levels > 0}>
    <summary>
      ${label}
      <span class="soft">${list ? `[${entries.length}]` : `{${entries.length}}`}</span>
    </summary>
    <div class="in">
      ${seen.map(([key, each]) => html`<${Node} key=${key} name=${key} value=${each} levels=${levels - 1} />`)}
      ${
        seen.length < entries.length &&
        html`<button
          class="quiet"
          onClick=${() => {
            all.value = true;
          }}
        >
          ${entries.length - seen.length} more
        </button>`
      }
    </div>
  </details>`;
}

function Leaf({ value }) {
  if (typeof value === 'string') {
    return /^\[redacted\]$|^\*+$|^•+/.test(value)
      ? html`<span class="hidden-value" title="This engine redacts it.">
        •••• hidden
      </span>`
      : html`<span class="s">${JSON.stringify(value)}</span>`;
  }
  return html`<span class="n">${String(value)}</span>`;
}

/** A value with its label and a button that copies it. */
export function Payload({ title, value, load }) {
  return html`<section class="payload">
    <header>
      <h3>${title}</h3>
      <${Copy} text=${() => JSON.stringify(value, null, 2)} />
    </header>
    <${Json} value=${value} label=${title} load=${load} />
  </section>`;
}
