// All views: the route of each, and its module, which is loaded when it is first shown. `name` puts a view into the navigation,
// `key` behind `g` on the keyboard, `needs` names the operation of the API without which it makes no sense.
export const VIEWS = [
  { path: '/', name: 'Overview', key: 'o', load: () => import('./views/overview.js') },
  { path: '/runs', name: 'Runs', key: 'r', needs: 'list_runs', load: () => import('./views/runs.js') },
  { path: '/workers', name: 'Workers', key: 'w', needs: 'list_workers', load: () => import('./views/workers.js') },
];
