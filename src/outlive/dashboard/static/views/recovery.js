// @ts-check
// Recovery: the runs that do not move, why, and letting them go on.
import { html, useMemo, useSignal } from '../vendor/preact.js';
import { get, post } from '../api.js';
import { at, href } from '../router.js';
import { can } from '../session.js';
import { ActionDialog } from '../parts/dialog.js';
import { Act, Empty, Head, Problem, Status } from '../parts/shown.js';
import { Pages } from '../parts/pages.js';
import { Table } from '../parts/table.js';
import { Sentence, Time } from '../parts/time.js';

const SAYS = {
  parked: 'It stopped itself, or a person stopped it. Look at the reason; then resume it, or skip the step.',
  interrupted: 'Its worker is gone. Another worker takes it over by itself when the lease has run out.',
  damaged: 'Its rows cannot be read. Run outlive fsck on the store.',
  undefined: 'No live worker has its code. Start one that has.',
  untaken: 'No live worker with its code takes from its queue. Start one that does, or look for a misspelt queue.',
};
const KINDS = { parked: 'park', interrupted: 'wait', damaged: 'fail', undefined: 'wait', untaken: 'wait' };

/** Resume the parked runs; what became of each. */
async function resumeAll(how) {
  const found = await /** @type {Promise<import('outlive').Outcomes>} */ (
    post('/bulk/resume', { ...how, limit: 1000 })
  );
  return found.items;
}

export default function Recovery() {
  const turn = useSignal(0);
  const doing = useSignal(false);
  const pages = useMemo(
    () =>
      new Pages(
        async (before) =>
          /** @type {Promise<import('outlive').IncompleteList>} */ (get('/runs/stuck', { limit: 100, before })),
        { id: (it) => it.run.id },
      ),
    [turn.value],
  );
  const again = () => {
    turn.value += 1;
  };
  const rows = pages.version.value >= 0 ? pages.rows : [];
  /** @type {import('../parts/table.js').Column<import('outlive').Incomplete>[]} */
  const columns = [
    { name: 'id', value: (it) => it.run.id, cell: (it) => html`<span class="mono">${it.run.id}</span>` },
    { name: 'workflow', value: (it) => it.run.workflow },
    {
      name: 'kind',
      value: (it) => it.kind,
      cell: (it) =>
        html`<span title=${SAYS[it.kind]}>
          <${Status} of=${it.kind} kind=${KINDS[it.kind]} />
        </span>`,
    },
    { name: 'since', value: (it) => it.run.updated_at, cell: (it) => html`<${Time} at=${it.run.updated_at} />` },
    {
      name: 'reason',
      grow: true,
      wide: true,
      value: (it) => it.reason,
      cell: (it) =>
        html`<span title=${it.reason}>
          <${Sentence} text=${it.reason || SAYS[it.kind]} />
        </span>`,
    },
    {
      name: 'do',
      label: 'action',
      cell: (it) =>
        it.kind === 'parked' &&
        can('runs.resume') &&
        html`<${Act}
          act=${async () => {
            await post(at`/runs/${it.run.id}/resume`);
            pages.take(it.run.id);
          }}
        >
          Resume
        </${Act}>`,
    },
  ].filter((column) => column.name !== 'do' || can('runs.resume'));
  return html`
    <${Head} title="Recovery" beside=${html`<span class="soft">runs that do not move</span>`}>
      <button onClick=${again}>Look again</button>
      ${
        can('bulk.resume') &&
        rows.some((it) => it.kind === 'parked') &&
        html`<button
          class="do"
          onClick=${() => {
            doing.value = true;
          }}
        >
          Resume all parked…
        </button>`
      }
    </${Head}>
    <${Problem} error=${pages.error.value} again=${again} />
    <${Table}
      label="runs that do not move"
      rows=${pages}
      id=${(it) => it.run.id}
      columns=${columns}
      href=${(it) => href(at`/runs/${it.run.id}`)}
      empty=${html`<${Empty} title="Every open run moves.">
        Runs that are parked, damaged, left behind by a lost worker, or without a worker that has their code
        are listed here.
      </${Empty}>`}
    />
    ${
      doing.value &&
      html`<${ActionDialog}
        title="Resume all parked runs"
        verb="Resume"
        close=${() => {
          doing.value = false;
        }}
        preview=${() => resumeAll({ dry_run: true })}
        show=${(items) =>
          html`<p>
            <b>
              ${items.length} ${items.length === 1 ? 'run is' : 'runs are'} parked.
            </b>${' '}
            Those whose reason is still there park again.
          </p>`}
        act=${() => resumeAll({})}
        done=${(items) => {
          again();
          return `${items.filter((it) => it.done).length} of ${items.length} resumed.`;
        }}
      />`
    }
  `;
}
