// @ts-check
// A flow: its document beside its graph, its draft, and its versions side by side.
import { html, useSignal } from '../vendor/preact.js';
import { get, post, useLoaded } from '../api.js';
import { at, here, href, setQuery } from '../router.js';
import { can } from '../session.js';
import { useCommands } from '../palette.js';
import { ActionDialog, Field } from '../parts/dialog.js';
import { Compare, Document, rangesOf } from '../parts/document.js';
import { Draft } from '../parts/draft.js';
import { Graph } from '../parts/graph.js';
import { Act, Copy, Empty, Head, Problem, Status } from '../parts/shown.js';
import { StartDialog } from '../parts/start.js';
import { Table } from '../parts/table.js';
import { Time } from '../parts/time.js';

const TABS = [
  ['document', 'Document'],
  ['draft', 'Draft'],
  ['versions', 'Versions'],
];

export default function Flow({ name }) {
  const { data, error, reload } = useLoaded(
    async (signal) => {
      const [info, history] = await Promise.all([
        /** @type {Promise<import('outlive').Flow>} */ (get(at`/flows/${name}`, {}, signal)),
        /** @type {Promise<import('outlive').RevisionsList>} */ (get(at`/flows/${name}/history`, {}, signal)),
      ]);
      return { info, revisions: history.items };
    },
    [name],
    { every: 3000 },
  );
  const dialog = useSignal(null);
  const close = () => {
    dialog.value = null;
    reload();
  };
  const { query } = here.value;
  const { info, revisions } = data.value ?? {};
  const current = info?.current;
  const run = () => {
    dialog.value = html`<${RunDialog} name=${name} close=${close} />`;
  };
  useCommands(current && info.is_enabled && can('flows.start') ? [{ name: `Run ${name}`, act: run }] : []);
  if (!info)
    return html`
      <${Head} title=${name} />
      <${Problem} error=${error.value} again=${reload} />
    `;
  const tab = query.get('tab') ?? (current ? 'document' : 'draft');
  const disable = () => {
    dialog.value = html`<${DisableDialog} name=${name} close=${close} />`;
  };
  const facts = [
    current && ['revision', current.number],
    current && [
      'published',
      html`
        <${Time} at=${current.at} />
        ${current.by && ` by ${current.by}`}
      `,
    ],
    current && ['hash', html`<span class="mono">${current.hash}</span>`],
    current?.reason && ['reason', current.reason],
    info.draft && [
      'draft',
      html`<a href=${href(at`/flows/${name}`, { tab: 'draft' })}>
        <${Time} at=${info.draft.at} />
        ${info.draft.by && ` by ${info.draft.by}`}
      </a>`,
    ],
  ].filter(Boolean);
  return html`
    <${Head}
      title=${name}
      beside=${html`<${Status}
        of=${!current ? 'not published' : info.is_enabled ? 'enabled' : 'disabled'}
        kind=${!current ? 'wait' : info.is_enabled ? 'ok' : 'park'}
      />`}
      facts=${facts}
    >
      <a class="button" href=${href('/runs', { workflow: name })}>
        Runs
      </a>
      ${
        current &&
        !info.is_enabled &&
        can('flows.enable') &&
        html`<${Act}
          act=${async () => {
            await post(at`/flows/${name}/enable`);
            reload();
          }}
        >
          Enable
        </${Act}>`
      }
      ${current && info.is_enabled && can('flows.disable') && html`<button onClick=${disable}>Disable…</button>`}
      ${
        current &&
        info.is_enabled &&
        can('flows.start') &&
        html`<button class="do" onClick=${run}>
          Run…
        </button>`
      }
    </${Head}>
    ${
      !info.is_enabled &&
      info.why_disabled &&
      html`<section class="panel why park">
        <p>
          It is ${info.why_disabled}.
          <small>It starts no runs, and its triggers rest. Runs under way go on.</small>
        </p>
      </section>`
    }
    <${Problem} error=${error.value} again=${reload} />
    <nav class="tabs" aria-label="parts of the flow">
      ${TABS.filter(([id]) => id !== 'draft' || info.draft || can('flows.save_draft')).map(
        ([id, label]) =>
          html`<a
              key=${id}
              aria-current=${tab === id ? 'page' : undefined}
              href=${href(at`/flows/${name}`, { tab: id })}
            >
            ${label}
            ${
              id === 'versions' &&
              html`
                ${' '}
                <span class="soft">${revisions?.length}</span>
              `
            }
          </a>`,
      )}
    </nav>
    ${
      tab === 'document' &&
      html`<${Published} key=${query.get('revision') ?? current?.hash} name=${name} revisions=${revisions} />`
    }
    ${tab === 'draft' && html`<${Draft} name=${name} info=${info} reload=${reload} />`}
    ${
      tab === 'versions' &&
      html`<${Versions}
        name=${name}
        revisions=${revisions}
        current=${current}
        open=${(it) => {
          dialog.value = it;
        }}
        close=${close}
      />`
    }
    ${dialog.value}
  `;
}

function Published({ name, revisions }) {
  const { query } = here.value;
  const wanted = query.get('revision') ?? undefined;
  const { data, error, reload } = useLoaded(
    async (signal) => {
      const [found, graph] = await Promise.all([
        /** @type {Promise<import('outlive').DocumentView>} */ (
          get(at`/flows/${name}/document`, { revision: wanted }, signal)
        ),
        /** @type {Promise<import('outlive').GraphView>} */ (
          get(at`/flows/${name}/graph`, { revision: wanted }, signal)
        ),
      ]);
      return { ...found, graph, ranges: rangesOf(graph, found.text) };
    },
    [name, wanted],
  );
  if (revisions.length === 0)
    return html`<div class="panel">
      <${Empty} title="Nothing is published yet.">Publish the draft.</${Empty}>
    </div>`;
  const found = data.value;
  const step = query.get('step');
  const stepAt = (line) =>
    Object.entries(found?.ranges ?? {}).find(([, [first, last]]) => line >= first && line <= last)?.[0];
  const link = (id) =>
    href(at`/flows/${name}`, { tab: 'document', revision: wanted, step: id === step ? undefined : id });
  return html`
    <${Problem} error=${error.value} again=${reload} />
    ${
      found &&
      html`<div class="beside">
        <section class="panel">
          <header>
            <h2>Document</h2>
            <div class="filters">
              <select
                aria-label="revision"
                value=${String(found.revision)}
                onChange=${(event) => setQuery({ revision: event.target.value, step: undefined })}
              >
                ${revisions.map(
                  (it, n) =>
                    html`<option key=${it.number} value=${it.number}>
                      revision ${it.number}
                      ${n === 0 ? ', published' : ''}
                    </option>`,
                )}
              </select>
              <${Copy} text=${found.text} />
            </div>
          </header>
          <${Document}
            text=${found.text}
            range=${step === null ? undefined : found.ranges[step]}
            hrefOf=${(line) => {
              const id = stepAt(line);
              return id && link(id);
            }}
            label=${`document of ${name}, revision ${found.revision}`}
          />
        </section>
        <section class="panel">
          <header>
            <h2>Graph</h2>
            <span class="soft">
              ${found.graph.nodes.length} ${found.graph.nodes.length === 1 ? 'step' : 'steps'}
            </span>
          </header>
          <${Graph}
            graph=${found.graph}
            label=${`graph of ${name}`}
            selected=${step}
            hrefOf=${(node) => link(node.id)}
          />
        </section>
      </div>`
    }
  `;
}

function Versions({ name, revisions, current, open, close }) {
  const { query } = here.value;
  const right = Number(query.get('right') ?? current?.number ?? 0);
  const left = Number(query.get('left') ?? Math.max(right - 1, 1));
  /** @type {import('../parts/table.js').Column<import('outlive').FlowRevision>[]} */
  const columns = [
    {
      name: 'number',
      label: 'revision',
      value: (it) => it.number,
      cell: (it) =>
        html`
          ${it.number}
          ${
            it.number === current?.number
              ? html`
                ${' '}
                <${Status} of="published" kind="ok" />
              `
              : ''
          }
        `,
    },
    { name: 'at', label: 'published', value: (it) => it.at, cell: (it) => html`<${Time} at=${it.at} />` },
    { name: 'by', value: (it) => it.by },
    { name: 'hash', wide: true, value: (it) => it.hash, cell: (it) => html`<span class="mono">${it.hash}</span>` },
    { name: 'reason', grow: true, wide: true, value: (it) => it.reason },
    {
      name: 'do',
      label: 'again',
      cell: (it) =>
        it.number !== current?.number &&
        can('flows.rollback') &&
        html`<button
          class="quiet"
          onClick=${() => open(html`<${RollbackDialog} name=${name} to=${it} current=${current} close=${close} />`)}
        >
          Roll back…
        </button>`,
    },
  ];
  const pick = (label, value, set) =>
    html`<label>
      ${label}${' '}
      <select value=${String(value)} onChange=${(event) => set(event.target.value)}>
        ${revisions.map(
          (it) =>
            html`<option key=${it.number} value=${it.number}>
              revision ${it.number}
            </option>`,
        )}
      </select>
    </label>`;
  return html`
    ${
      revisions.length > 1 &&
      html`<section class="panel">
        <header>
          <h2>Side by side</h2>
          <div class="filters">
            ${pick('before', left, (value) => setQuery({ left: value }))}
            ${pick('after', right, (value) => setQuery({ right: value }))}
          </div>
        </header>
        <${Between} name=${name} left=${left} right=${right} />
      </section>`
    }
    <${Table}
      label="revisions"
      rows=${revisions}
      id=${(it) => it.number}
      columns=${columns}
      href=${(it) => href(at`/flows/${name}`, { tab: 'document', revision: it.number })}
      empty=${html`<${Empty} title="Nothing is published yet.">Publish the draft.</${Empty}>`}
    />
  `;
}

/** Two revisions side by side. */
function Between({ name, left, right }) {
  const { data, error, reload } = useLoaded(
    (signal) =>
      Promise.all(
        [left, right].map(
          (revision) =>
            /** @type {Promise<import('outlive').DocumentView>} */ (
              get(at`/flows/${name}/document`, { revision }, signal)
            ),
        ),
      ),
    [left, right],
  );
  const labelled = (it) => ({ label: `revision ${it.revision}`, text: it.text });
  return html`
    <${Problem} error=${error.value} again=${reload} />
    ${data.value && html`<${Compare} left=${labelled(data.value[0])} right=${labelled(data.value[1])} />`}
  `;
}

function RollbackDialog({ name, to, current, close }) {
  const reason = useSignal('');
  const act = () =>
    post(at`/flows/${name}/rollback`, { to: to.number, reason: reason.value, expected: current.number });
  return html`<${ActionDialog}
    wide
    title=${`Roll ${name} back to revision ${to.number}`}
    verb="Roll back"
    act=${act}
    close=${close}
    done=${(it) => `Revision ${it.current.number} of ${name} is that of revision ${to.number}.`}
  >
    <p>
      The document of revision ${to.number} is published again, as a new revision. Runs under way go on with
      their own.
    </p>
    <${Between} name=${name} left=${current.number} right=${to.number} />
    <${Field} label="why">
      <input
        name="reason"
        value=${reason.value}
        onInput=${(event) => {
          reason.value = event.target.value;
        }}
      />
    </${Field}>
  </${ActionDialog}>`;
}

function DisableDialog({ name, close }) {
  const reason = useSignal('');
  return html`<${ActionDialog}
    title=${`Disable ${name}`}
    verb="Disable"
    kind="no"
    act=${() => post(at`/flows/${name}/disable`, { reason: reason.value })}
    close=${close}
    done=${`${name} starts no more runs.`}
  >
    <p>It starts no more runs, and its triggers rest. Runs under way go on.</p>
    <${Field} label="why">
      <input
        name="reason"
        value=${reason.value}
        onInput=${(event) => {
          reason.value = event.target.value;
        }}
      />
    </${Field}>
  </${ActionDialog}>`;
}

function RunDialog({ name, close }) {
  const { data, error } = useLoaded(
    (signal) => /** @type {Promise<import('outlive').DocumentView>} */ (get(at`/flows/${name}/document`, {}, signal)),
    [name],
  );
  if (!data.value) return error.value ? html`<${Problem} error=${error.value} again=${close} />` : null;
  const start = (given, id) => post(at`/flows/${name}/runs`, { input: given.input, vars: given.vars, id });
  const { input, vars, revision } = data.value;
  return html`<${StartDialog}
    title=${`Run ${name}, revision ${revision}`}
    parts=${[['input', input, true], vars && ['vars', vars]].filter(Boolean)}
    start=${start}
    close=${close}
  />`;
}
