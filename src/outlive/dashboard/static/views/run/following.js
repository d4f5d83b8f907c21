// @ts-check
// All that the page of a run knows, as it changes: the history first, then what comes live, through the same fold.
import { batch, signal, useLayoutEffect, useRef } from '../../vendor/preact.js';
import { follow, get } from '../../api.js';
import { at } from '../../router.js';
import { askFor, PAYLOAD_BYTES } from '../../parts/history.js';
import { Timeline } from './timeline.js';

/** Events that are taken in one go: a page that takes more does not answer to its user meanwhile. */
const AT_ONCE = 3000;
/** Events that come within this time are drawn together. */
const DRAW_MS = 100;
/** A drawing that takes long is made more seldom: this many times as long as it took lie between two. */
const REST = 4;

export class Followed {
  constructor(id) {
    this.id = id;
    this.run = signal(null);
    this.error = signal(null);
    /** 'loading', 'live', 'away' or 'over'. */
    this.state = signal('loading');
    /** Whether nothing of the history is known yet. */
    this.isLoading = signal(true);
    this.timeline = new Timeline();
    this.events = [];
    /** Changes with the events; a view that reads it is drawn again. */
    this.version = signal(0);
    this.why = signal('');
    this.advice = signal([]);
    this.published = signal(null);
    this.approvals = signal([]);
    /** The steps that run now. The journal has a step when it has ended. */
    this.steps = signal([]);
    this.schema = signal(null);
    /** The id of the last message that was taken. */
    this.position = '';
    this.leaving = new AbortController();
    this.drawn = null;
    this.drawMs = 0;
    this.asked = null;
  }

  async begin() {
    const { signal: leaving } = this.leaving;
    try {
      const { run, page } = askFor(this.id, leaving);
      [, this.position] = await Promise.all([this.first(run), this.load(page)]);
      await this.live(leaving);
    } catch (error) {
      if (!leaving.aborted) this.error.value = error;
    }
  }

  /** What comes behind the last event that is known, until the run has ended. */
  live(leaving) {
    return follow(at`/runs/${this.id}/follow`, {
      query: { payload_bytes: PAYLOAD_BYTES },
      after: this.position,
      signal: leaving,
      state: (state, problem) => {
        batch(() => {
          this.state.value = state;
          if (problem?.status) this.error.value = problem;
        });
      },
      on: {
        journal: (event, id) => this.take(event, id),
        run: (run) => {
          this.run.value = run;
          this.ask();
        },
        published: (fields) => {
          this.published.value = fields;
        },
        end: (run) => {
          this.run.value = run;
          this.ask();
        },
      },
    });
  }

  /** A person may let a run go on that has ended: look whether one has, and follow it again. */
  async again() {
    if (this.state.peek() !== 'over') return;
    const { signal: leaving } = this.leaving;
    try {
      const run = await /** @type {Promise<import('outlive').Run>} */ (get(at`/runs/${this.id}`, {}, leaving));
      if (run.updated_at === this.run.peek().updated_at || this.state.peek() !== 'over') return;
      this.run.value = run;
      this.state.value = 'live';
      await this.live(leaving);
    } catch {
      /* The next look may do better. */
    }
  }

  async first(run) {
    this.run.value = await run;
    this.ask();
    this.describe();
  }

  /** The history, page by page; the first one is drawn at once, and the rest together. */
  async load(first) {
    let [coming, position] = [first, ''];
    while (coming) {
      const page = await coming;
      coming = page.coming;
      this.journal = page.position.split('.')[0];
      for (let done = 0; done < page.items.length; done += AT_ONCE) {
        if (done)
          await new Promise((resolve) => {
            setTimeout(resolve);
          });
        for (const event of page.items.slice(done, done + AT_ONCE)) {
          this.events.push(event);
          this.timeline.take(event);
        }
      }
      if (this.isLoading.peek() || !coming)
        batch(() => {
          this.isLoading.value = false;
          this.version.value += 1;
        });
      position = page.position;
    }
    return position;
  }

  take(event, id) {
    this.position = id;
    const journal = id.split('.')[0];
    if (journal !== this.journal) {
      // The run went on as a new generation, with a journal of its own.
      this.journal = journal;
      this.timeline = new Timeline();
      this.events = [];
    }
    if (event.seq <= this.timeline.lastSeq) return;
    this.events.push(event);
    this.timeline.take(event);
    this.drawn ??= setTimeout(() => this.draw(), Math.max(DRAW_MS, this.drawMs * REST));
  }

  draw() {
    this.drawn = null;
    const began = performance.now();
    this.version.value += 1;
    // Components are drawn in a microtask, which the line above has queued.
    queueMicrotask(() => {
      this.drawMs = performance.now() - began;
    });
  }

  /** Ask what it waits for, soon: several changes are one question. */
  ask() {
    this.asked ??= setTimeout(async () => {
      this.asked = null;
      const { signal: leaving } = this.leaving;
      try {
        const [why, steps, approvals] = await Promise.all([
          /** @type {Promise<import('outlive').WhyView>} */ (get(at`/runs/${this.id}/why`, {}, leaving)),
          this.run.peek().finished_at
            ? { items: [] }
            : /** @type {Promise<import('outlive').StepsView>} */ (
                get(at`/runs/${this.id}/steps`, { arguments: true }, leaving)
              ),
          this.run.peek().approvals.length || this.approvals.peek().length
            ? /** @type {Promise<import('outlive').ApprovalsPage>} */ (get(at`/runs/${this.id}/approvals`, {}, leaving))
            : { items: [] },
        ]);
        batch(() => {
          this.why.value = why.why;
          this.advice.value = why.advice;
          this.steps.value = steps.items;
          this.approvals.value = approvals.items;
        });
      } catch (error) {
        if (!leaving.aborted && error.status === 404) this.error.value = error;
      }
    }, 60);
  }

  /** What the arguments of the workflow are called. */
  async describe() {
    const workflows = await /** @type {Promise<import('outlive').WorkflowsList>} */ (
      get(at`/workflows/${this.run.peek().workflow}`, {}, this.leaving.signal)
    ).catch(() => null);
    this.schema.value = workflows?.items.find((it) => it.version === this.run.peek().version) ?? null;
  }

  /** A payload of an event that the history left out. */
  payload(seq, field) {
    return get(at`/runs/${this.id}/history/${seq}/${field}`, {}, this.leaving.signal);
  }

  end() {
    this.leaving.abort();
    clearTimeout(this.drawn);
    clearTimeout(this.asked);
  }
}

/** What is known of a run as long as the component is shown. */
export function useRun(id) {
  const held = useRef(null);
  if (held.current?.id !== id) {
    held.current?.end();
    held.current = new Followed(id);
  }
  useLayoutEffect(() => {
    const followed = held.current;
    followed.begin();
    // Who runs it and where it stands in line change without an event.
    const timer = setInterval(() => {
      if (document.hidden) return;
      if (followed.run.peek()?.finished_at) followed.again();
      else {
        followed.ask();
        if (!followed.schema.peek()) followed.describe();
      }
    }, 5000);
    return () => {
      clearInterval(timer);
      followed.end();
      held.current = null;
    };
  }, [id]);
  return held.current;
}
