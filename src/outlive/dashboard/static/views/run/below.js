// @ts-check
// Below the timeline: the events, what the run shows of itself, its tree, and another run to compare with.
import { html, useEffect, useMemo, useSignal } from '../../vendor/preact.js';
import { follow, get, useLoaded } from '../../api.js';
import { at, href, setQuery } from '../../router.js';
import { Json } from '../../parts/json.js';
import { Later } from '../../parts/later.js';
import { Empty, figure, Problem, Status } from '../../parts/shown.js';
import { Table } from '../../parts/table.js';
import { Length, Time } from '../../parts/time.js';
import { Events } from './events.js';
import { millis } from './timeline.js';

export const TABS = [
  ['events', 'Events'],
  ['graph', 'Graph'],
  ['output', 'State and streams'],
  ['tree', 'Tree'],
  ['compare', 'Compare'],
  ['inbox', 'Inbox'],
];
const ITEMS_MAX = 500;
const SHOWN_CHARACTERS = 200;

export function Below({ tab, followed, run, version, query }) {
  return html`
    <nav class="tabs" aria-label="more of this run">
      ${TABS.map(
        ([name, label]) =>
          html`<a
            key=${name}
            href=${href(at`/runs/${run.id}`, { ...Object.fromEntries(query), tab: name })}
            aria-current=${tab === name ? 'page' : undefined}
            onClick=${(event) => {
              if (!event.metaKey && !event.ctrlKey) {
                event.preventDefault();
                setQuery({ tab: name });
              }
            }}
          >
            ${label}
          </a>`,
      )}
    </nav>
    ${tab === 'events' && html`<${Events} followed=${followed} version=${version} run=${run} query=${query} />`}
    ${tab === 'graph' && html`<${States} run=${run} query=${query} />`}
    ${tab === 'output' && html`<${Output} followed=${followed} run=${run} query=${query} />`}
    ${tab === 'inbox' && html`<${Inbox} run=${run} />`}
    ${tab === 'tree' && html`<${Tree} run=${run} version=${version} />`}
    ${
      tab === 'compare' &&
      html`<${Later}
        load=${async () => (await import('./compare.js')).Compare}
        followed=${followed}
        run=${run}
        version=${version}
        query=${query}
      />`
    }
  `;
}

/** The steps of its flow or the states of its machine. */
function States({ run, query }) {
  const link = (node) =>
    href(at`/runs/${run.id}`, {
      ...Object.fromEntries(query),
      tab: 'graph',
      step: node.id === query.get('step') ? undefined : node.id,
    });
  return html`<section class="panel">
    <header>
      <h2>Graph</h2>
      <a class="soft" href=${href(at`/runs/${run.id}/graph`)}>
        On a page of its own
      </a>
    </header>
    <${Later}
      load=${async () => (await import('../../parts/graph.js')).RunGraph}
      id=${run.id}
      selected=${query.get('step')}
      hrefOf=${link}
    />
  </section>`;
}

// -- What it has not read ------------------------------------------------------------------------------------------

const UNREAD = {
  inbox: ['wait', 'No worker has taken it yet.'],
  buffered: ['off', 'The code of the run has not asked for it.'],
  taken: ['run', 'A worker has the run, so its code may have read it.'],
};

function Inbox({ run }) {
  const { data, error, reload } = useLoaded(
    async (signal) =>
      (await /** @type {Promise<import('outlive').UnreadList>} */ (get(at`/runs/${run.id}/inbox`, {}, signal))).items,
    [run.id, run.status],
    { every: run.finished_at ? 0 : 3000 },
  );
  const rows = (data.value ?? []).map((it, number) => ({ ...it, id: number }));
  const columns = [
    { name: 'kind', label: 'Kind', value: (it) => it.kind },
    { name: 'name', label: 'Name', value: (it) => it.name, cell: (it) => html`<span class="as-is">${it.name}</span>` },
    {
      name: 'state',
      label: 'State',
      value: (it) => it.state,
      cell: (it) =>
        html`<span title=${UNREAD[it.state]?.[1]}><${Status} of=${it.state} kind=${UNREAD[it.state]?.[0]} /></span>`,
    },
    { name: 'at', label: 'Since', value: (it) => it.at, cell: (it) => html`<${Time} at=${it.at} />` },
    { name: 'key', label: 'Key', value: (it) => it.key },
    {
      name: 'value',
      label: 'Value',
      grow: true,
      value: (it) => JSON.stringify(it.value),
      cell: (it) =>
        it.value === null ? '' : html`<code>${JSON.stringify(it.value).slice(0, SHOWN_CHARACTERS)}</code>`,
    },
  ];
  return html`
    <${Problem} error=${error.value} again=${reload} />
    ${
      data.value &&
      (rows.length
        ? html`<${Table} label="messages that were not read" keys=${false} rows=${rows} columns=${columns} />`
        : html`<section class="panel">
            <${Empty} title="It has read every message.">
              Signals and asks that come before the code wants them are listed here.
            </${Empty}>
          </section>`)
    }
  `;
}

// -- What it shows of itself ---------------------------------------------------------------------------------------

function Output({ followed, run, query }) {
  const { data, error, reload } = useLoaded(
    async (signal) =>
      (await /** @type {Promise<import('outlive').StreamsList>} */ (get(at`/runs/${run.id}/streams`, {}, signal)))
        .items,
    [run.id, run.status],
    { every: run.finished_at ? 0 : 3000 },
  );
  const streams = data.value ?? [];
  const name = query.get('stream') ?? streams[0]?.name;
  const fields = followed.published.value;
  return html`
    <${Problem} error=${error.value} again=${reload} />
    <div class="two even">
      <section class="panel">
        <header>
          <h2 class=${run.finished_at ? '' : 'live'}>Published</h2>
        </header>
        ${
          fields && Object.keys(fields).length
            ? html`<${Json} value=${fields} label="published" />`
            : html`<${Empty} title="It has published nothing.">
              <code>outlive.publish(stage="review")</code> in a workflow or a step shows it here.
            </${Empty}>`
        }
      </section>
      <section class="panel">
        <header>
          <h2 class=${run.finished_at ? '' : 'live'}>Streams</h2>
          <span class="tools">
            ${streams.map(
              (it) =>
                html`<button
                  key=${it.name}
                  class="quiet"
                  aria-pressed=${it.name === name}
                  onClick=${() => setQuery({ stream: it.name })}
                >
                  ${it.name} <span class="soft">${figure(it.items)}</span>
                </button>`,
            )}
          </span>
        </header>
        ${
          name
            ? html`<${Stream} key=${name} run=${run} name=${name} />`
            : html`<${Empty} title="It has emitted nothing.">
              <code>outlive.emit("tokens", word)</code> in a step streams it here.
            </${Empty}>`
        }
      </section>
    </div>
  `;
}

function Stream({ run, name }) {
  const items = useSignal([]);
  const left = useSignal(0);
  useEffect(() => {
    const leaving = new AbortController();
    /** @type {any[]} */
    let held = [];
    let timer = 0;
    const draw = () => {
      timer = 0;
      left.value += Math.max(held.length - ITEMS_MAX, 0);
      held = held.slice(-ITEMS_MAX);
      items.value = held;
    };
    follow(at`/runs/${run.id}/streams/${name}`, {
      signal: leaving.signal,
      on: {
        stream: (item) => {
          held.push(item);
          timer ||= setTimeout(draw, 100);
        },
      },
    });
    return () => {
      leaving.abort();
      clearTimeout(timer);
    };
  }, [run.id, name]);
  const texts = items.value.length > 0 && items.value.every((item) => typeof item.value === 'string');
  return html`<div class="stream" tabindex="0" role="log" aria-label=${`stream ${name}`}>
    ${left.value > 0 && html`<p class="soft">${figure(left.value)} before these</p>`}
    ${
      texts
        ? html`<p class="words">
          ${items.value
            .map((item) => item.value)
            .join(items.value.some((item) => /\s$|^\s/.test(item.value)) ? '' : '\n')}
        </p>`
        : items.value.map(
            (item) =>
              html`<${Json} key=${item.position} value=${item.value} label=${`item ${item.position}`} open=${1} />`,
          )
    }
  </div>`;
}

// -- The tree ---------------------------------------------------------------------------------------------------------

function Tree({ run, version }) {
  // With the events, but not with each of a hundred a second.
  const { data, error, reload } = useLoaded(
    async (signal) =>
      (await /** @type {Promise<import('outlive').RunsList>} */ (get(at`/runs/${run.id}/tree`, {}, signal))).items,
    [run.id, run.status],
    { every: run.finished_at ? 0 : 2000 },
  );
  const rows = data.value;
  const depths = useMemo(() => {
    const found = {};
    for (const it of rows ?? []) found[it.id] = (found[it.parent_id ?? ''] ?? -1) + 1;
    return found;
  }, [rows]);
  /** @type {import('../../parts/table.js').Column<import('outlive').Run>[]} */
  const columns = [
    {
      name: 'run',
      value: (it) => it.id,
      cell: (it) =>
        html`<span class="mono" style=${{ paddingLeft: `${Math.min(depths[it.id] ?? 0, 8) * 16}px` }}>
          ${it.id}
        </span>`,
    },
    { name: 'workflow', value: (it) => it.workflow },
    { name: 'status', value: (it) => it.status, cell: (it) => html`<${Status} of=${it.status} />` },
    { name: 'started', wide: true, value: (it) => it.created_at, cell: (it) => html`<${Time} at=${it.created_at} />` },
    {
      name: 'took',
      number: true,
      value: (it) => it.finished_at && millis(it.finished_at) - millis(it.created_at),
      cell: (it) => html`<${Length} from=${it.created_at} to=${it.finished_at} />`,
    },
    {
      name: 'error',
      wide: true,
      grow: true,
      value: (it) => it.error?.message ?? '',
      cell: (it) =>
        it.error
          ? html`<span class="fail">
            ${it.error.type.split('.').pop()}: ${it.error.message}
          </span>`
          : '',
    },
  ];
  return html`
    <${Problem} error=${error.value} again=${reload} />
    ${
      rows &&
      html`<${Table}
        label="tree of runs"
        keys=${false}
        rows=${orderedTree(rows)}
        columns=${columns}
        href=${(it) => href(at`/runs/${it.id}`)}
        caption=${html`<span>
          ${rows.length} run${rows.length > 1 ? 's' : ''} in this tree
        </span>`}
      />`
    }
  `;
}

/** A parent before its children, those in the order in which they began. */
export function orderedTree(rows) {
  const byParent = new Map();
  for (const row of rows) byParent.set(row.parent_id, [...(byParent.get(row.parent_id) ?? []), row]);
  const ids = new Set(rows.map((row) => row.id));
  const found = [];
  const stack = rows.filter((row) => !ids.has(row.parent_id)).reverse();
  while (stack.length) {
    const row = stack.pop();
    found.push(row);
    stack.push(...(byParent.get(row.id) ?? []).slice().reverse());
  }
  return found;
}
