// @ts-check
// The graph of a run on a page of its own, live: the document of its flow beside it, and what there is to say of the
// step that is selected.
import { html } from '../vendor/preact.js';
import { get, useLoaded } from '../api.js';
import { at, here, href } from '../router.js';
import { Document, rangesOf } from '../parts/document.js';
import { Graph, kindOfState, useRunGraph, wordOf } from '../parts/graph.js';
import { Empty, Head, Problem, RunLink, Status } from '../parts/shown.js';
import { Table } from '../parts/table.js';
import { lasts, Time } from '../parts/time.js';

/** @type {import('../parts/table.js').Column<import('outlive').GraphNode>[]} */
const COLUMNS = [
  { name: 'step', value: (it) => it.id, cell: (it) => html`<span class="mono">${it.id}</span>` },
  {
    name: 'state',
    value: (it) => wordOf(it.state),
    cell: (it) => html`<${Status} of=${wordOf(it.state)} kind=${kindOfState(it.state)} />`,
  },
  { name: 'kind', wide: true, value: (it) => it.kind, cell: (it) => html`<span class="mono soft">${it.kind}</span>` },
  { name: 'attempts', wide: true, number: true, value: (it) => it.attempts || '' },
  {
    name: 'took',
    number: true,
    value: (it) => it.took ?? '',
    cell: (it) => (it.took ? lasts(it.took * 1000) : ''),
  },
  { name: 'note', grow: true, wide: true, value: (it) => it.note },
];

export default function RunGraphView({ id }) {
  const { data, error, reload } = useRunGraph(id);
  const run = useLoaded(
    (signal) => /** @type {Promise<import('outlive').Run>} */ (get(at`/runs/${id}`, {}, signal)),
    [id, data.value],
  ).data.value;
  const graph = data.value;
  const step = here.value.query.get('step');
  const link = (node) => href(at`/runs/${id}/graph`, { step: node.id === step ? undefined : node.id });
  const title = html`
    ${run?.workflow ?? 'Graph'} <${RunLink} id=${id} />
  `;
  return html`
    <${Head}
      title=${title}
      beside=${run && html`<${Status} of=${run.status} />`}
      facts=${
        run &&
        [
          ['started', html`<${Time} at=${run.created_at} />`],
          graph?.kind === 'flow' && ['flow', html`<a href=${href(at`/flows/${run.workflow}`)}>${run.workflow}</a>`],
          graph?.kind === 'machine' && [
            'machine',
            html`<a href=${href(at`/workflows/${run.workflow}`)}>${run.workflow}</a>`,
          ],
        ].filter(Boolean)
      }
    >
      <a class="button" href=${href(at`/runs/${id}`)}>
        Timeline
      </a>
    </${Head}>
    <${Problem} error=${error.value} again=${reload} />
    ${
      graph?.kind === 'function' &&
      html`<div class="panel">
        <${Empty} title="This run has no graph.">
          A function has no steps before it calls them: see the <a href=${href(at`/runs/${id}`)}>timeline</a>.
        </${Empty}>
      </div>`
    }
    ${
      graph &&
      graph.nodes.length > 0 &&
      html`
        <div class=${graph.kind === 'flow' ? 'beside' : ''}>
          ${graph.kind === 'flow' && run && html`<${Text} run=${run} graph=${graph} step=${step} link=${link} />`}
          <section class="panel">
            <header>
              <h2>Graph</h2>
              <span class=${run?.finished_at ? 'soft' : 'soft live'}>
                ${run?.finished_at ? 'as it ended' : 'live'}
              </span>
            </header>
            <${Graph} graph=${graph} label="where the run is" selected=${step} hrefOf=${link} />
          </section>
        </div>
        <${Table} label="steps" rows=${graph.nodes} columns=${COLUMNS} href=${link} />
      `
    }
  `;
}

/** The document that the run was started with. */
function Text({ run, graph, step, link }) {
  const { data } = useLoaded(
    async (signal) => {
      const hash = run.version.toString(16).padStart(12, '0');
      const found = (
        await /** @type {Promise<import('outlive').RevisionsList>} */ (
          get(at`/flows/${run.workflow}/history`, {}, signal)
        )
      ).items.find((it) => it.hash === hash);
      return found
        ? /** @type {Promise<import('outlive').DocumentView>} */ (
            get(at`/flows/${run.workflow}/document`, { revision: found.number }, signal)
          )
        : null;
    },
    [run.workflow, run.version],
  );
  if (!data.value)
    return html`<section class="panel">
      <${Empty} title="Its document is not in the library any more." />
    </section>`;
  const ranges = rangesOf(graph, data.value.text);
  const stepAt = (line) =>
    graph.nodes.find((node) => ranges[node.id] && line >= ranges[node.id][0] && line <= ranges[node.id][1]);
  return html`<section class="panel">
    <header>
      <h2>Document</h2>
      <span class="soft">revision ${data.value.revision}</span>
    </header>
    <${Document}
      text=${data.value.text}
      range=${ranges[step]}
      hrefOf=${(line) => {
        const node = stepAt(line);
        return node && link(node);
      }}
    />
  </section>`;
}
