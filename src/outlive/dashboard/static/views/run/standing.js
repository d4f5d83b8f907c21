// @ts-check
// The sentence of a run: what it waits for, since when, what happens next, and the one action that would move it. Pure:
// it is given the row of the run, the sentence of the API with its advice (`why`, `advice`), the requests for approval,
// the timeline, and the time.
//
// {kind: the colour, text: [words, or {b: name}, or {run: id}, or {at: instant}], next: [the same], act: {name, label,
// ...} or null}.
import { millis } from './timeline.js';

const APPROVAL_TIMER = '@approval';

/** The sentence of the API as a whole sentence. */
export function plainWhy(why) {
  const text = (why ?? '').trim();
  return text ? text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.') : '';
}

const LONG = /; (its journal has more than [\d,]+ events.*)$/;

export function standing(run, { why = '', advice = [], approvals = [], timeline = null } = {}) {
  const long = LONG.exec(why);
  const it = standingOf(run, why.replace(LONG, ''), advice, approvals, timeline);
  return long ? { ...it, next: [...it.next, ` ${plainWhy(long[1])}`] } : it;
}

function standingOf(run, why, advice, approvals, timeline) {
  switch (run.status) {
    case 'succeeded':
      return { kind: 'ok', text: ['Succeeded ', { at: run.finished_at }, '.'], next: [], act: null };
    case 'continued':
      return {
        kind: 'ok',
        text: ['Went on as a new generation ', { at: run.finished_at }, '.'],
        next: [],
        act: null,
      };
    case 'failed':
      return failed(run, timeline);
    case 'timed_out':
      return {
        kind: 'fail',
        text: [run.reason ? `Did not end in time: ${run.reason}.` : 'Did not end in time.'],
        next: ['A retry gives it a new deadline and goes on where it was.'],
        act: { name: 'retry', label: 'Retry…' },
      };
    case 'cancelled':
      return {
        kind: 'off',
        text: ['Was cancelled ', { at: run.finished_at }, run.reason ? `: ${run.reason}.` : '.'],
        next: ['A retry lets it go on where it was; what is done stays done.'],
        act: { name: 'retry', label: 'Retry…' },
      };
    case 'damaged':
      return {
        kind: 'fail',
        text: [plainWhy(run.reason || why)],
        next: ['No worker touches it. Restore it from a backup, or look closer with outlive fsck.'],
        act: null,
      };
    case 'parked':
      return parked(run, why);
    case 'waiting':
      return waiting(run, why, approvals, timeline);
    default:
      return moving(run, why, advice, timeline);
  }
}

function failed(run, timeline) {
  const step = lastFailure(run, timeline);
  const error = step?.failure ?? run.error;
  const said = error
    ? `${shortType(error.type)}${error.message ? `: ${firstLine(error.message)}` : ''}`
    : 'for a reason that is not known';
  const text = [
    'Failed ',
    { at: run.finished_at },
    ...(step ? [' in ', { b: step.label, row: step.key }] : []),
    `: ${said}`,
  ];
  return {
    kind: 'fail',
    text,
    next: ['A retry goes on at what failed; steps that succeeded are not called again.'],
    act: { name: 'retry', label: 'Retry…' },
  };
}

/** The row whose failure is that of the run. */
function lastFailure(run, timeline) {
  if (!timeline || !run.error) return null;
  const rows = timeline.rows.get(run.number) ?? [];
  return (
    rows.findLast((row) => row.failure && row.state === 'failed' && run.error.message.includes(row.failure.message)) ??
    null
  );
}

export const shortType = (type) =>
  (type ?? '')
    .replace(/^builtins\./, '')
    .split('.')
    .pop();
const firstLine = (text) => text.split('\n', 1)[0];

function parked(run, why) {
  const paused = /^paused/.test(run.reason);
  if (paused)
    return {
      kind: 'park',
      text: [`Is ${run.reason}, since `, { at: run.updated_at }, '.'],
      next: ['It begins nothing more until a person resumes it. Messages are kept.'],
      act: { name: 'resume', label: 'Resume' },
    };
  return {
    kind: 'park',
    text: [`Is parked since `, { at: run.updated_at }, `: ${run.reason || plainWhy(why)}`],
    next: ['Nothing is lost. Fix what stopped it, then let it go on; a step in flight can be skipped.'],
    act: { name: 'resume', label: 'Resume' },
  };
}

function moving(run, why, advice, timeline) {
  const text = plainWhy(why) || (run.status === 'pending' ? 'A worker will take it as soon as one has room.' : 'Runs.');
  const resume = advice.find((it) => it.verb === 'resume')?.arguments;
  if (resume?.workflow)
    return {
      kind: 'park',
      text: [text],
      next: ['All its runs wait until a person resumes the workflow.'],
      act: { name: 'resume_workflow', label: 'Resume workflow' },
    };
  if (resume?.all)
    return {
      kind: 'park',
      text: [text],
      next: ['All runs wait until a person resumes the store: outlive runs resume --all.'],
      act: null,
    };
  const next = [];
  if (run.status === 'running' && timeline?.lastAt)
    next.push('Its last event was ', { at: new Date(timeline.lastAt).toISOString() }, '.');
  if (run.timeout_at) next.push(' It has until ', { at: run.timeout_at }, '.');
  return { kind: run.status === 'running' ? 'run' : 'off', text: [text], next, act: null };
}

function waiting(run, why, approvals, timeline) {
  const waits = run.waits.filter((wait) => wait.kind !== 'timer' || !wait.name.includes(APPROVAL_TIMER));
  const open = approvals.find((each) => each.status === 'pending' && (each.run_id === run.id || run.number === 0));
  if (open && waits.some((wait) => wait.kind === 'approval')) return approval(open);
  const first = waits.find((wait) => wait.kind !== 'timer') ?? waits[0];
  if (!first) return { kind: 'wait', text: [plainWhy(why) || 'Waits.'], next: [], act: null };
  const since = sinceOf(timeline, first);
  const timer = first.kind === 'timer' ? null : waits.find((wait) => wait.kind === 'timer' && wait.until);
  const next = timer ? ['If that does not come, a timer fires ', { at: timer.until }, '.'] : [];
  const others = waits.filter((wait) => wait !== first && wait !== timer && wait.kind !== 'timer');
  if (others.length)
    next.unshift(
      `Also waits for ${others
        .slice(0, 3)
        .map((wait) => `${wait.kind} ${wait.name}`)
        .join(', ')}${others.length > 3 ? ` and ${others.length - 3} more` : ''}. `,
    );
  switch (first.kind) {
    case 'signal':
      return {
        kind: 'wait',
        text: ['Waits for the signal ', { b: first.name }, first.detail ? ` (${first.detail})` : '', ...since],
        next,
        act: { name: 'signal', label: 'Send signal…', of: first.name },
      };
    case 'ask':
      return {
        kind: 'wait',
        text: ['Waits to be asked ', { b: first.name }, ...since],
        next,
        act: { name: 'ask', label: 'Ask…', of: first.name },
      };
    case 'promise':
      return {
        kind: 'wait',
        text: ['Waits for a promise that a program outside settles', ...openSince(timeline, 'promise')],
        next: [`Its id is ${first.name}. `, ...next],
        act: null,
      };
    case 'timer':
      return {
        kind: 'wait',
        text: ['Sleeps. It goes on ', first.until ? { at: first.until } : 'when its timer fires', '.'],
        next: since.length > 1 ? ['It has slept', ...since] : [],
        act: null,
      };
    case 'retry':
      return retrying(first, timeline);
    case 'limit':
      return {
        kind: 'wait',
        text: ['Waits for ', { b: first.detail || 'a limit' }, ` before ${first.name}`, ...since],
        next: first.until ? ['It asks again ', { at: first.until }, '.'] : next,
        act: null,
      };
    case 'child':
      return {
        kind: 'wait',
        text: ['Waits for the run ', { run: first.name }, ...since],
        next: [plainWhy(why)].filter((text) => !/^It waits for run \S+$/.test(text)),
        act: { name: 'open', label: 'Open that run', of: first.name },
      };
    default:
      return { kind: 'wait', text: [plainWhy(why)], next, act: null };
  }
}

function retrying(wait, timeline) {
  const row =
    timeline?.last(0, 'step', wait.name) ??
    [...(timeline?.byKey.values() ?? [])].find((each) => each.kind === 'step' && each.label === wait.name);
  const count = row?.bars.filter((bar) => bar.kind === 'fail').length;
  const error = row?.failure ? `${shortType(row.failure.type)}: ${firstLine(row.failure.message)}` : '';
  return {
    kind: 'wait',
    text: [
      'Waits for the next attempt of ',
      { b: wait.name, row: row?.key },
      ', due ',
      wait.until ? { at: wait.until } : 'soon',
      '.',
    ],
    next: count ? [`${count} attempt${count > 1 ? 's' : ''} failed${error ? `, the last with ${error}` : ''}.`] : [],
    act: null,
  };
}

function approval(it) {
  const from = it.assignees.length ? [' from ', { b: it.assignees.join(', ') }] : [];
  const next = it.deadline
    ? ['Without a decision it expires ', { at: it.deadline }, '.']
    : ['It waits for as long as it takes.'];
  return {
    kind: 'wait',
    text: ['Waits for the approval ', { b: it.name }, ...from, ', asked ', { at: it.requested_at }, '.'],
    next: it.title ? [`${it.title} `, ...next] : next,
    act: {
      name: 'approve',
      label: 'Approve…',
      approval: it,
      also: { name: 'reject', label: 'Reject…', approval: it },
    },
  };
}

/** Since when the oldest open row of a kind has waited. */
function openSince(timeline, kind) {
  const row = (timeline?.rows.get(0) ?? []).find((each) => each.kind === kind && each.open);
  return row ? [', since ', { at: new Date(row.at).toISOString() }, '.'] : ['.'];
}

function sinceOf(timeline, wait) {
  const row = timeline?.last(0, wait.kind, wait.name) ?? null;
  const bar = row?.bars.findLast((each) => each.to === null);
  return bar ? [', since ', { at: new Date(bar.from).toISOString() }, '.'] : ['.'];
}

/** The arguments of a run by name, where the schema of its workflow says the names. */
export function namedInput(input, schema) {
  const names = Object.keys(schema?.properties ?? {});
  const [given, keyed] = Array.isArray(input)
    ? [input, {}]
    : input && typeof input === 'object' && Array.isArray(input.a) && 'k' in input
      ? [input.a, input.k]
      : [null, input];
  if (given === null || names.length < given.length) return input;
  return { ...Object.fromEntries(given.map((value, index) => [names[index], value])), ...keyed };
}

/** How long a run took, or has gone on for, in milliseconds. */
export function lengthOf(run, now) {
  return (run.finished_at ? millis(run.finished_at) : now) - millis(run.created_at);
}
