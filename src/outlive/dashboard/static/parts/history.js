// @ts-check
// A run and its history, as the page of a run asks for them. The app asks as soon as it knows the route, so that the
// server works while the modules of the view are loaded and the first events are drawn.
import { get } from '../api.js';
import { at } from '../router.js';

/** Payloads above this size come when they are looked at. */
export const PAYLOAD_BYTES = 1000;
/** Events of the first page of a history, which is drawn at once, and of the others. */
const [FIRST_PAGE, PAGE] = [1000, 10_000];

/**
 * What was asked for before a view was there.
 * @type {ReturnType<typeof ask> | null}
 */
let early = null;

/**
 * A run and the first page of its history; `coming` of each page is the one behind it, or null.
 *
 * @param {string} id
 * @param {AbortController} leaving
 * @returns {{id: string, leaving: AbortController, run: Promise<import('outlive').Run>, page: Promise<any>}}
 */
function ask(id, leaving) {
  const page = async (after, limit, /** @type {(() => Promise<any>) | null} */ behind = null) => {
    const found = await /** @type {Promise<import('outlive').HistoryView>} */ (
      get(at`/runs/${id}/history`, { after, limit, payload_bytes: PAYLOAD_BYTES }, leaving.signal)
    );
    if (found.next === null) return { ...found, coming: null };
    // A page that was cut short, and a journal that begins with a snapshot, end at another event.
    return {
      ...found,
      coming: behind && found.next === FIRST_PAGE - 1 ? behind() : handled(page(found.next, PAGE)),
    };
  };
  // Both at once: a page that loads its modules is too busy to ask for the second when it gets the first.
  const run = handled(/** @type {Promise<import('outlive').Run>} */ (get(at`/runs/${id}`, {}, leaving.signal)));
  const first = page(-1, FIRST_PAGE, () => second);
  const second = handled(page(FIRST_PAGE - 1, PAGE));
  return { id, leaving, run, page: handled(first) };
}

/** A promise whose failure is found by those who wait for it, now or later. */
function handled(promise) {
  promise.catch(() => {});
  return promise;
}

/**
 * Ask for a run before its view is there; what was asked for is dropped when the user goes elsewhere, or if it fails.
 */
export function askEarly({ id }) {
  const asked = ask(id, new AbortController());
  early = asked;
  const drop = () => {
    if (early === asked) {
      early = null;
      asked.leaving.abort();
    }
  };
  asked.run.catch(drop);
  asked.page.catch(drop);
  addEventListener('hashchange', drop, { once: true });
}

/**
 * A run and its history: {run, page}, promises. They end when `signal` is aborted.
 *
 * @param {string} id
 * @param {AbortSignal} signal
 */
export function askFor(id, signal) {
  const asked = early && early.id === id ? early : ask(id, new AbortController());
  early = null;
  signal.addEventListener('abort', () => asked.leaving.abort());
  return asked;
}
