// @ts-check
// Schedules: when workflows start by themselves; the next fires on a time line, and one schedule with what can be done
// to it.
import { html, useSignal } from '../vendor/preact.js';
import { get, post, useLoaded } from '../api.js';
import { at, go, here, href, setQuery } from '../router.js';
import { can } from '../session.js';
import { useWidth } from '../parts/chart.js';
import { ActionDialog, Field } from '../parts/dialog.js';
import { Act, Empty, Head, Problem, Status, kindOf } from '../parts/shown.js';
import { Payload } from '../parts/json.js';
import { Table } from '../parts/table.js';
import { Sentence, Time, exact, lasts, now, relative, span } from '../parts/time.js';

const WINDOWS = { '1h': 3_600_000, '24h': 86_400_000, '7d': 604_800_000 };
const DRAWN_MAX = 14;

const when = (it) =>
  it.schedule
    ? it.schedule.every
      ? `every ${lasts(span(it.schedule.every))}`
      : it.schedule.cron.join(' or ')
    : 'damaged';
const stateOf = (it) =>
  it.is_tripped
    ? ['tripped', 'fail']
    : it.is_paused
      ? ['paused', 'park']
      : it.schedule
        ? ['active', 'ok']
        : ['damaged', 'fail'];

/** The outcomes of the last runs, the newest on the right; each is a link. */
const Last = ({ runs }) =>
  html`<span class="dots">
    ${runs.map(
      (run) =>
        html`<a
          key=${run.id}
          class=${`dot ${kindOf(run.status)}`}
          href=${href(at`/runs/${run.id}`)}
          title=${`${run.status}, ${exact(run.tick)}`}
          aria-label=${`${run.status}, ${run.id}`}
        ></a>`,
    )}
  </span>`;

/** @type {import('../parts/table.js').Column<import('outlive').Schedule>[]} */
const COLUMNS = [
  { name: 'name', value: (it) => it.name, cell: (it) => html`<span class="mono">${it.name}</span>` },
  { name: 'workflow', wide: true, value: (it) => it.workflow },
  {
    name: 'when',
    value: when,
    cell: (it) =>
      html`
        <span class="mono">${when(it)}</span>
        ${
          it.schedule?.cron.length
            ? html`
              ${' '}
              <span class="soft">${it.schedule.tz}</span>
            `
            : ''
        }
      `,
  },
  { name: 'next', value: (it) => it.next_fires[0], cell: (it) => html`<${Time} at=${it.next_fires[0]} empty="—" />` },
  {
    name: 'last',
    label: 'last outcomes',
    wide: true,
    value: (it) => it.last.map((run) => run.status).join(' '),
    cell: (it) => html`<${Last} runs=${it.last.slice(-8)} />`,
  },
  {
    name: 'state',
    value: (it) => stateOf(it)[0],
    cell: (it) => html`<${Status} of=${stateOf(it)[0]} kind=${stateOf(it)[1]} />`,
  },
  {
    name: 'why',
    grow: true,
    wide: true,
    value: (it) => it.why,
    cell: (it) =>
      stateOf(it)[0] !== 'active' &&
      html`<span class="soft" title=${it.why}>
        <${Sentence} text=${it.why} />
      </span>`,
  },
];

async function allSchedules(signal) {
  const found = [];
  for (let after = /** @type {string | null} */ (''); after !== null && found.length < 2000; ) {
    const page = await /** @type {Promise<import('outlive').SchedulesList>} */ (
      get('/schedules', { limit: 500, after }, signal)
    );
    found.push(...page.items);
    after = page.next;
  }
  return found;
}

export default function Schedules({ name }) {
  return name ? html`<${One} name=${name} />` : html`<${All} />`;
}

function All() {
  const { data, error, reload } = useLoaded(allSchedules, [], { every: 5000 });
  const rows = data.value;
  return html`
    <${Head}
      title="Schedules"
      facts=${
        rows && [
          ['schedules', rows.length],
          ['paused', rows.filter((it) => it.is_paused).length],
          ['tripped', rows.filter((it) => it.is_tripped).length],
          ['open runs', rows.reduce((sum, it) => sum + it.open.length, 0)],
        ]
      }
    />
    <${Problem} error=${error.value} again=${reload} />
    ${rows && rows.length > 0 && html`<${TimeLine} schedules=${rows} />`}
    ${
      rows &&
      html`<${Table}
        label="schedules"
        rows=${rows}
        id=${(it) => it.name}
        columns=${COLUMNS}
        href=${(it) => href(at`/schedules/${it.name}`)}
        empty=${html`<${Empty} title="There are no schedules.">
          Declare one in code, <code>@outlive.workflow(schedule=outlive.cron("0 6 * * *"))</code>, or at run
          time: <code>await engine.schedules.set("digest", outlive.cron("0 6 * * *"), "digest")</code>.
        </${Empty}>`}
      />`
    }
  `;
}

/** The next fires of all schedules, soonest first. */
function TimeLine({ schedules }) {
  const [own, width] = useWidth();
  const chosen = here.value.query.get('window') ?? '24h';
  const size = WINDOWS[chosen] ?? WINDOWS['24h'];
  const start = now.value;
  const rows = schedules
    .filter((it) => it.next_fires.length && Date.parse(it.next_fires[0]) - start < size)
    .sort((a, b) => Date.parse(a.next_fires[0]) - Date.parse(b.next_fires[0]))
    .slice(0, DRAWN_MAX);
  const left = Math.min(180, width.value * 0.3);
  const place = (instant) => left + ((Date.parse(instant) - start) / size) * (width.value - left - 12);
  const height = 28 + rows.length * 24;
  // The server says the next few fires only: a line says that more come.
  const goesOn = (it) => it.next_fires.length > 1 && Date.parse(it.next_fires[it.next_fires.length - 1]) - start < size;
  const steps = [0, 0.25, 0.5, 0.75, 1];
  const label = (share) => (share === 0 ? 'now' : `+${lasts(size * share)}`);
  const summary = rows.map((it) => `${it.name} ${relative(it.next_fires[0], start)}`).join(', ');
  return html`<section class="panel" aria-labelledby="next">
    <header>
      <h2 id="next">Next fires</h2>
      <span role="group" aria-label="how far ahead" class="filters">
        ${Object.keys(WINDOWS).map(
          (each) =>
            html`<button
              key=${each}
              class="toggle"
              aria-pressed=${each === chosen}
              onClick=${() => setQuery({ window: each })}
            >
              ${each}
            </button>`,
        )}
      </span>
    </header>
    <div ref=${own} class="chart">
      ${
        rows.length === 0
          ? html`<p class="soft">None within ${lasts(size)}.</p>`
          : html`<svg
            width=${width.value}
            height=${height}
            role="img"
            aria-label=${`The next fires: ${summary}`}
          >
            ${steps.map(
              (share) =>
                html`<g key=${share}>
                  <line
                    class="axis"
                    x1=${left + share * (width.value - left - 12)}
                    x2=${left + share * (width.value - left - 12)}
                    y1="18"
                    y2=${height}
                  />
                  <text
                    class="t"
                    x=${left + share * (width.value - left - 12)}
                    y="12"
                    text-anchor=${share === 0 ? 'start' : share === 1 ? 'end' : 'middle'}
                  >
                    ${label(share)}
                  </text>
                </g>`,
            )}
            ${rows.map(
              (it, n) =>
                html`<g key=${it.name}>
                  <text class="m" x="0" y=${40 + n * 24}>
                    ${it.name.length > left / 7.6 ? `${it.name.slice(0, Math.floor(left / 7.6) - 1)}…` : it.name}
                  </text>
                  ${it.next_fires
                    .filter((fire) => Date.parse(fire) - start < size)
                    .map(
                      (fire) =>
                        html`<rect
                          key=${fire}
                          class=${it.is_paused || it.is_tripped ? 'off' : 'fire'}
                          x=${Math.max(place(fire), left) - 2}
                          y=${28 + n * 24}
                          width="5"
                          height="16"
                          rx="2"
                        >
                          <title>${`${it.name}: ${exact(fire)}`}</title>
                        </rect>`,
                    )}
                  ${
                    goesOn(it) &&
                    html`<line
                      class="goes-on"
                      x1=${place(it.next_fires[it.next_fires.length - 1]) + 6}
                      x2=${width.value - 12}
                      y1=${36 + n * 24}
                      y2=${36 + n * 24}
                    >
                      <title>and so on</title>
                    </line>`
                  }
                </g>`,
            )}
          </svg>`
      }
    </div>
  </section>`;
}

function One({ name }) {
  const { data, error, reload } = useLoaded(
    (signal) => /** @type {Promise<import('outlive').Schedule>} */ (get(at`/schedules/${name}`, {}, signal)),
    [name],
    {
      every: 2000,
    },
  );
  const it = data.value;
  const doing = useSignal('');
  const close = () => {
    doing.value = '';
  };
  const after = (text) => {
    reload();
    return text;
  };
  if (!it)
    return html`
      <${Head}
        title=${html`
          Schedule <span class="mono">${name}</span>
        `}
      />
      <${Problem} error=${error.value} again=${reload} />
    `;
  const [state, kind] = stateOf(it);
  const trigger = async () => {
    const run = await /** @type {Promise<import('outlive').Started>} */ (post(at`/schedules/${name}/trigger`));
    go(at`/runs/${run.id}`);
  };
  const resume = async () => {
    await post(at`/schedules/${name}/resume`);
    reload();
  };
  const stopped = it.is_paused || it.is_tripped;
  const runs = [...it.open, ...it.last.toReversed().filter((run) => !it.open.some((each) => each.id === run.id))];
  return html`
    <${Head}
      title=${html`
        Schedule <span class="mono">${name}</span>
      `}
      beside=${html`<${Status} of=${state} kind=${kind} />`}
      facts=${[
        ['workflow', html`<a href=${href('/runs', { workflow: it.workflow })}>${it.workflow}</a>`],
        ['when', html`<span class="mono">${when(it)}</span>`],
        ['time zone', it.schedule?.tz],
        ['overlap', it.schedule?.overlap.replace('_', ' ')],
        it.schedule && span(it.schedule.jitter) > 0 && ['jitter', lasts(span(it.schedule.jitter))],
        ['failed in a row', it.failures],
        ['skipped', it.skipped],
        ['missed', it.missed],
      ]}
    >
      ${can('schedules.trigger') && html`<${Act} act=${trigger}>Trigger now</${Act}>`}
      ${
        can('schedules.backfill') &&
        html`<button
          onClick=${() => {
            doing.value = 'backfill';
          }}
        >
          Backfill…
        </button>`
      }
      ${
        !stopped &&
        can('schedules.pause') &&
        html`<button
          onClick=${() => {
            doing.value = 'pause';
          }}
        >
          Pause…
        </button>`
      }
      ${
        stopped &&
        can('schedules.resume') &&
        html`<${Act} kind="do" act=${resume}>
          Resume
        </${Act}>`
      }
    </${Head}>
    <${Problem} error=${error.value} again=${reload} />
    ${
      it.why &&
      html`<div class=${`panel why ${kind}-edge`}>
        <p>
          <${Sentence} text=${it.why} />
        </p>
      </div>`
    }
    <div class="two">
      <${Table}
        label="runs of the schedule"
        rows=${runs}
        href=${(run) => href(at`/runs/${run.id}`)}
        caption="last runs"
        columns=${[
          { name: 'id', value: (run) => run.id, cell: (run) => html`<span class="mono">${run.id}</span>` },
          { name: 'status', value: (run) => run.status, cell: (run) => html`<${Status} of=${run.status} />` },
          { name: 'tick', value: (run) => run.tick, cell: (run) => html`<${Time} at=${run.tick} />` },
        ]}
        empty=${html`<${Empty} title="It has started no run yet." />`}
      />
      <div class="stack">
        <section class="panel" aria-labelledby="fires">
          <header>
            <h2 id="fires">Next fires</h2>
          </header>
          <dl class="list">
            ${it.next_fires.map(
              (fire) =>
                html`<div key=${fire}>
                  <dt>
                    <${Time} at=${fire} />
                  </dt>
                  <dd class="mono">${exact(fire).slice(0, 19)}</dd>
                </div>`,
            )}
            ${
              it.next_fires.length === 0 &&
              html`<div>
                <dt>none</dt>
              </div>`
            }
          </dl>
        </section>
        ${
          it.schedule &&
          html`<section class="panel">
            <${Payload} title="Arguments" value=${it.schedule.arguments} />
          </section>`
        }
      </div>
    </div>
    ${doing.value === 'pause' && html`<${Pause} name=${name} close=${close} after=${after} />`}
    ${doing.value === 'backfill' && html`<${Backfill} name=${name} close=${close} after=${after} />`}
  `;
}

function Pause({ name, close, after }) {
  const reason = useSignal('');
  return html`<${ActionDialog}
    title=${`Pause ${name}`}
    verb="Pause"
    close=${close}
    act=${async () => after(await post(at`/schedules/${name}/pause`, { reason: reason.value }))}
    done="Paused."
  >
    <p>It starts nothing more until it is resumed. Runs that it has started go on.</p>
    <${Field} label="why" hint="shown to those who look at it">
      <input
        maxlength="500"
        value=${reason.value}
        onInput=${(event) => {
          reason.value = event.target.value;
        }}
        autofocus
      />
    </${Field}>
  </${ActionDialog}>`;
}

function Backfill({ name, close, after }) {
  const range = useSignal({ start: '', end: '', overlap: 'buffer_all' });
  const set = (key) => (event) => {
    range.value = { ...range.value, [key]: event.target.value };
  };
  const act = async () => {
    const found = await /** @type {Promise<import('outlive').BackfillView>} */ (
      post(at`/schedules/${name}/backfill`, {
        start: new Date(range.value.start).toISOString(),
        end: new Date(range.value.end).toISOString(),
        overlap: range.value.overlap,
      })
    );
    return after(found);
  };
  return html`<${ActionDialog}
    title=${`Backfill ${name}`}
    verb="Start the runs"
    close=${close}
    act=${act}
    done=${(found) => `${found.ticks} ${found.ticks === 1 ? 'tick is' : 'ticks are'} started.`}
    disabled=${!(range.value.start && range.value.end > range.value.start)}
  >
    <p>Starts a run for each tick of a past range that has none.</p>
    <${Field} label="from">
      <input type="datetime-local" required value=${range.value.start} onInput=${set('start')} />
    </${Field}>
    <${Field} label="to">
      <input type="datetime-local" required value=${range.value.end} onInput=${set('end')} />
    </${Field}>
    <${Field} label="how">
      <select value=${range.value.overlap} onChange=${set('overlap')}>
        <option value="buffer_all">one after the other</option>
        <option value="allow">all at once</option>
      </select>
    </${Field}>
  </${ActionDialog}>`;
}
