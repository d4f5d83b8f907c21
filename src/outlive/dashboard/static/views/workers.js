// @ts-check
// Workers: which processes work on the store, until when their leases hold, what they can run, and their steps.
import { html } from '../vendor/preact.js';
import { get, useLoaded } from '../api.js';
import { Empty, Head, Problem, Status } from '../parts/shown.js';
import { Table } from '../parts/table.js';
import { Time } from '../parts/time.js';

/** @type {import('../parts/table.js').Column<import('outlive').Worker>[]} */
const COLUMNS = [
  {
    name: 'name',
    value: (it) => it.name || it.id,
    cell: (it) =>
      html`<span class="mono" title=${it.id}>
        ${it.name || it.id}
      </span>`,
  },
  {
    name: 'status',
    value: (it) => it.status,
    cell: (it) => html`<${Status} of=${it.status} kind=${it.status === 'live' ? 'ok' : 'fail'} />`,
  },
  { name: 'started', value: (it) => it.started_at, cell: (it) => html`<${Time} at=${it.started_at} />` },
  {
    name: 'lease',
    label: 'lease ends',
    value: (it) => it.expires_at,
    cell: (it) => (it.expires_at === null ? 'never' : html`<${Time} at=${it.expires_at} />`),
  },
  { name: 'kept', label: 'lease in', wide: true, value: (it) => it.lease },
  { name: 'runs', label: 'trees', number: true, value: (it) => it.runs },
  { name: 'queues', wide: true, value: (it) => it.queues?.join(' ') ?? 'all' },
  {
    name: 'definitions',
    label: 'can run',
    grow: true,
    wide: true,
    value: (it) => it.definitions.join(' '),
    cell: (it) =>
      html`<span class="mono" title=${it.definitions.join('\n')}>
        ${it.definitions.join(' ') || '—'}
      </span>`,
  },
  { name: 'fault', wide: true, value: (it) => it.fault },
];

/** @type {import('../parts/table.js').Column<import('outlive').StepInfo>[]} */
const STEPS = [
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

export default function Workers() {
  const { data, error, reload } = useLoaded(
    async (signal) => (await /** @type {Promise<import('outlive').WorkersList>} */ (get('/workers', {}, signal))).items,
    [],
    {
      every: 2000,
    },
  );
  const steps = useLoaded(
    async (signal) =>
      (await /** @type {Promise<import('outlive').StepsList>} */ (get('/workers/steps', {}, signal))).items,
    [],
    { every: 5000 },
  ).data.value;
  const rows = data.value;
  const live = rows?.filter((it) => it.status === 'live').length ?? 0;
  return html`
    <${Head}
      title="Workers"
      facts=${
        rows && [
          ['live', live],
          ['gone', rows.length - live],
          ['trees', rows.reduce((sum, it) => sum + it.runs, 0)],
        ]
      }
    />
    <${Problem} error=${error.value} again=${reload} />
    ${
      rows &&
      html`<${Table}
        label="workers"
        rows=${rows}
        columns=${COLUMNS}
        empty=${html`<${Empty} title="No worker is live.">
          Start one beside this server: <code>outlive worker app.py</code>
        </${Empty}>`}
      />`
    }
    ${
      steps &&
      steps.length > 0 &&
      html`<h2>Steps</h2>
        <${Table} label="steps" rows=${steps} columns=${STEPS} empty="" />`
    }
  `;
}
