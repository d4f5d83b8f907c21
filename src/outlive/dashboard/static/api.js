// @ts-check
// The HTTP API: requests, what is loaded for a view, and what is followed live.
import { useLayoutEffect, useRef, useSignal } from './vendor/preact.js';
import { queryOf } from './router.js';
import { key, needsKey } from './session.js';

const ROOT = new URL('api/v1', document.baseURI).href;

/** An answer that is an error: RFC 9457, with what to do next. */
export class ApiError extends Error {
  constructor(status, body) {
    super(body.detail ?? `the server answered with ${status}`);
    this.status = status;
    this.code = body.code ?? '';
    this.next = body.next ?? '';
  }
}

function urlOf(path, query) {
  const text = queryOf(query).toString();
  return ROOT + path + (text ? `?${text}` : '');
}

/**
 * @typedef {{query?: any, body?: any, signal?: AbortSignal, headers?: Record<string, string>}} Request
 *
 * @param {string} method
 * @param {string} path
 * @param {Request} request
 */
async function send(method, path, { query, body, signal, headers } = {}) {
  /** @type {Record<string, string>} */
  const sent = { accept: 'application/json', ...headers };
  if (key.value) sent.authorization = `Bearer ${key.value}`;
  if (body !== undefined) sent['content-type'] = 'application/json';
  const asked = key.value;
  let answer;
  try {
    answer = await fetch(urlOf(path, query), {
      method,
      headers: sent,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      cache: 'no-store',
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, {
      detail: 'the server cannot be reached',
      next: 'See that its program runs; this page comes back by itself.',
    });
  }
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  if (answer.status === 401 && asked === key.value) needsKey.value = true;
  throw new ApiError(answer.status, problem);
}

async function json(method, path, options) {
  const answer = await send(method, path, options);
  const text = await answer.text();
  return text ? JSON.parse(text) : null;
}

/**
 * Requests below /api/v1; each gives the JSON of the answer, or raises ApiError. Build paths with at`...`. What the
 * answer is, the caller says: the types of all answers are those of the client in TypeScript (`import('outlive')`).
 *
 * @template [T=any]
 * @param {string} path
 * @param {any} [query]
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>}
 */
export const get = (path, query, signal) => json('GET', path, { query, signal });
/**
 * @template [T=any]
 * @param {string} path
 * @param {any} [body]
 * @param {Record<string, string>} [headers]
 * @returns {Promise<T>}
 */
export const post = (path, body, headers) => json('POST', path, { body, headers });
/**
 * @template [T=any]
 * @param {string} path
 * @param {any} body
 * @returns {Promise<T>}
 */
export const put = (path, body) => json('PUT', path, { body });
/**
 * @template [T=any]
 * @param {string} path
 * @returns {Promise<T>}
 */
export const del = (path) => json('DELETE', path);

/**
 * Follow server-sent events until `signal` is aborted or the server says that nothing more comes. It comes again by
 * itself and sends the last id it has seen, so that nothing is lost or told twice. on: {name: (data, id) => ...};
 * `state` is told 'live', 'away' (with the error) or 'over'.
 *
 * @param {string} path
 * @param {{
 *   query?: any,
 *   on: Record<string, (data: any, id: string) => void>,
 *   signal: AbortSignal,
 *   state?: (state: 'live' | 'away' | 'over', error?: any) => void,
 *   after?: string,
 * }} how
 */
export async function follow(path, { query, on, signal, state = () => {}, after = '' }) {
  let last = after;
  let wait = 500;
  while (!signal.aborted) {
    let problem = null;
    try {
      const headers = { accept: 'text/event-stream', ...(last && { 'last-event-id': last }) };
      const answer = await send('GET', path, { query, signal, headers });
      if (answer.status === 204) {
        state('over');
        return;
      }
      state('live');
      for await (const message of messagesOf(/** @type {ReadableStream<any>} */ (answer.body))) {
        wait = 500;
        if (message.id) last = message.id;
        on[message.event]?.(JSON.parse(message.data), message.id);
        if (message.event === 'end') {
          state('over');
          return;
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      problem = error;
      if (error instanceof ApiError && [400, 401, 403, 404, 422].includes(error.status)) {
        state('away', error);
        return;
      }
    }
    state('away', problem);
    await new Promise((resolve) => {
      setTimeout(resolve, wait);
      signal.addEventListener('abort', resolve, { once: true });
    });
    wait = Math.min(wait * 2, 10_000);
  }
}

/** @param {ReadableStream<any>} body */
async function* messagesOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let left = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (left + value).split('\n\n');
      left = parts.pop() ?? '';
      for (const part of parts) {
        /** @type {Record<string, string>} */
        const fields = {};
        for (const line of part.split('\n')) {
          const colon = line.indexOf(': ');
          if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
        }
        if (fields.data !== undefined) yield fields;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/**
 * What is loaded for a view, the error if it failed, and a function that loads it again.
 * @template T
 * @typedef {{
 *   data: import('./vendor/preact.js').Signal<T | undefined>,
 *   error: import('./vendor/preact.js').Signal<any>,
 *   reload: () => Promise<void>,
 * }} Loaded
 */

/**
 * What `load(signal)` gives, as long as the component is shown: {data, error, reload}, each a signal but `reload`.
 * It loads again when a value of `deps` changes, after `reload()`, and every `every` milliseconds while the page is
 * seen.
 *
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {readonly unknown[]} deps
 * @param {{every?: number}} how
 * @returns {Loaded<T>}
 */
export function useLoaded(load, deps = [], { every = 0 } = {}) {
  const data = useSignal(undefined);
  const error = useSignal(null);
  const again = useRef(async () => {});
  useLayoutEffect(() => {
    const leaving = new AbortController();
    let turn = 0;
    const run = async () => {
      const own = ++turn;
      try {
        const found = await load(leaving.signal);
        if (own !== turn || leaving.signal.aborted) return;
        data.value = found;
        error.value = null;
      } catch (problem) {
        if (own === turn && !leaving.signal.aborted) error.value = problem;
      }
    };
    again.current = run;
    run();
    const timer =
      every &&
      setInterval(() => {
        if (!document.hidden) run();
      }, every);
    return () => {
      leaving.abort();
      clearInterval(timer);
    };
  }, deps);
  return { data, error, reload: () => again.current() };
}

/** Follow events as long as the component is shown. `start(controls)` calls `follow` with `controls.signal`. */
export function useFollow(start, deps = []) {
  useLayoutEffect(() => {
    const leaving = new AbortController();
    start(leaving.signal);
    return () => leaving.abort();
  }, deps);
}
