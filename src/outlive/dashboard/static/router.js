// @ts-check
// Where the browser is. A route is in the hash of the URL (`#/runs/order-15?tab=events`): it works wherever the app is
// mounted and behind any proxy, and the server needs to know no route. Decision 0060 says more.
import { signal } from './vendor/preact.js';

/** The current route: its path, and its parameters. */
export const here = signal(read());

addEventListener('hashchange', () => {
  here.value = read();
});

function read() {
  const [path, query = ''] = location.hash.slice(1).split(/\?(.*)/s);
  return { path: path || '/', query: new URLSearchParams(query) };
}

/** A path with values in it, each encoded: at`/runs/${id}`. For routes and for the API. */
export function at(parts, ...values) {
  return parts.reduce((path, part, i) => path + encodeURIComponent(values[i - 1]) + part);
}

/** Parameters without those that are empty; a list gives several of one name. */
export function queryOf(values) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values ?? {})) {
    for (const each of [value].flat())
      if (each !== undefined && each !== null && each !== '' && each !== false) query.append(name, each);
  }
  return query;
}

/** The link to a route. */
export function href(path, values) {
  const query = queryOf(values).toString();
  return `#${path}${query ? `?${query}` : ''}`;
}

/** Go to a route, as a link does. */
export function go(path, values) {
  location.hash = href(path, values);
}

/** Change parameters of this route (undefined takes one away) without another entry in the history. */
export function setQuery(changes) {
  const { path, query } = here.value;
  const values = {};
  for (const name of new Set(query.keys())) values[name] = query.getAll(name);
  history.replaceState(null, '', href(path, { ...values, ...changes }));
  here.value = read();
}

/** The names in a path by a pattern (`/runs/:id`); null if it does not fit. */
export function match(pattern, path) {
  const [wanted, given] = [pattern.split('/'), path.split('/')];
  if (wanted.length !== given.length) return null;
  const names = {};
  for (const [i, part] of wanted.entries()) {
    if (part.startsWith(':')) {
      try {
        names[part.slice(1)] = decodeURIComponent(given[i]);
      } catch {
        return null;
      }
    } else if (part !== given[i]) return null;
  }
  return names;
}
