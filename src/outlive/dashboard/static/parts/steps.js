// @ts-check
// The steps that live workers run, of Python and remote ones: what a document may call.
import { html } from '../vendor/preact.js';
import { get, useLoaded } from '../api.js';
import { can } from '../session.js';
import { Table } from './table.js';

/** @type {import('./table.js').Column<import('outlive').StepInfo>[]} */
const COLUMNS = [
  { name: 'step', value: (it) => it.name, cell: (it) => html`<span class="mono">${it.name}</span>` },
  { name: 'kind', value: (it) => (it.queue ? 'remote' : 'Python') },
  { name: 'workers', number: true, value: (it) => it.workers },
  { name: 'takes', grow: true, wide: true, value: (it) => shape(it.arguments), cell: (it) => schema(it.arguments) },
  { name: 'gives', grow: true, wide: true, value: (it) => shape(it.result), cell: (it) => schema(it.result) },
];

/**
 * A JSON Schema in a line. That of a remote step comes from its worker, and may be any object.
 * @param {Record<string, unknown> | null | undefined} said
 */
function shape(said) {
  if (!said) return '—';
  const { properties, type } = said;
  if (properties && typeof properties === 'object' && !Array.isArray(properties))
    return Object.keys(properties).join(', ') || 'nothing';
  return typeof type === 'string' ? type : 'any';
}

/** @param {Record<string, unknown> | null | undefined} said */
function schema(said) {
  return html`<span class="mono" title=${said ? JSON.stringify(said, null, 1) : 'not described'}>${shape(said)}</span>`;
}

/** A panel with the steps; nothing if there are none, or if this key may not list them. */
export function Steps() {
  const { data } = useLoaded(
    async (signal) =>
      can('workers.steps')
        ? (await /** @type {Promise<import('outlive').StepsList>} */ (get('/workers/steps', {}, signal))).items
        : [],
    [],
    { every: 5000 },
  );
  const rows = data.value;
  return rows && rows.length > 0
    ? html`<section class="panel">
        <header>
          <h2>Steps</h2>
          <span class="soft">of live workers, by the names that documents have for them</span>
        </header>
        <${Table} label="steps" rows=${rows} columns=${COLUMNS} empty="" />
      </section>`
    : null;
}
