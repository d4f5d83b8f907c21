// @ts-check
// Workflows: what workers can run, in every version, and what it takes.
import { html } from '../vendor/preact.js';
import { get, useLoaded } from '../api.js';
import { at, href } from '../router.js';
import { Empty, Head, Problem, Status } from '../parts/shown.js';
import { Table } from '../parts/table.js';

/** Versions from here on are hashes: of flows, which have a view of their own. */
export const HASHES_FROM = 2 ** 32;

/** The workflows of code by name, the newest version of each first. */
export function byName(items) {
  const found = new Map();
  for (const it of items) if (it.version < HASHES_FROM) found.set(it.name, [it, ...(found.get(it.name) ?? [])]);
  return [...found].map(([name, versions]) => ({
    name,
    versions: versions.sort((a, b) => b.version - a.version),
  }));
}

/** What a workflow takes, in a few words. */
export function takes(schema) {
  if (!schema) return 'not described yet';
  const needed = schema.required ?? [];
  return (
    Object.keys(schema.properties ?? {})
      .map((name) => (needed.includes(name) ? name : `${name}?`))
      .join(', ') || 'nothing'
  );
}

const live = (it) => it.versions.reduce((sum, each) => sum + each.workers, 0);
const COLUMNS = [
  { name: 'name', value: (it) => it.name, cell: (it) => html`<b class="mono">${it.name}</b>` },
  {
    name: 'state',
    value: (it) => (live(it) ? 'live' : 'no worker'),
    cell: (it) => html`<${Status} of=${live(it) ? 'live' : 'no worker'} kind=${live(it) ? 'ok' : 'off'} />`,
  },
  { name: 'versions', value: (it) => it.versions.map((each) => each.version).join(' ') },
  { name: 'workers', number: true, value: live },
  {
    name: 'takes',
    grow: true,
    wide: true,
    value: (it) => takes(it.versions[0].arguments),
    cell: (it) => html`<span class="mono">${takes(it.versions[0].arguments)}</span>`,
  },
];

export default function Workflows() {
  const { data, error, reload } = useLoaded(
    async (signal) =>
      byName((await /** @type {Promise<import('outlive').WorkflowsList>} */ (get('/workflows', {}, signal))).items),
    [],
    {
      every: 3000,
    },
  );
  const rows = data.value;
  return html`
    <${Head}
      title="Workflows"
      facts=${
        rows && [
          ['workflows', rows.length],
          ['without a worker', rows.filter((it) => !live(it)).length],
        ]
      }
    />
    <${Problem} error=${error.value} again=${reload} />
    ${
      rows &&
      html`<${Table}
        label="workflows"
        rows=${rows}
        id=${(it) => it.name}
        href=${(it) => href(at`/workflows/${it.name}`)}
        columns=${COLUMNS}
        empty=${html`<${Empty} title="No worker has described a workflow.">
          Start one: <code>outlive worker app.py</code>. It says what it can run a moment later.
        </${Empty}>`}
      />`
    }
  `;
}
