// All views: the route of each, and its module, which is loaded when it is first shown. `name` puts a view into the navigation
// (`more`: into its menu), `key` behind `g` on the keyboard, `needs` names the operation of the API without which it makes no sense.
export const VIEWS = [
  { path: '/', name: 'Overview', key: 'o', needs: 'overview', load: () => import('./views/overview.js') },
  { path: '/runs', name: 'Runs', key: 'r', needs: 'list_runs', load: () => import('./views/runs.js') },
  { path: '/runs/:id', load: () => import('./views/run.js') },
  { path: '/approvals', name: 'Approvals', key: 'a', needs: 'list_approvals', load: () => import('./views/approvals.js') },
  { path: '/runs/:id/graph', load: () => import('./views/run-graph.js') },
  { path: '/schedules', name: 'Schedules', key: 's', needs: 'list_schedules', load: () => import('./views/schedules.js') },
  { path: '/schedules/:name', load: () => import('./views/schedules.js') },
  { path: '/queues', name: 'Queues', key: 'q', needs: 'list_queues', load: () => import('./views/queues.js') },
  { path: '/queues/:name', load: () => import('./views/queues.js') },
  { path: '/flows', name: 'Flows', key: 'f', needs: 'list_flows', load: () => import('./views/flows.js') },
  { path: '/flows/:name', load: () => import('./views/flow.js') },
  { path: '/new-flow', load: () => import('./views/new-flow.js') },
  { path: '/workflows', name: 'Workflows', key: 'l', needs: 'list_workflows', load: () => import('./views/workflows.js') },
  { path: '/workflows/:name', load: () => import('./views/workflow.js') },
  { path: '/batches', name: 'Batches', more: true, key: 'b', needs: 'get_batch', load: () => import('./views/batches.js') },
  { path: '/batches/:id', load: () => import('./views/batches.js') },
  { path: '/workers', name: 'Workers', more: true, key: 'w', needs: 'list_workers', load: () => import('./views/workers.js') },
  { path: '/recovery', name: 'Recovery', more: true, key: 'v', needs: 'list_incomplete', load: () => import('./views/recovery.js') },
  { path: '/audit', name: 'Audit', more: true, key: 'u', needs: 'list_actions', load: () => import('./views/audit.js') },
];
