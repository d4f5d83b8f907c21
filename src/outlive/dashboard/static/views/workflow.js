// @ts-check
// A workflow: what it takes, the graph of a machine, its last runs, and a form that starts one.
import { html, useSignal } from '../vendor/preact.js';
import { get, post, useLoaded } from '../api.js';
import { at, here, href, setQuery } from '../router.js';
import { can } from '../session.js';
import { useCommands } from '../palette.js';
import { ActionDialog, Field } from '../parts/dialog.js';
import { Fields, typeOf } from '../parts/form.js';
import { Graph } from '../parts/graph.js';
import { Act, Empty, Head, Problem, Status } from '../parts/shown.js';
import { StartDialog } from '../parts/start.js';
import { Table } from '../parts/table.js';
import { Length, Time } from '../parts/time.js';
import { byName, takes } from './workflows.js';

/** @type {import('../parts/table.js').Column<import('outlive').Run>[]} */
const RUNS = [
  { name: 'id', value: (it) => it.id, cell: (it) => html`<span class="mono">${it.id}</span>` },
  { name: 'status', value: (it) => it.status, cell: (it) => html`<${Status} of=${it.status} />` },
  { name: 'started', value: (it) => it.created_at, cell: (it) => html`<${Time} at=${it.created_at} />` },
  {
    name: 'took',
    wide: true,
    value: (it) => it.finished_at ?? '',
    cell: (it) => html`<${Length} from=${it.created_at} to=${it.finished_at} />`,
  },
];

export default function Workflow({ name }) {
  const { data, error, reload } = useLoaded(
    async (signal) =>
      byName(
        (await /** @type {Promise<import('outlive').WorkflowsList>} */ (get(at`/workflows/${name}`, {}, signal))).items,
      )[0] ?? null,
    [name],
    { every: 3000 },
  );
  const runs = useLoaded(
    async (signal) =>
      (await /** @type {Promise<import('outlive').RunsPage>} */ (get('/runs', { workflow: name, limit: 20 }, signal)))
        .items,
    [name],
    {
      every: 2000,
    },
  );
  const dialog = useSignal(null);
  const close = () => {
    dialog.value = null;
    runs.reload();
  };
  const versions = data.value?.versions ?? [];
  const wanted = Number(here.value.query.get('version') ?? versions[0]?.version);
  const own = versions.find((each) => each.version === wanted) ?? versions[0];
  const start = () => {
    dialog.value = html`<${StartDialog}
      title=${`Start ${name}@${own.version}`}
      parts=${[['arguments', own.arguments]]}
      close=${close}
      start=${(given, id) =>
        post('/runs', { workflow: name, version: own.version, arguments: given.arguments ?? null, id })}
    />`;
  };
  useCommands(own && can('runs.start') ? [{ name: `Start ${name}`, act: start }] : []);
  const pause = () => {
    dialog.value = html`<${PauseDialog} name=${name} close=${close} />`;
  };
  if (!own)
    return html`
      <${Head} title=${name} />
      <${Problem} error=${error.value} again=${reload} />
      ${
        data.value === null &&
        html`<div class="panel">
          <${Empty} title="It is a flow.">
            <a href=${href(at`/flows/${name}`)}>See its document and its graph.</a>
          </${Empty}>
        </div>`
      }
    `;
  return html`
    <${Head}
      title=${name}
      beside=${html`<${Status} of=${own.workers ? 'live' : 'no worker'} kind=${own.workers ? 'ok' : 'off'} />`}
      facts=${[
        [
          'version',
          versions.length > 1
            ? html`<select
              aria-label="version"
              value=${String(own.version)}
              onChange=${(event) => setQuery({ version: event.target.value })}
            >
              ${versions.map((each) => html`<option key=${each.version}>${each.version}</option>`)}
            </select>`
            : own.version,
        ],
        ['workers', own.workers],
        ['takes', html`<span class="mono">${takes(own.arguments)}</span>`],
      ]}
    >
      <a class="button" href=${href('/runs', { workflow: name })}>
        Runs
      </a>
      ${
        can('workflows.resume') &&
        html`<${Act}
          act=${async () => {
            await post(at`/workflows/${name}/resume`);
            runs.reload();
          }}
          title="Let its runs go on, if they are paused"
        >
          Resume
        </${Act}>`
      }
      ${can('workflows.pause') && html`<button onClick=${pause}>Pause…</button>`}
      ${
        can('runs.start') &&
        html`<button class="do" onClick=${start}>
          Start…
        </button>`
      }
    </${Head}>
    ${
      own.workers === 0 &&
      html`<section class="panel why">
        <p>
          No live worker can run it.
          <small>
            A run that is started now waits for one: <code>outlive worker app.py</code>
          </small>
        </p>
      </section>`
    }
    <${Problem} error=${error.value} again=${reload} />
    <${States} name=${name} version=${own.version}>
      <section class="panel">
        <header>
          <h2>Takes</h2>
        </header>
        ${
          own.arguments
            ? takes(own.arguments) === 'nothing'
              ? html`<${Empty} title="Nothing." />`
              : html`<${Fields} schema=${own.arguments} />`
            : html`<${Empty} title="Not described yet.">A worker describes it a moment after its start.</${Empty}>`
        }
      </section>
      <section class="panel">
        <header>
          <h2>Gives</h2>
          <span class="mono soft">${own.result ? typeOf(own.result) : 'anything'}</span>
        </header>
        ${own.result && html`<${Fields} schema=${own.result} />`}
      </section>
    </${States}>
    ${
      runs.data.value &&
      html`<${Table}
        label="last runs"
        caption="last runs"
        rows=${runs.data.value}
        columns=${RUNS}
        href=${(it) => href(at`/runs/${it.id}`)}
        empty=${html`<${Empty} title="No run of it.">${can('runs.start') && 'Start one.'}</${Empty}>`}
      />`
    }
    ${dialog.value}
  `;
}

/** The graph of a machine, beside what it takes; a function has only the latter. */
function States({ name, version, children }) {
  const { data } = useLoaded(
    (signal) =>
      /** @type {Promise<import('outlive').GraphView>} */ (get(at`/workflows/${name}/graph`, { version }, signal)),
    [name, version],
  );
  const graph = data.value;
  const state = here.value.query.get('state');
  if (!graph) return null;
  if (graph.kind !== 'machine') return html`<div class="halves">${children}</div>`;
  const chosen = graph.nodes.find((node) => node.id === state);
  const goes = (node) =>
    graph.arrows
      .filter((arrow) => arrow.start === node.id)
      .map((arrow) => `${arrow.end}${arrow.is_guess ? ' (guessed from its code)' : ''}`);
  return html`<div class="beside">
    <section class="panel">
      <header>
        <h2>States</h2>
        <span class="soft">
          ${
            chosen
              ? `${chosen.id}: ${chosen.kind}${goes(chosen).length ? `, goes to ${goes(chosen).join(', ')}` : ''}`
              : `${graph.nodes.length} states`
          }
        </span>
      </header>
      <${Graph}
        graph=${graph}
        label=${`states of ${name}`}
        selected=${state}
        hrefOf=${(node) => href(at`/workflows/${name}`, { version, state: node.id === state ? undefined : node.id })}
      />
    </section>
    <div class="stack">${children}</div>
  </div>`;
}

function PauseDialog({ name, close }) {
  const reason = useSignal('');
  return html`<${ActionDialog}
    title=${`Pause ${name}`}
    verb="Pause"
    kind="no"
    act=${() => post(at`/workflows/${name}/pause`, { reason: reason.value })}
    close=${close}
    done=${`The runs of ${name} rest.`}
  >
    <p>Its runs begin nothing more. New ones may be started, and wait.</p>
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
