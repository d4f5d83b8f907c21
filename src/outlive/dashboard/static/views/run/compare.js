// @ts-check
// Two runs of one workflow side by side: both timelines from their beginnings, and where they differ.
import { html, useEffect, useMemo, useSignal } from '../../vendor/preact.js';
import { get, useLoaded } from '../../api.js';
import { at, href, setQuery } from '../../router.js';
import { Empty, Problem, RunLink, Status } from '../../parts/shown.js';
import { Table } from '../../parts/table.js';
import { lasts, relative } from '../../parts/time.js';
import { askFor } from '../../parts/history.js';
import { Followed } from './following.js';
import { Gantt } from './gantt.js';
import { differences } from './differences.js';
import { lengthOf } from './standing.js';

export function Compare({ followed, run, version, query }) {
  const wanted = query.get('with');
  const other = useSignal(null);
  const error = useSignal(null);
  const { data } = useLoaded(
    async (signal) =>
      (
        await /** @type {Promise<import('outlive').RunsPage>} */ (
          get('/runs', { workflow: run.workflow, limit: 50, roots_only: true }, signal)
        )
      ).items.filter((it) => it.id !== run.id),
    [run.id],
  );
  useEffect(() => {
    other.value = null;
    error.value = null;
    if (!wanted) return undefined;
    const loading = new Followed(wanted);
    const load = async () => {
      const { run, page } = askFor(wanted, loading.leaving.signal);
      loading.run.value = await run;
      await loading.load(page);
      other.value = loading;
    };
    load().catch((problem) => {
      if (!loading.leaving.signal.aborted) error.value = problem;
    });
    return () => loading.end();
  }, [wanted]);
  const choice = html`<form
    class="filters pad"
    onSubmit=${(event) => {
      event.preventDefault();
      setQuery({ with: event.target.elements.with.value.trim() });
    }}
  >
    <label>
      with${' '}
      <select name="with" value=${wanted ?? ''} onChange=${(event) => setQuery({ with: event.target.value })}>
        <option value="">choose a run of ${run.workflow}</option>
        ${wanted && !data.value?.some((it) => it.id === wanted) && html`<option value=${wanted}>${wanted}</option>`}
        ${(data.value ?? []).map(
          (it) =>
            html`<option key=${it.id} value=${it.id}>
              ${it.id}, ${it.status.replace('_', ' ')}, ${relative(it.created_at)}
            </option>`,
        )}
      </select>
    </label>
  </form>`;
  return html`
    <section class="panel">${choice}</section>
    <${Problem} error=${error.value} />
    ${
      !wanted &&
      html`<div class="panel">
        <${Empty} title="Compare with another run.">
          Choose one that went well beside one that did not: what took longer, what ended otherwise and what is
          missing stands in a table.
        </${Empty}>
      </div>`
    }
    ${other.value && html`<${Both} a=${followed} b=${other.value} version=${version} />`}
  `;
}

function Both({ a, b, version }) {
  const now = Math.max(Date.now(), a.timeline.lastAt, b.timeline.lastAt);
  const collapsed = useSignal(new Set());
  const view = useSignal([0, 1]);
  const rows = useMemo(() => differences(a.timeline, b.timeline, now), [a, b, version]);
  const length = Math.max(lengthOf(a.run.value, now), lengthOf(b.run.value, now));
  const drawn = (it, other, label) => {
    const from = it.timeline.beganAt;
    return html`<section class="panel timeline">
      <header>
        <h2 class="as-is">
          <${RunLink} id=${it.run.value.id} />
        </h2>
        <span class="tools">
          <span class="soft">${lasts(lengthOf(it.run.value, now))}</span>
          <${Status} of=${it.run.value.status} />
        </span>
      </header>
      <${Gantt}
        timeline=${it.timeline}
        version=${it.version.value}
        now=${now}
        from=${from}
        to=${from + length}
        selected=""
        urlOf=${(key) => href(at`/runs/${it.run.value.id}`, { at: key })}
        choose=${(key) => {
          location.hash = href(at`/runs/${it.run.value.id}`, { at: key });
        }}
        collapsed=${collapsed}
        label=${label}
        keys=${false}
        view=${view}
        beside=${{ timeline: other.timeline, from: other.timeline.beganAt }}
      />
    </section>`;
  };
  const columns = [
    { name: 'what', value: (it) => it.name, cell: (it) => html`<span class="mono">${it.name}</span>` },
    {
      name: 'this',
      label: 'this run',
      number: true,
      value: (it) => it.a?.length ?? '',
      cell: (it) => html`<${Side} side=${it.a} />`,
    },
    {
      name: 'other',
      label: 'the other',
      number: true,
      value: (it) => it.b?.length ?? '',
      cell: (it) => html`<${Side} side=${it.b} />`,
    },
    {
      name: 'difference',
      number: true,
      value: (it) => it.longer ?? '',
      cell: (it) =>
        it.longer === null
          ? html`<span class="soft">${it.a ? 'only here' : 'only there'}</span>`
          : html`<span class=${it.longer > 0 ? 'fail' : 'ok'}>
            ${it.longer > 0 ? '+' : '−'}
            ${lasts(Math.abs(it.longer))}
          </span>`,
    },
    {
      name: 'outcome',
      grow: true,
      wide: true,
      value: (it) => it.outcome,
      cell: (it) => html`<span class=${it.outcome ? 'fail' : 'soft'}>${it.outcome || 'the same'}</span>`,
    },
  ];
  return html`
    <div class="two even compare">
      ${drawn(a, b, 'timeline of this run')}
      ${drawn(b, a, 'timeline of the other run')}
    </div>
    <${Table}
      label="differences"
      keys=${false}
      rows=${rows}
      id=${(it) => it.key}
      columns=${columns}
      caption=${html`<span>The largest differences first</span>`}
      empty=${html`<${Empty} title="Nothing to compare yet." />`}
    />
  `;
}

function Side({ side }) {
  if (!side) return html`<span class="soft">—</span>`;
  return html`<span title=${side.state}>
    ${side.attempts > 1 ? html`<span class="soft">${side.attempts} attempts, </span>` : ''}
    ${side.length === null ? side.state : lasts(side.length)}
  </span>`;
}
