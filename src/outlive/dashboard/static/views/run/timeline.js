// @ts-check
// What happened in a tree of runs and when: the events of a journal, folded one by one into rows that can be drawn. The
// same fold takes the events of a history and those that come live. It is pure: no page, no clock.
//
// A journal has points in time; people want to see spans. A row is one thing (a step, a wait, a signal, a child run)
// with its bars (spans) and marks (moments). An attempt is journaled when it ends, with how long it took: one that runs
// has no bar yet. No event says when a lost worker died: the gap of a crash is from its last event to the claim of the
// next worker.
import { span } from '../../parts/time.js';

let [lastSecond, lastMillis] = ['', 0];

/** Milliseconds since 1970 of an instant on the wire, with its microseconds. */
export function millis(instant) {
  const dot = instant.indexOf('.', 19);
  if (dot < 0) return Date.parse(instant);
  const second = instant.slice(0, dot);
  // Many events are of the same second, and a date takes long to read.
  if (second !== lastSecond) [lastSecond, lastMillis] = [second, Date.parse(`${second}Z`)];
  return lastMillis + Number(`0${instant.slice(dot, -1)}`) * 1000;
}

/** The number of a run in its tree: 0 for the root. */
export function numberOf(runId, rootId) {
  return runId === rootId ? 0 : Number(runId.slice(rootId.length + 1));
}

/** What the signals are called that settle promises, up to the number of the run. */
const PROMISED = '@promise/';
const ENDS = {
  RunSucceeded: 'succeeded',
  RunFailed: 'failed',
  RunCancelled: 'cancelled',
  RunTimedOut: 'timed_out',
  RunContinued: 'continued',
};
/** How a bar is drawn by the status of the run that it stands for. */
const BAR_OF = { succeeded: 'ok', continued: 'ok', failed: 'fail', timed_out: 'fail', cancelled: 'off' };
/** Events that move no workflow code: they do not show that a run went on after a claim. */
const BOOKS = new Set([
  'RunClaimed',
  'RunSuspended',
  'RunReleased',
  'RunParked',
  'RunResumed',
  'AttemptFailed',
  'StepDelayed',
  'StepProgressed',
  'StepIntended',
  'StepEndedLate',
]);

/**
 * A span of a row; `to` is null while it goes on. Kinds are ok, fail, run, wait, park, off, again.
 *
 * @typedef {{
 *   from: number, to: number | null, kind: string, seq: number, worker?: string, attempt?: number,
 *   failure?: Failure | null, retryAt?: number | null, until?: number | null, ask?: string, isHollow?: boolean,
 *   undone?: boolean,
 * }} Bar
 */
/** @typedef {{at: number, seq: number, kind: string}} Mark */
/** @typedef {import('outlive').Failure} Failure */
/** @typedef {import('outlive').Event} Event */
/**
 * One thing in a timeline.
 *
 * @typedef {{
 *   key: string, kind: string, label: string, number: number, at: number, bars: Bar[], marks: Mark[], seqs: number[],
 *   open: boolean, state: string, note: string, failure: Failure | null, child: number | null, link: string | null,
 *   again: number, version?: number, intended?: number, wasLost?: boolean, approval?: string,
 * }} Row
 */
/** @typedef {{from: number, to: number, lost: string, taken: string, seq: number}} Gap */
/** @typedef {{worker: string, from: number, to: number | null, lost: boolean}} Owner */

/** @returns {Row} */
function newRow(key, kind, label, number, at) {
  return {
    key,
    kind,
    label,
    number,
    at,
    bars: [],
    marks: [],
    seqs: [],
    open: true,
    state: 'open',
    note: '',
    failure: null,
    child: null,
    link: null,
    again: 1,
  };
}

export class Timeline {
  constructor() {
    /** Known with the first event, which is always of the root. */
    this.rootId = '';
    /** Changes with every event. */
    this.version = 0;
    /** @type {number | null} */
    this.beganAt = null;
    /** @type {number | null} */
    this.lastAt = null;
    this.lastSeq = -1;
    this.count = 0;
    /**
     * The end of the root; null while it goes on.
     * @type {{at: number, status: string, seq: number} | null}
     */
    this.end = null;
    /**
     * Crashes.
     * @type {Gap[]}
     */
    this.gaps = [];
    /**
     * Who owned the tree; `to` is null now.
     * @type {Owner[]}
     */
    this.owners = [];
    /**
     * Rows by run number.
     * @type {Map<number, Row[]>}
     */
    this.rows = new Map([[0, []]]);
    /**
     * Rows by key.
     * @type {Map<string, Row>}
     */
    this.byKey = new Map();
    /**
     * The last row of each kind and name.
     * @type {Map<string, Row>}
     */
    this.lastOf = new Map();
    /**
     * Rows by the number of one of their events.
     * @type {Map<number, Row>}
     */
    this.bySeq = new Map();
    /**
     * The rows of children, by their numbers.
     * @type {Map<number, Row>}
     */
    this.heads = new Map();
    /** @type {Record<string, any>} */
    this.published = {};
    /**
     * The crash that the last claim ended, and when each run of the tree went on after it.
     * @type {{gap: Gap, facts: Record<number, number>} | null}
     */
    this.claim = null;
    /** @type {Map<string, {row: Row, bar: Bar}>} */
    this.waiting = new Map();
    /** @type {number | null} */
    this.wokenAt = null;
    /** @type {{row?: Row, bar?: Bar} | null} */
    this.rest = null;
  }

  /** Take events in their order; those that are known already are passed over. */
  takeAll(events) {
    for (const event of events) this.take(event);
    return this;
  }

  /** @param {Event} event */
  take(event) {
    if (event.seq <= this.lastSeq) return;
    const at = millis(event.at);
    this.rootId ||= event.run_id;
    const number = numberOf(event.run_id, this.rootId);
    this.lastSeq = event.seq;
    this.count += 1;
    this.version += 1;
    if (this.beganAt === null) this.begin(event, at);
    if (this.rest) this.wake(at);
    const taker = TAKERS[event.type];
    const row = taker ? taker(this, event, event.data, at, number) : null;
    if (row) this.note(row, event.seq);
    if (this.claim && !BOOKS.has(event.type)) this.claim.facts[number] ??= at;
    this.lastAt = Math.max(this.lastAt ?? at, at);
  }

  begin(event, at) {
    const created = event.type === 'SnapshotTaken' ? event.data.created : event.data;
    this.beganAt = event.type === 'SnapshotTaken' && created.at ? millis(created.at) : at;
    this.lastAt = at;
    const worker = event.data.worker;
    if (worker) this.owners.push({ worker, from: at, to: null, lost: false });
  }

  // -- Rows -----------------------------------------------------------------------------------------------------

  row(number, kind, name, label, at) {
    const first = nameOf(number, kind, name);
    // After a retry of the run the same call comes again, in a row of its own.
    const before = this.lastOf.get(first);
    const again = before ? before.again + 1 : 1;
    const row = newRow(again > 1 ? `${first}'${again}` : first, kind, label, number, at);
    row.again = again;
    this.byKey.set(row.key, row);
    this.lastOf.set(first, row);
    const own = this.rows.get(number) ?? [];
    this.rows.set(number, own);
    let place = own.length;
    while (place > 0 && own[place - 1].at > at) place -= 1;
    if (place === own.length) own.push(row);
    else own.splice(place, 0, row);
    return row;
  }

  /** The last row of this kind and name that fits; undefined if there is none. */
  last(number, kind, name, /** @type {(row: Row) => boolean} */ fits = () => true) {
    const found = this.lastOf.get(nameOf(number, kind, name));
    return found && fits(found) ? found : undefined;
  }

  lasting(number, kind, name, label, at) {
    return this.last(number, kind, name, (row) => row.open) ?? this.row(number, kind, name, label, at);
  }

  note(row, seq) {
    row.seqs.push(seq);
    this.bySeq.set(seq, row);
  }

  /** A row begins earlier than it was thought to: it moves up. */
  moveUp(row, at) {
    if (at >= row.at) return;
    row.at = at;
    const own = this.rows.get(row.number) ?? [];
    let place = own.lastIndexOf(row);
    while (place > 0 && own[place - 1].at > at) {
      own[place] = own[place - 1];
      place -= 1;
    }
    own[place] = row;
  }

  // -- Who owns the tree ------------------------------------------------------------------------------------------

  disown(at, lost = false) {
    const owner = this.owners[this.owners.length - 1];
    if (owner && owner.to === null) {
      owner.to = at;
      owner.lost = lost;
    }
  }

  own(worker, at, interrupted, seq) {
    const before = this.owners[this.owners.length - 1];
    if (interrupted) {
      const gap = { from: this.lastAt ?? at, to: at, lost: before?.worker ?? '', taken: worker, seq };
      this.gaps.push(gap);
      this.disown(gap.from, true);
      this.claim = { gap, facts: {} };
    } else {
      this.disown(at);
      this.claim = null;
    }
    const last = this.owners[this.owners.length - 1];
    // A worker that takes up again what it has just let go of is one stretch on the drawing.
    if (!interrupted && last && last.worker === worker && last.to === at) last.to = null;
    else this.owners.push({ worker, from: at, to: null, lost: false });
  }

  // -- Waits --------------------------------------------------------------------------------------------------------

  suspend(waits, at) {
    const wanted = new Map();
    for (const wait of waits) {
      // Steps, children, approvals and promises have rows of their own.
      if (!['signal', 'ask', 'timer'].includes(wait.kind)) continue;
      // What an approval does while it waits is shown there.
      if (wait.kind === 'timer' && /@approval/.test(wait.name)) continue;
      const name = `${numberOf(wait.run_id, this.rootId)} ${wait.kind} ${wait.name}`;
      if (!wanted.has(name)) wanted.set(name, wait);
    }
    for (const [name, { row, bar }] of this.waiting) {
      if (!wanted.has(name)) this.endWait(name, row, bar, this.wokenAt ?? at);
    }
    for (const [name, wait] of wanted) {
      if (this.waiting.has(name)) continue;
      const number = numberOf(wait.run_id, this.rootId);
      const kind = wait.kind === 'timer' ? 'timer' : wait.kind;
      const row = this.lasting(number, kind, wait.name, labelOf(wait.kind, wait.name), at);
      const bar = {
        from: at,
        to: null,
        kind: 'wait',
        until: wait.until ? millis(wait.until) : null,
        seq: this.lastSeq,
      };
      row.bars.push(bar);
      row.open = true;
      row.state = 'waiting';
      this.waiting.set(name, { row, bar });
    }
  }

  endWait(name, row, bar, at, kind = 'wait') {
    bar.to = at;
    bar.kind = kind;
    row.open = false;
    row.state = 'done';
    this.waiting.delete(name);
  }

  resolve(number, kind, name, at) {
    const key = `${number} ${kind} ${name}`;
    const found = this.waiting.get(key);
    if (found) this.endWait(key, found.row, found.bar, at);
    return found?.row;
  }

  wake(at) {
    this.wokenAt = at;
    const { bar, row } = this.rest ?? {};
    if (bar) bar.to = at;
    if (row) this.close(row, 'done');
    this.rest = null;
  }

  // -- Steps ----------------------------------------------------------------------------------------------------------

  step(event, data, at, number) {
    const took = data.took ? span(data.took) : 0;
    let row = this.last(number, 'step', data.call);
    if (!row || (!row.open && event.type !== 'StepProgressed' && event.type !== 'StepEndedLate'))
      row = this.row(number, 'step', data.call, data.call, at - took);
    return row;
  }

  attempt(row, data, at, kind, seq) {
    const before = row.bars[row.bars.length - 1];
    const from = data.took
      ? at - span(data.took)
      : Math.max(row.intended ?? row.at, before?.to ?? 0, this.claim?.gap.to ?? 0);
    this.again(row, from);
    row.bars.push({
      from: Math.min(from, at),
      to: at,
      kind,
      seq,
      attempt: data.attempt ?? 1,
      failure: data.failure ?? null,
      worker: this.worker(),
      retryAt: data.retry_at ? millis(data.retry_at) : null,
    });
    row.intended = undefined;
    this.moveUp(row, from);
  }

  /**
   * A step that begins right after a claim, before anything else has moved its run, was under way when the worker was
   * lost.
   */
  again(row, from) {
    if (!this.claim) return;
    const { gap, facts } = this.claim;
    if (from < gap.to || (facts[row.number] ?? Infinity) < from) return;
    const before = row.bars[row.bars.length - 1];
    if (before && (before.kind === 'again' || (before.retryAt ?? 0) > gap.from)) return;
    row.bars.push({ from: gap.from, to: gap.to, kind: 'again', seq: gap.seq, worker: gap.lost });
    row.wasLost = true;
    this.moveUp(row, gap.from);
  }

  worker() {
    return this.owners[this.owners.length - 1]?.worker ?? '';
  }

  close(row, state) {
    row.open = false;
    row.state = state;
  }

  // -- Reading --------------------------------------------------------------------------------------------------------

  /**
   * All rows in the order in which they are drawn: those of a run by their beginning, those of a child below its own
   * row.
   */
  lines(collapsed = new Set(), number = 0) {
    const lines = [];
    const stack = [{ number, index: 0, depth: 0 }]; // No recursion: a tree may be deep.
    while (stack.length) {
      const place = stack[stack.length - 1];
      const rows = this.rows.get(place.number) ?? [];
      if (place.index >= rows.length) {
        stack.pop();
        continue;
      }
      const row = rows[place.index++];
      lines.push({ row, depth: place.depth });
      if (row.child !== null && !collapsed.has(row.key))
        stack.push({ number: row.child, index: 0, depth: place.depth + 1 });
    }
    return lines;
  }

  /** When a run of the tree began and ended: [from, to]; `to` is null while it goes on. */
  spanOf(number) {
    const bar = this.heads.get(number)?.bars[0];
    return bar ? [bar.from, bar.to] : [this.beganAt, this.end?.at ?? null];
  }

  /** The workers that have owned the tree, each once, in order. */
  workers() {
    return [...new Set(this.owners.map((owner) => owner.worker))];
  }
}

const nameOf = (number, kind, name) => (number ? `${kind}:${number}/${name}` : `${kind}:${name}`);
const labelOf = (kind, name) => (kind === 'timer' ? 'timer' : `${kind} ${name}`);

/**
 * What each type of event does; each gives the row that the event belongs to, if any.
 *
 * @type {Record<string, (it: Timeline, event: Event, data: any, at: number, number: number) => Row | null>}
 */
const TAKERS = {
  RunCreated(it, event, data, at, number) {
    if (number === 0) return null;
    const row = it.row(numberOf(data.parent_id, it.rootId), 'child', String(number), data.workflow, at);
    it.heads.set(number, row);
    Object.assign(row, { child: number, link: event.run_id, version: data.version });
    row.bars.push({ from: at, to: null, kind: 'run', seq: event.seq, isHollow: true });
    it.rows.set(number, it.rows.get(number) ?? []);
    return row;
  },
  RunClaimed(it, event, data, at) {
    it.own(data.worker, at, data.interrupted, event.seq);
    return null;
  },
  RunSuspended(it, event, data, at) {
    it.disown(at);
    it.suspend(data.waits, at);
    it.rest = {};
    return null;
  },
  RunReleased(it, event, data, at) {
    it.disown(at);
    it.rest = {};
    return null;
  },
  RunParked(it, event, data, at) {
    it.disown(at);
    const row = it.lasting(0, 'parked', 'parked', 'parked', at);
    const bar = { from: at, to: null, kind: 'park', seq: event.seq };
    row.bars.push(bar);
    row.note = data.reason;
    row.state = 'parked';
    row.open = true;
    it.rest = { row, bar };
    return row;
  },
  RunResumed: (it, event, data, at) => moment(it, event, at, 'parked', 'parked', 'resumed'),
  RunRetried(it, event, data, at, number) {
    for (const { call } of data.approvals ?? []) {
      // The end of the run had closed it. Now it is open again, in a row of its own.
      const before = it.last(number, 'approval', call);
      if (before) openApproval(it, event, at, number, call, before.label);
    }
    if (number) return null;
    it.end = null;
    for (const seq of data.undone) {
      const row = it.bySeq.get(seq);
      const bar = row?.bars.find((each) => each.seq === seq);
      if (row && bar) {
        bar.undone = true;
        it.close(row, 'stopped');
        row.note = 'taken back by a retry';
      }
    }
    return moment(it, event, at, 'retried', 'retried', data.reason);
  },
  RunForked: (it, event, data, at) =>
    Object.assign(moment(it, event, at, 'forked', 'forked', `from ${data.origin}`), { link: data.origin }),
  CancelRequested: (it, event, data, at, number) =>
    moment(it, event, at, 'cancel', 'cancel requested', data.reason, number),
  StepSucceeded(it, event, data, at, number) {
    const row = it.step(event, data, at, number);
    it.attempt(row, data, at, data.skipped ? 'off' : 'ok', event.seq);
    it.close(row, data.skipped ? 'skipped' : 'succeeded');
    row.failure = null;
    if (data.skipped) row.note = 'skipped by a person';
    return row;
  },
  StepFailed(it, event, data, at, number) {
    const row = it.step(event, data, at, number);
    it.attempt(row, data, at, 'fail', event.seq);
    it.close(row, 'failed');
    row.failure = data.failure;
    return row;
  },
  AttemptFailed(it, event, data, at, number) {
    const row = it.step(event, data, at, number);
    it.attempt(row, data, at, 'fail', event.seq);
    row.failure = data.failure;
    row.state = 'retrying';
    return row;
  },
  StepDelayed(it, event, data, at, number) {
    const row = it.step(event, data, at, number);
    row.note = `waits for ${data.by}`;
    row.bars.push({ from: at, to: millis(data.until_at), kind: 'wait', seq: event.seq });
    row.intended = undefined;
    return row;
  },
  StepProgressed(it, event, data, at, number) {
    const row = it.step(event, data, at, number);
    row.marks.push({ at, seq: event.seq, kind: 'progress' });
    return row;
  },
  StepIntended(it, event, data, at, number) {
    const row = it.step(event, data, at, number);
    row.intended = data.attempt ? at : undefined;
    row.state = data.attempt ? 'running' : row.state;
    return row;
  },
  StepEndedLate(it, event, data, at, number) {
    const row = it.step(event, data, at, number);
    row.marks.push({ at, seq: event.seq, kind: data.failure ? 'fail' : 'progress' });
    row.note = 'ended after the run had given it up';
    return row;
  },
  TimerFired(it, event, data, at, number) {
    const row = it.resolve(number, 'timer', data.call, at) ?? it.lasting(number, 'timer', data.call, 'timer', at);
    row.marks.push({ at, seq: event.seq, kind: 'timer' });
    it.close(row, 'fired');
    return row;
  },
  SignalReceived(it, event, data, at, number) {
    if (data.name.startsWith(PROMISED)) return settle(it, event, data, at, number);
    const row =
      it.resolve(number, 'signal', data.name, at) ??
      it.last(number, 'signal', data.name) ??
      it.row(number, 'signal', data.name, `signal ${data.name}`, at);
    row.marks.push({ at, seq: event.seq, kind: 'signal' });
    it.close(row, 'received');
    return row;
  },
  AskReceived(it, event, data, at, number) {
    const row =
      it.resolve(number, 'ask', data.name, at) ??
      it.last(number, 'ask', data.name) ??
      it.row(number, 'ask', data.name, `ask ${data.name}`, at);
    row.marks.push({ at, seq: event.seq, kind: 'signal' });
    row.bars.push({ from: at, to: null, kind: 'wait', seq: event.seq, ask: data.key });
    row.open = true;
    row.state = 'asked';
    return row;
  },
  AskAnswered(it, event, data, at, number) {
    const row = it.last(number, 'ask', data.name);
    const bar = row?.bars.find((each) => each.ask === data.key && each.to === null);
    if (!row || !bar) return row ?? null;
    Object.assign(bar, { to: at, kind: data.failure ? 'fail' : 'ok', failure: data.failure ?? null });
    if (row.bars.every((each) => each.to !== null)) it.close(row, data.failure ? 'refused' : 'answered');
    return row;
  },
  ApprovalRequested(it, event, data, at, number) {
    const row = openApproval(it, event, at, number, data.call, `approval ${data.name}`);
    row.note = data.assignees?.length ? `asks ${data.assignees.join(', ')}` : '';
    return row;
  },
  ApprovalEscalated(it, event, data, at, number) {
    const row = it.last(number, 'approval', data.approval);
    row?.marks.push({ at, seq: event.seq, kind: 'progress' });
    return row ?? null;
  },
  ApprovalDecided(it, event, data, at, number) {
    const row = it.last(number, 'approval', data.approval);
    if (!row) return null;
    const { approved, by } = data.payload ?? {};
    row.marks.push({ at, seq: event.seq, kind: 'signal' });
    if (by) row.note = `${approved ? 'approved' : 'rejected'} by ${by}`;
    endBars(row, at, approved === false ? 'off' : 'ok');
    it.close(row, approved === undefined ? 'decided' : approved ? 'approved' : 'rejected');
    return row;
  },
  ApprovalClosed(it, event, data, at, number) {
    const row = it.last(number, 'approval', data.approval);
    if (!row) return null;
    endBars(row, at, 'off');
    it.close(row, 'closed');
    if (!/by /.test(row.note)) row.note = 'no longer waited for';
    return row;
  },
  PromiseMade(it, event, data, at, number) {
    const row = it.row(number, 'promise', data.call, data.call.replace('@', ''), at);
    row.state = 'waiting';
    row.note = 'a program outside settles it';
    row.bars.push({ from: at, to: null, kind: 'wait', seq: event.seq });
    return row;
  },
  DetachedStarted(it, event, data, at, number) {
    const row = it.row(number, 'other', data.run_id, `run ${data.run_id}`, at);
    row.link = data.run_id;
    row.bars.push({ from: at, to: null, kind: 'run', seq: event.seq, isHollow: true });
    return row;
  },
  DetachedEnded(it, event, data, at, number) {
    const row = it.last(number, 'other', data.run_id) ?? it.row(number, 'other', data.run_id, `run ${data.run_id}`, at);
    row.link = data.run_id;
    // A run that was only waited for has no beginning here.
    if (!row.bars.length) row.bars.push({ from: at, to: null, kind: 'run', seq: event.seq });
    endBars(row, at, BAR_OF[data.status] ?? 'off');
    it.close(row, data.status);
    row.failure = data.failure ?? null;
    return row;
  },
  DetachedCancelled(it, event, data, at, number) {
    const row = it.last(number, 'other', data.run_id);
    row?.marks.push({ at, seq: event.seq, kind: 'progress' });
    return row ?? null;
  },
  MessageSetAside(it, event, data, at, number) {
    const row = it.last(number, 'signal', data.name) ?? it.row(number, 'signal', data.name, `signal ${data.name}`, at);
    row.marks.push({ at, seq: event.seq, kind: 'fail' });
    row.note = `could not be read: ${data.reason}`;
    return row;
  },
  RunPublished(it, event, data, at, number) {
    if (number === 0 && data.payload && typeof data.payload === 'object' && !('[large]' in data.payload))
      Object.assign(it.published, data.payload);
    return null;
  },
  // What a run says of itself, or a person changed, has no row; the list of its events has it.
  RunChanged: () => null,
  RunTagged: () => null,
  PatchTaken: () => null,
  StateLeft: () => null,
  ...Object.fromEntries(
    Object.entries(ENDS).map(([type, status]) => [
      type,
      (it, event, data, at, number) => endRun(it, event, data, at, number, status),
    ]),
  ),
};

/** A promise comes as a signal that is named by the number of its run and its call. */
function settle(it, event, data, at, number) {
  const call = data.name.split('/').slice(2).join('/');
  const row = it.last(number, 'promise', call) ?? it.row(number, 'promise', call, call.replace('@', ''), at);
  row.marks.push({ at, seq: event.seq, kind: 'signal' });
  row.note = '';
  endBars(row, at, 'ok');
  it.close(row, 'settled');
  return row;
}

function openApproval(it, event, at, number, call, label) {
  const row = it.row(number, 'approval', call, label, at);
  row.approval = call;
  row.state = 'waiting';
  row.bars.push({ from: at, to: null, kind: 'wait', seq: event.seq });
  return row;
}

function moment(it, event, at, kind, label, note, number = 0) {
  const row = it.last(number, kind, kind) ?? it.row(number, kind, kind, label, at);
  row.marks.push({ at, seq: event.seq, kind: 'signal' });
  if (note) row.note = note;
  it.close(row, 'done');
  return row;
}

function endBars(row, at, kind) {
  for (const bar of row.bars)
    if (bar.to === null) {
      bar.to = at;
      bar.kind = kind;
    }
}

function endRun(it, event, data, at, number, status) {
  for (const row of it.rows.get(number) ?? []) {
    if (!row.open) continue;
    endBars(row, at, row.kind === 'child' || row.kind === 'other' ? 'off' : 'wait');
    it.close(row, row.state === 'open' || row.state === 'waiting' ? 'stopped' : row.state);
  }
  for (const [name, { row, bar }] of it.waiting) if (row.number === number) it.endWait(name, row, bar, at);
  if (number === 0) {
    it.disown(at);
    it.end = { at, status, seq: event.seq };
    return null;
  }
  const row = it.heads.get(number);
  if (!row) return null;
  endBars(row, at, BAR_OF[status]);
  it.close(row, status);
  row.failure = data.failure ?? null;
  return row;
}
