// @ts-check
// Flows: the documents of the library, what is published of each, and what is being written.
import { html } from '../vendor/preact.js';
import { get, useLoaded } from '../api.js';
import { at, href } from '../router.js';
import { can } from '../session.js';
import { Empty, Head, Problem, Status } from '../parts/shown.js';
import { Table } from '../parts/table.js';
import { Time } from '../parts/time.js';

const stateOf = (it) => (!it.current ? 'draft' : it.is_enabled ? 'enabled' : 'disabled');
const KINDS = { enabled: 'ok', disabled: 'park', draft: 'wait' };

/** @type {import('../parts/table.js').Column<import('outlive').Flow>[]} */
const COLUMNS = [
  { name: 'name', value: (it) => it.name, cell: (it) => html`<b class="mono">${it.name}</b>` },
  {
    name: 'state',
    value: stateOf,
    cell: (it) =>
      html`<span title=${it.why_disabled}>
        <${Status} of=${stateOf(it)} kind=${KINDS[stateOf(it)]} />
      </span>`,
  },
  { name: 'revision', number: true, value: (it) => it.current?.number ?? '' },
  {
    name: 'published',
    value: (it) => it.current?.at,
    cell: (it) => html`<${Time} at=${it.current?.at} empty="not yet" />`,
  },
  { name: 'by', wide: true, value: (it) => it.current?.by ?? '' },
  {
    name: 'draft',
    value: (it) => it.draft?.number ?? '',
    cell: (it) =>
      it.draft &&
      html`<a href=${href(at`/flows/${it.name}`, { tab: 'draft' })}>
        <${Status} of="draft" kind="wait" />
      </a>`,
  },
  {
    name: 'reason',
    grow: true,
    wide: true,
    value: (it) => it.why_disabled || it.current?.reason || it.draft?.reason || '',
  },
];

export default function Flows() {
  const { data, error, reload } = useLoaded(
    async (signal) => (await /** @type {Promise<import('outlive').FlowsList>} */ (get('/flows', {}, signal))).items,
    [],
    {
      every: 3000,
    },
  );
  const rows = data.value;
  return html`
    <${Head}
      title="Flows"
      facts=${
        rows && [
          ['published', rows.filter((it) => it.current).length],
          ['drafts', rows.filter((it) => it.draft).length],
          ['disabled', rows.filter((it) => !it.is_enabled).length],
        ]
      }
    >
      ${
        can('flows.save_draft') &&
        html`<a class="button" href=${href('/new-flow')}>
          New flow
        </a>`
      }
    </${Head}>
    <${Problem} error=${error.value} again=${reload} />
    ${
      rows &&
      html`<${Table}
        label="flows"
        rows=${rows}
        id=${(it) => it.name}
        href=${(it) => href(at`/flows/${it.name}`)}
        columns=${COLUMNS}
        empty=${html`<${Empty} title="The library has no flow.">
          Publish a document: <code>outlive flows apply order.flow.yaml</code>
          ${
            can('flows.save_draft') &&
            html`
              , or <a href=${href('/new-flow')}>write one here</a>
            `
          }
          .
        </${Empty}>`}
      />`
    }
  `;
}
