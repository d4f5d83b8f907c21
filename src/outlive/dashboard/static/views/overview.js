// @ts-check
// Overview: what needs a person, then what became of the runs of the last hour, then where runs wait.
import { html } from '../vendor/preact.js';
import { get, useLoaded } from '../api.js';
import { at, go, href } from '../router.js';
import { can } from '../session.js';
import { Bars } from '../parts/chart.js';
import { Empty, figure, Head, Problem, Tile } from '../parts/shown.js';
import { Table } from '../parts/table.js';
import { lasts, span } from '../parts/time.js';

const DAY = 86_400_000;
/** A count of the API: with a plus if counting stopped. */
export const count = (it) => `${figure(it.count)}${it.at_least ? '+' : ''}`;
const clock = (instant) => new Date(instant).toTimeString().slice(0, 5);
const dayAgo = () => new Date(Math.floor((Date.now() - DAY) / 60_000) * 60_000).toISOString();

export default function Overview() {
  const { data, error, reload } = useLoaded(
    (signal) => /** @type {Promise<import('outlive').OverviewView>} */ (get('/overview', {}, signal)),
    [],
    { every: 5000 },
  );
  const it = data.value;
  return html`
    <${Head} title="Overview" beside=${it && !error.value && html`<span class="soft live">live</span>`} />
    <${Problem} error=${error.value} again=${reload} />
    ${
      it &&
      html`
        <${Needs} it=${it} />
        <${Hour} it=${it} />
        <${Waiting} it=${it} />
      `
    }
  `;
}

function Needs({ it }) {
  const kind = (counted, name) => (counted.count ? name : '');
  const nothing = !it.approvals.count && !it.runs.parked.count && !it.failed.count && it.workers > 0;
  return html`<section aria-labelledby="needs">
    <h2 id="needs">${nothing ? 'Nothing needs a person' : 'Needs a person'}</h2>
    <div class="tiles">
      <${Tile}
        label="approvals due"
        value=${count(it.approvals)}
        kind=${kind(it.approvals, 'wait')}
        note="wait for a decision"
        to=${href('/approvals')}
      />
      <${Tile}
        label="parked"
        value=${count(it.runs.parked)}
        kind=${kind(it.runs.parked, 'park')}
        note="do not go on by themselves"
        to=${href('/recovery')}
      />
      <${Tile}
        label="failed"
        value=${count(it.failed)}
        kind=${kind(it.failed, 'fail')}
        note="of the last 24 hours"
        to=${href('/runs', { status: ['failed', 'timed_out'], since: dayAgo(), roots_only: 'true' })}
      />
      <${Tile}
        label="workers"
        value=${it.workers}
        kind=${it.workers ? '' : 'fail'}
        note=${it.workers ? 'live' : 'no run moves'}
        to=${href('/workers')}
      />
    </div>
  </section>`;
}

/** How many runs ended how. */
const inWords = (it) => `${it.succeeded} succeeded, ${it.failed} failed, ${it.cancelled} cancelled, ${it.open} open`;

function Hour({ it }) {
  const sum = (name) => it.minutes.reduce((all, minute) => all + minute[name], 0);
  const total = { succeeded: sum('succeeded'), failed: sum('failed'), cancelled: sum('cancelled'), open: sum('open') };
  const all = total.succeeded + total.failed + total.cancelled + total.open;
  const bars = it.minutes.map((minute) => ({
    label: clock(minute.start),
    title: `${clock(minute.start)}: ${inWords(minute)}`,
    parts: [
      ['ok', minute.succeeded],
      ['run', minute.open],
      ['off', minute.cancelled],
      ['fail', minute.failed],
    ],
  }));
  const summary = `Runs of the last hour by the minute of their start: ${inWords(total)}.`;
  const open = (index) => {
    const start = it.minutes[index].start;
    go('/runs', {
      since: start,
      until: new Date(new Date(start).getTime() + 60_000).toISOString(),
      roots_only: 'true',
    });
  };
  return html`<div class="two">
    <section class="panel" aria-labelledby="hour">
      <header>
        <h2 id="hour">Runs per minute, by outcome</h2>
        <span class="legend">
          <span class="ok">succeeded ${figure(total.succeeded)}</span>
          <span class="run">open ${figure(total.open)}</span>
          <span class="off">cancelled ${figure(total.cancelled)}</span>
          <span class="fail">failed ${figure(total.failed)}</span>
        </span>
      </header>
      ${
        all === 0
          ? html`<${Empty} title="No run was started in the last hour.">
            Start one: <code>outlive run app.py:NAME</code>, or look at <a href=${href('/runs')}>all runs</a>.
          </${Empty}>`
          : html`<${Bars} bars=${bars} summary=${summary} click=${open} />`
      }
    </section>
    <section class="panel" aria-labelledby="now">
      <header>
        <h2 id="now">Now</h2>
        <a class="soft" href=${href('/runs', { since: it.minutes[0].start, roots_only: 'true' })}>
          runs of this hour
        </a>
      </header>
      <dl class="list">
        <div>
          <dt>a run takes, p50</dt>
          <dd>${it.lengths.runs ? lasts(it.lengths.p50 * 1000) : '—'}</dd>
        </div>
        <div>
          <dt>p95 of ${it.lengths.runs} runs</dt>
          <dd>${it.lengths.runs ? lasts(it.lengths.p95 * 1000) : '—'}</dd>
        </div>
        ${['running', 'waiting', 'pending'].map(
          (status) =>
            html`<div key=${status}>
              <dt>${status}</dt>
              <dd>
                <a href=${href('/runs', { status })}>${count(it.runs[status])}</a>
              </dd>
            </div>`,
        )}
        <div>
          <dt>longest due for a worker</dt>
          <dd class=${it.pending_seconds > 60 ? 'fail' : ''}>${lasts(it.pending_seconds * 1000)}</dd>
        </div>
        <div>
          <dt>
            <a href=${href('/schedules')}>schedule lag</a>
          </dt>
          <dd class=${it.schedule_seconds > 60 ? 'fail' : ''}>${lasts(it.schedule_seconds * 1000)}</dd>
        </div>
      </dl>
    </section>
  </div>`;
}

function Waiting({ it }) {
  const columns = [
    { name: 'queue', value: (each) => each.name, cell: (each) => html`<span class="mono">${each.name}</span>` },
    {
      name: 'in_line',
      label: 'in line',
      number: true,
      value: (each) => each.in_line.count,
      cell: (each) => count(each.in_line),
    },
    {
      name: 'age',
      label: 'waits longest',
      number: true,
      value: (each) => (each.waiting === null ? null : span(each.waiting)),
      cell: (each) => (each.waiting === null ? '' : lasts(span(each.waiting))),
    },
    { name: 'running', number: true, value: (each) => each.running.count, cell: (each) => count(each.running) },
    {
      name: 'paused',
      grow: true,
      value: (each) => each.paused,
      cell: (each) => each.paused && html`<span class="park">${each.paused}</span>`,
    },
  ];
  return html`<section aria-labelledby="queues" class="stack">
    <h2 id="queues">Queues</h2>
    <${Table}
      label="queues with runs"
      rows=${it.queues}
      id=${(each) => each.name}
      href=${can('queues.stats') ? (each) => href(at`/queues/${each.name}`) : undefined}
      columns=${columns}
      empty=${html`<${Empty} title="No queue has runs.">
        <a href=${href('/queues')}>All queues</a>
      </${Empty}>`}
    />
  </section>`;
}
