// @ts-check
// All views: the route of each, and its module, which is loaded when it is first shown. `name` puts a view into the
// navigation (`more`: into its menu), `key` behind `g` on the keyboard, `needs` names the operation of the API without
// which it makes no sense. `early` asks the API for what the view wants first, before its module is there.
import { askEarly } from './parts/history.js';

export const VIEWS = [
  { path: '/', name: 'Overview', key: 'o', needs: 'overview.get', module: './views/overview.js' },
  { path: '/runs', name: 'Runs', key: 'r', needs: 'runs.list', module: './views/runs.js' },
  { path: '/runs/:id', module: './views/run.js', early: askEarly },
  { path: '/approvals', name: 'Approvals', key: 'a', needs: 'approvals.list', module: './views/approvals.js' },
  { path: '/runs/:id/graph', module: './views/run-graph.js' },
  { path: '/schedules', name: 'Schedules', key: 's', needs: 'schedules.list', module: './views/schedules.js' },
  { path: '/schedules/:name', module: './views/schedules.js' },
  { path: '/queues', name: 'Queues', key: 'q', needs: 'queues.list', module: './views/queues.js' },
  { path: '/queues/:name', module: './views/queues.js' },
  { path: '/flows', name: 'Flows', key: 'f', needs: 'flows.list', module: './views/flows.js' },
  { path: '/flows/:name', module: './views/flow.js' },
  { path: '/new-flow', module: './views/new-flow.js' },
  { path: '/workflows', name: 'Workflows', key: 'l', needs: 'workflows.list', module: './views/workflows.js' },
  { path: '/workflows/:name', module: './views/workflow.js' },
  { path: '/batches', name: 'Batches', more: true, key: 'b', needs: 'batches.info', module: './views/batches.js' },
  { path: '/batches/:id', module: './views/batches.js' },
  {
    path: '/workers',
    name: 'Workers',
    more: true,
    key: 'w',
    needs: 'workers.list',
    module: './views/workers.js',
  },
  {
    path: '/recovery',
    name: 'Recovery',
    more: true,
    key: 'v',
    needs: 'runs.list_stuck',
    module: './views/recovery.js',
  },
  { path: '/audit', name: 'Audit', more: true, key: 'u', needs: 'audit.list', module: './views/audit.js' },
];
