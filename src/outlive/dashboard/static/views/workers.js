// @ts-check
// Workers: which processes work on the store, until when their leases hold, what they can run, and their steps.
import { html } from '../vendor/preact.js';
import { get, useLoaded } from '../api.js';
import { Empty, Head, Problem, Status } from '../parts/shown.js';
import { Steps } from '../parts/steps.js';
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

export default function Workers() {
  const { data, error, reload } = useLoaded(
    async (signal) => (await /** @type {Promise<import('outlive').WorkersList>} */ (get('/workers', {}, signal))).items,
    [],
    {
      every: 2000,
    },
  );
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
    <${Steps} />
  `;
}
