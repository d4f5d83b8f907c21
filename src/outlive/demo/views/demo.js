// @ts-check
// The demo's own page: kill the workers of this machine, and see what becomes of what they were doing.
import { html } from '../vendor/preact.js';
import { get, post, useLoaded } from '../api.js';
import { Act, Empty, Head, Problem, RunLink, Status } from '../parts/shown.js';
import { Table } from '../parts/table.js';
import { Time } from '../parts/time.js';

const links = (orders) =>
  orders.map(
    (order, at) =>
      html`
        ${at > 0 && ', '}
        <${RunLink} id=${order} />
      `,
  );

const workerColumns = (kill) => [
  { name: 'worker', value: (it) => it.name },
  { name: 'process', number: true, value: (it) => it.pid },
  {
    name: 'state',
    value: (it) => (it.is_alive ? 'alive' : 'killed'),
    cell: (it) => html`<${Status} of=${it.is_alive ? 'alive' : 'killed'} kind=${it.is_alive ? 'ok' : 'fail'} />`,
  },
  { name: 'steps', label: 'steps done', number: true, wide: true, value: (it) => it.steps },
  {
    name: 'charging',
    label: 'charges now',
    grow: true,
    value: (it) => it.charging.join(' '),
    cell: (it) => links(it.charging),
  },
  {
    name: 'do',
    label: 'do',
    cell: (it) =>
      it.is_alive
        ? html`<${Act} kind="no" act=${() => kill(it.name)}>
          kill -9 this worker
        </${Act}>`
        : html`<small>another one is started in a moment</small>`,
  },
];

const became = (charge) =>
  charge.went_on_in
    ? html`
      <${RunLink} id=${charge.order} /> went on in worker ${charge.went_on_in} after ${charge.seconds.toFixed(2)} s
    `
    : html`
      <${RunLink} id=${charge.order} /> waits for another worker
    `;

const KILLS = [
  {
    name: 'at',
    label: 'when',
    value: (it) => new Date(it.at * 1000).toISOString(),
    cell: (it) => html`<${Time} at=${new Date(it.at * 1000).toISOString()} />`,
  },
  { name: 'worker', value: (it) => `${it.worker} (process ${it.pid})` },
  {
    name: 'charges',
    label: 'what it was charging, and what became of it',
    grow: true,
    value: (it) => it.charges.map((each) => `${each.order} ${each.went_on_in} ${each.seconds}`).join('; '),
    cell: (it) =>
      it.charges.length ? it.charges.map((each) => html`<div>${became(each)}</div>`) : 'nothing at that moment',
  },
];

export default function Demo() {
  const { data, error, reload } = useLoaded((signal) => get('/demo', {}, signal), [], { every: 500 });
  const kill = async (worker) => {
    await post('/demo/kill', { worker });
    reload();
  };
  const now = data.value;
  return html`
    <${Head}
      title="Kill a worker"
      facts=${
        now && [
          ['orders', now.orders],
          ['charged', now.charged],
          ['delivered', now.delivered],
          ['charges begun again', now.begun_again],
          ['charged twice', now.charged_twice],
        ]
      }
    />
    <p>
      These are processes of your machine, and they share one SQLite file. While this page is open, orders come
      in. The button sends SIGKILL to a worker in the middle of a charge; <code>kill -9</code> in a terminal
      does as well. Another worker goes on with its orders, and asks the bank with the same idempotency key, so
      that no customer is charged twice. Follow an order to see the gap in its timeline.
    </p>
    <${Problem} error=${error.value} again=${reload} />
    ${
      now &&
      html`
        <${Table} label="workers" rows=${now.workers} columns=${workerColumns(kill)} id=${(it) => it.name} />
        <h2>Kills</h2>
        <${Table}
          label="kills"
          rows=${now.kills}
          columns=${KILLS}
          id=${(it) => it.pid}
          empty=${html`<${Empty} title="No worker was killed on this page yet.">Press a button above.</${Empty}>`}
        />
      `
    }
  `;
}
