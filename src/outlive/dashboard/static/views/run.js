// @ts-check
// The page of one run: the sentence first, then its facts, the timeline with what is chosen beside it, and below the
// events, what it shows of itself, its tree, or another run to compare with.
import { html, useMemo, useRef, useSignal } from '../vendor/preact.js';
import { at, go, here, href, setQuery } from '../router.js';
import { can } from '../session.js';
import { useKeys } from '../keys.js';
import { useCommands } from '../palette.js';
import { Later } from '../parts/later.js';
import { Copy, figure, Head, Problem, RunLink, Status } from '../parts/shown.js';
import { Length, now, relative, exact, Time } from '../parts/time.js';
import { LABELS, mayAct, offered } from './run/offered.js';
import { Below, TABS } from './run/below.js';
import { Detail } from './run/detail.js';
import { useRun } from './run/following.js';
import { Gantt, keyOfStep, NOW } from './run/gantt.js';
import { criticalPath } from './run/path.js';
import { standing } from './run/standing.js';

const FACTS_MAX = 8;

export default function Run({ id }) {
  const followed = useRun(id);
  const run = followed.run.value;
  const action = useSignal(null);
  if (!run)
    return html`
      <${Head} title=${html`<span class="mono">${id}</span>`} />
      <${Problem} error=${followed.error.value} />
    `;
  return html`
    <${Page} followed=${followed} run=${run} id=${id} action=${action} />
    ${
      action.value &&
      html`<${Later}
        load=${async () => (await import('./run/actions.js')).Action}
        key=${JSON.stringify([action.value.name, action.value.of])}
        wanted=${action.value}
        followed=${followed}
        close=${() => {
          action.value = null;
        }}
      />`
    }
  `;
}

function Page({ followed, run, id, action }) {
  const version = followed.version.value;
  const { timeline } = followed;
  const { query } = here.value;
  const tab = query.get('tab') ?? 'events';
  const chosen = chosenBy(followed, query);
  const act = (name, more = {}) => {
    action.value = { name, ...more };
  };
  const choose = (key) => setQuery({ at: key === here.peek().query.get('at') ? undefined : key, event: undefined });
  const acts = offered(run);
  const moves = standing(run, {
    why: followed.why.value,
    advice: followed.advice.value,
    approvals: followed.approvals.value,
    timeline,
  });
  const known = run.finished_at ? 0 : now.value;
  const end =
    timeline.spanOf(run.number)[1] ?? (run.finished_at ? timeline.lastAt : Math.max(known, timeline.lastAt ?? 0));
  useKeys({
    Escape: ['choose nothing', () => setQuery({ at: undefined, event: undefined })],
    ...(moves.act &&
      mayMove(moves.act.name) && {
        a: [`do what would move it: ${moves.act.label.replace('…', '').toLowerCase()}`, () => move(moves.act, act)],
      }),
    ...Object.fromEntries(
      TABS.map(([name, label], index) => [String(index + 1), [label.toLowerCase(), () => setQuery({ tab: name })]]),
    ),
  });
  useCommands(acts.map((name) => ({ name: LABELS[name], act: () => act(name) })));
  // What is large is drawn again only with what it shows, and not with each other fact of the page that changes.
  const at_ = known || end;
  const steps = followed.steps.value;
  const drawing = useMemo(
    () =>
      html`<${TimelinePanel}
        followed=${followed}
        steps=${steps}
        run=${run}
        version=${version}
        end=${end}
        now=${at_}
        query=${query}
        choose=${choose}
        id=${id}
      />`,
    [followed, run, version, end, at_, query, steps],
  );
  const below = useMemo(
    () => html`<${Below} tab=${tab} followed=${followed} run=${run} version=${version} query=${query} />`,
    [tab, followed, run, version, query],
  );
  return html`
    <div class="head">
      <div class="title">
        <h1 tabindex="-1">
          ${run.workflow} <span class="mono">${run.id}</span>
        </h1>
        <${Status} of=${run.status} />
        ${
          followed.state.value === 'away' &&
          html`<span class="soft">The connection was lost; it comes again by itself.</span>`
        }
        <div class="actions">
          ${acts
            .filter(
              (name) =>
                name !== 'approve' &&
                name !== moves.act?.name &&
                (name !== 'ask' || run.waits.some((wait) => wait.kind === 'ask')),
            )
            .map(
              (name) =>
                html`<button
                  key=${name}
                  class=${name === 'cancel' || name === 'delete_run' ? 'no' : ''}
                  onClick=${() => act(name)}
                >
                  ${LABELS[name]}
                </button>`,
            )}
        </div>
      </div>
      <${Facts} run=${run} timeline=${timeline} events=${followed.events.length} />
    </div>
    <${Problem} error=${followed.error.value} />
    <${Standing} it=${moves} act=${act} choose=${choose} />
    <div class="two">
      ${drawing}
      <${Detail}
        followed=${followed}
        version=${version}
        chosen=${chosen}
        now=${at_}
        close=${
          chosen.row || chosen.step || chosen.gap || chosen.event
            ? () => setQuery({ at: undefined, event: undefined })
            : null
        }
        acts=${chosen.row ? rowActs(chosen.row, run, followed, act) : []}
      />
    </div>
    ${below}
  `;
}

/** What the URL says is chosen. */
function chosenBy(followed, query) {
  const key = query.get('at');
  if (key?.startsWith(NOW)) return { step: followed.steps.value.find((step) => keyOfStep(step) === key) };
  if (key?.startsWith('gap:')) return { gap: followed.timeline.gaps.find((gap) => `gap:${gap.seq}` === key) };
  if (key) return { row: followed.timeline.byKey.get(key) };
  const seq = query.get('event');
  return seq === null ? {} : { event: followed.events.find((event) => String(event.seq) === seq) };
}

function Facts({ run, timeline, events }) {
  const workers = timeline.workers();
  const shown = workers.slice(-4);
  const facts = [
    [
      'started',
      html`<span title=${exact(run.created_at)}>
        ${exact(run.created_at).slice(11, 19)}, <${Time} at=${run.created_at} />
      </span>`,
    ],
    [run.finished_at ? 'took' : 'for', html`<${Length} from=${run.created_at} to=${run.finished_at} />`],
    ['version', run.version],
    run.queue && ['queue', run.queue_key ? `${run.queue}, key ${run.queue_key}` : run.queue],
    run.parent_id && ['parent', html`<${RunLink} id=${run.parent_id} />`],
    run.timeout_at && !run.finished_at && ['deadline', html`<${Time} at=${run.timeout_at} />`],
    Object.keys(run.tags).length > 0 && [
      'tags',
      Object.entries(run.tags)
        .slice(0, FACTS_MAX)
        .map(
          ([name, value]) =>
            html`<a class="tag" href=${href('/runs', { tag: `${name}=${value}` })}>
              ${name}=${value}
            </a>`,
        ),
    ],
    ['events', figure(events)],
    workers.length > 0 && [
      'workers',
      html`<span class="mono" title=${workers.join('\n')}>
        ${workers.length > shown.length ? `${workers.length}: … ` : ''}
        ${shown.join(' → ')}
      </span>`,
    ],
  ];
  return html`<dl class="facts">
    ${facts.filter(Boolean).map(
      ([label, value]) =>
        html`<div key=${label}>
          <dt>${label}</dt>
          <dd>${value}</dd>
        </div>`,
    )}
  </dl>`;
}

const mayMove = (name) => name === 'open' || mayAct(name);

function move(wanted, act) {
  if (wanted.name === 'open') go(at`/runs/${wanted.of}`);
  else act(wanted.name, wanted);
}

function Standing({ it, act, choose }) {
  const said = (parts) =>
    parts.map((part) => {
      if (typeof part === 'string') return part;
      if (part.b !== undefined)
        return part.row
          ? html`<a
            href="#"
            class="name"
            onClick=${(event) => {
              event.preventDefault();
              choose(part.row);
            }}
          >
            <b>${part.b}</b>
          </a>`
          : html`<b>${part.b}</b>`;
      if (part.run !== undefined) return html`<${RunLink} id=${part.run} />`;
      return html`<time datetime=${part.at} title=${exact(part.at)}>
        ${relative(part.at, now.value)}
      </time>`;
    });
  return html`<section class=${`panel why ${it.kind}-edge`} aria-label="what it waits for">
    <p>
      ${said(it.text)}
      ${it.next.length > 0 && html`<small>${said(it.next)}</small>`}
    </p>
    ${
      it.act?.also &&
      mayMove(it.act.also.name) &&
      html`<button onClick=${() => move(it.act.also, act)}>${it.act.also.label}</button>`
    }
    ${
      it.act &&
      mayMove(it.act.name) &&
      html`<button class="do" onClick=${() => move(it.act, act)}>
        ${it.act.label}
      </button>`
    }
  </section>`;
}

function rowActs(row, run, followed, act) {
  const found = [];
  if (row.kind === 'step' && row.number === 0 && !row.open && can('runs.fork'))
    found.push(html`<button onClick=${() => act('fork', { row, of: row.key })}>Fork from here…</button>`);
  if (row.kind === 'step' && row.open && run.status === 'parked' && can('runs.skip_step'))
    found.push(html`<button onClick=${() => act('skip_step', { row, of: row.key })}>Skip…</button>`);
  if (row.kind === 'signal' && !run.finished_at && can('runs.signal'))
    found.push(html`<button onClick=${() => act('signal', { of: row.label.slice(7) })}>Send signal…</button>`);
  if (row.kind === 'approval' && row.open && can('approvals.approve')) {
    const approval =
      followed.approvals.value.find((each) => each.status === 'pending' && each.id === row.approval) ??
      followed.approvals.value.find((each) => each.status === 'pending');
    if (approval)
      found.push(
        html`<button onClick=${() => act('reject', { approval, of: approval.id })}>Reject…</button>`,
        html`<button class="do" onClick=${() => act('approve', { approval, of: approval.id })}>
          Approve…
        </button>`,
      );
  }
  return found;
}

function TimelinePanel({ followed, steps, run, version, end, now: at_, query, choose, id }) {
  const { timeline } = followed;
  const collapsed = useSignal(new Set());
  const view = useSignal([0, 1]);
  const kept = useRef({});
  const critical = query.get('path') === '1';
  const even = query.get('even') === '1';
  const from = timeline.spanOf(run.number)[0] ?? end;
  // A drawing that grows each second would never be still: its right edge moves in steps of a fiftieth.
  const edge = useMemo(() => {
    const wanted = run.finished_at || timeline.end ? end : end + (end - from) * 0.02;
    if (run.finished_at || !kept.current.edge || wanted > kept.current.edge) kept.current.edge = wanted;
    return kept.current.edge;
  }, [end, from, run.finished_at]);
  const path = useMemo(
    () => (critical ? criticalPath(timeline, at_) : null),
    [timeline, version, critical, timeline.byKey.size < 1000 && at_],
  );
  useKeys({
    c: ['critical path', () => setQuery({ path: critical ? undefined : '1' })],
    e: ['even scale', () => setQuery({ even: even ? undefined : '1' })],
  });
  const zoomedIn = view.value[1] - view.value[0] < 0.999;
  return html`<section class="panel timeline">
    <header>
      <h2 class=${followed.state.value === 'live' ? 'live' : ''}>Timeline</h2>
      <span class="tools">
        ${path && html`<span class="soft">${percent(path.length, end - from)} on the path</span>`}
        <button
          class="quiet"
          aria-pressed=${critical}
          title="what decided how long it took (c)"
          onClick=${() => setQuery({ path: critical ? undefined : '1' })}
        >
          Critical path
        </button>
        <button
          class="quiet"
          aria-pressed=${even}
          title="long waits are squeezed unless the scale is even (e)"
          onClick=${() => setQuery({ even: even ? undefined : '1' })}
        >
          Even scale
        </button>
        ${
          zoomedIn
            ? html`<button
              class="quiet"
              onClick=${() => {
                view.value = [0, 1];
              }}
            >
              Zoom out
            </button>`
            : html`<span class="hint">
              <kbd>z</kbd> zoom
            </span>`
        }
        <${Copy} label="Copy JSON" text=${() => JSON.stringify(plainLines(timeline, run.number), null, 1)} />
      </span>
    </header>
    <${Gantt}
      timeline=${timeline}
      version=${version}
      now=${at_}
      from=${from}
      to=${edge}
      number=${run.number}
      selected=${query.get('at')}
      urlOf=${(key) => href(at`/runs/${id}`, { at: key })}
      choose=${choose}
      collapsed=${collapsed}
      label="timeline"
      isLoading=${followed.isLoading.value}
      critical=${critical}
      even=${even}
      view=${view}
      running=${run.status === 'running' && run.number === 0}
      steps=${steps}
    />
  </section>`;
}

const percent = (part, whole) => `${Math.round((part / Math.max(whole, 0.001)) * 100)} %`;

/** The rows of a timeline as plain data. */
function plainLines(timeline, number) {
  const instant = (moment) => (moment === null ? null : new Date(moment).toISOString());
  return timeline.lines(new Set(), number).map(({ row, depth }) => ({
    name: row.label,
    kind: row.kind,
    depth,
    state: row.state,
    note: row.note || undefined,
    bars: row.bars.map((bar) => ({
      from: instant(bar.from),
      to: instant(bar.to),
      kind: bar.kind,
      attempt: bar.attempt,
      worker: bar.worker,
    })),
    moments: row.marks.map((mark) => ({ at: instant(mark.at), kind: mark.kind, event: mark.seq })),
  }));
}
