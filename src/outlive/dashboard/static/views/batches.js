// @ts-check
// Batches: a workflow for each of many rows, how far they are, and what became of each.
import { html, useMemo } from '../vendor/preact.js';
import { get, post, useLoaded } from '../api.js';
import { at, go, here, href, setQuery } from '../router.js';
import { can } from '../session.js';
import { Act, Empty, figure, Head, kindOf, Problem, Status } from '../parts/shown.js';
import { Pages } from '../parts/pages.js';
import { Table } from '../parts/table.js';
import { Length, Sentence, Time } from '../parts/time.js';

const LOOKED_AT = 25;

/** How far a batch is: what has succeeded, failed, and is left. */
function Progress({ it }) {
  const share = (n) => ({ width: `${(100 * n) / Math.max(it.total, 1)}%` });
  return html`<span
    class="progress"
    role="img"
    aria-label=${`${it.succeeded} of ${it.total} succeeded, ${it.failed} failed`}
  >
    <span class="ok-bar" style=${share(it.succeeded)}></span>
    <span class="fail-bar" style=${share(it.failed)}></span>
  </span>`;
}

const done = (it) => `${figure(it.succeeded + it.failed)} of ${figure(it.total)}`;

/** @type {import('../parts/table.js').Column<import('outlive').BatchInfo>[]} */
const COLUMNS = [
  { name: 'id', value: (it) => it.id, cell: (it) => html`<span class="mono">${it.id}</span>` },
  { name: 'work', label: 'each row', value: (it) => it.work },
  { name: 'status', value: (it) => it.status, cell: (it) => html`<${Status} of=${it.status} />` },
  {
    name: 'progress',
    value: (it) => (it.succeeded + it.failed) / Math.max(it.total, 1),
    cell: (it) => html`<${Progress} it=${it} />`,
  },
  { name: 'done', number: true, value: (it) => it.succeeded + it.failed, cell: done },
  {
    name: 'failed',
    number: true,
    value: (it) => it.failed,
    cell: (it) => html`<span class=${it.failed ? 'fail' : ''}>${figure(it.failed)}</span>`,
  },
  { name: 'started', wide: true, value: (it) => it.created_at, cell: (it) => html`<${Time} at=${it.created_at} />` },
  {
    name: 'took',
    number: true,
    wide: true,
    value: () => '',
    cell: (it) => html`<${Length} from=${it.created_at} to=${it.finished_at} />`,
  },
];

export default function Batches({ id }) {
  return id ? html`<${One} id=${id} />` : html`<${All} />`;
}

function All() {
  const after = here.value.query.get('after');
  const { data, error, reload } = useLoaded(
    (signal) =>
      /** @type {Promise<import('outlive').BatchesPage>} */ (get('/batches', { limit: LOOKED_AT, after }, signal)),
    [after],
    {
      every: 3000,
    },
  );
  const page = data.value;
  return html`
    <${Head} title="Batches">
      ${page?.previous && html`<button onClick=${() => setQuery({ after: page.previous })}>Newer</button>`}
      ${page?.next && html`<button onClick=${() => setQuery({ after: page.next })}>Older</button>`}
    </${Head}>
    <${Problem} error=${error.value} again=${reload} />
    ${
      page &&
      html`<${Table}
        label="batches"
        rows=${page.items}
        columns=${COLUMNS}
        href=${(it) => href(at`/batches/${it.id}`)}
        empty=${html`<${Empty} title="There are no batches.">
          Start one: <code>await engine.start_batch(workflow, rows)</code>, or${' '}
          <code>outlive flows batch</code> for a file of rows.
        </${Empty}>`}
      />`
    }
  `;
}

function One({ id }) {
  const status = here.value.query.get('status') ?? '';
  const { data, error, reload } = useLoaded(
    (signal) => /** @type {Promise<import('outlive').BatchInfo>} */ (get(at`/batches/${id}`, {}, signal)),
    [id],
    {
      every: 1500,
    },
  );
  const it = data.value;
  const ended = it ? it.succeeded + it.failed : 0;
  const items = useMemo(
    () =>
      new Pages(
        (after) =>
          /** @type {Promise<import('outlive').ItemsPage>} */ (
            get(at`/batches/${id}/items`, { status, limit: 200, after })
          ),
        {
          id: (item) => item.index,
        },
      ),
    [id, status, ended],
  );
  const retry = async () => {
    const batch = await /** @type {Promise<import('outlive').Started>} */ (post(at`/batches/${id}/retry`));
    go(at`/batches/${batch.id}`);
  };
  const over = it && !['pending', 'running', 'waiting', 'parked'].includes(it.status);
  return html`
    <${Head}
      title=${html`
        Batch <span class="mono">${id}</span>
      `}
      beside=${it && html`<${Status} of=${it.status} />`}
      facts=${
        it && [
          ['each row', it.work],
          ['rows', figure(it.total)],
          ['succeeded', figure(it.succeeded)],
          ['failed', html`<span class=${it.failed ? 'fail' : ''}>${figure(it.failed)}</span>`],
          ['at once', it.concurrency],
          ['run', html`<a href=${href(at`/runs/${id}`)}>timeline</a>`],
        ]
      }
    >
      ${
        over &&
        it.failed > 0 &&
        can('batches.retry') &&
        html`<${Act} kind="do" act=${retry}>
          Retry what failed
        </${Act}>`
      }
    </${Head}>
    <${Problem} error=${error.value} again=${reload} />
    ${
      it &&
      html`
        <div class=${`panel why ${kindOf(it.status)}-edge`}>
          <p>
            <${Sentence} text=${it.why} />
            <small>${done(it)} rows have ended.</small>
          </p>
          <${Progress} it=${it} />
        </div>
        <div class="filters" role="group" aria-label="outcome">
          ${['', 'succeeded', 'failed'].map(
            (each) =>
              html`<button
                key=${each}
                class="toggle"
                aria-pressed=${status === each}
                onClick=${() => setQuery({ status: each })}
              >
                ${each || 'all'}
              </button>`,
          )}
        </div>
        <${Table}
          label="items"
          rows=${items}
          id=${(item) => item.index}
          caption="items that have ended"
          columns=${[
            { name: 'row', number: true, value: (item) => item.index },
            { name: 'status', value: (item) => item.status, cell: (item) => html`<${Status} of=${item.status} />` },
            {
              name: 'result',
              grow: true,
              value: (item) => item.error?.message ?? JSON.stringify(item.result),
              cell: (item) =>
                item.error
                  ? html`<span class="fail" title=${item.error.message}>
                    ${item.error.type.split('.').pop()}: ${item.error.message}
                  </span>`
                  : html`<span class="mono" title=${JSON.stringify(item.result)}>
                    ${JSON.stringify(item.result)}
                  </span>`,
            },
          ]}
          empty=${html`<${Empty} title=${status ? `No item has ${status}.` : 'No item has ended yet.'} />`}
        />
      `
    }
  `;
}
