// @ts-check
// The side panel: what is chosen in the timeline or in the events; the run itself if nothing is.
import { html, useEffect, useSignal } from '../../vendor/preact.js';
import { Json } from '../../parts/json.js';
import { Copy, RunLink, Status } from '../../parts/shown.js';
import { exact, lasts, Time } from '../../parts/time.js';
import { causesOf } from './frames.js';
import { rowLength } from './gantt.js';
import { namedInput, shortType } from './standing.js';
import { millis } from './timeline.js';

const KINDS = {
  succeeded: 'ok',
  failed: 'fail',
  retrying: 'wait',
  waiting: 'wait',
  parked: 'park',
  skipped: 'off',
  stopped: 'off',
  approved: 'ok',
  rejected: 'off',
  running: 'run',
  open: 'run',
  answered: 'ok',
  received: 'ok',
  fired: 'ok',
  settled: 'ok',
  decided: 'ok',
  refused: 'fail',
  timed_out: 'fail',
  asked: 'wait',
};
const AUTOMATIC_BYTES = 64 * 1024;
const isLarge = (value) => value !== null && typeof value === 'object' && '[large]' in value;

/** Props: followed, chosen: {row} | {step} | {gap} | {event} | {}; choose, acts: [buttons for what is chosen]. */
export function Detail({ followed, version, chosen, now, acts, close }) {
  const { row, step, gap, event } = chosen;
  if (step)
    return html`<${Panel} title=${step.name} status="under way" kind="run" close=${close}>
      <${StepNow} step=${step} followed=${followed} now=${now} />
    </${Panel}>`;
  if (gap)
    return html`<${Panel} title="Crash" status="lost" kind="fail" close=${close}>
      <${Gap} gap=${gap} followed=${followed} version=${version} />
    </${Panel}>`;
  if (event)
    return html`<${Panel} title=${`Event ${event.seq}`} close=${close}>
      <${EventDetail} event=${event} followed=${followed} />
    </${Panel}>`;
  if (row)
    return html`<${Panel}
      title=${row.label}
      status=${row.state === 'open' ? 'under way' : row.state}
      kind=${KINDS[row.state]}
      close=${close}
    >
      <${RowDetail} row=${row} followed=${followed} version=${version} now=${now} acts=${acts} />
    </${Panel}>`;
  return html`<${Panel} title="Run">
    <${RunDetail} followed=${followed} version=${version} />
  </${Panel}>`;
}

function Panel({ title, status, kind, close, children }) {
  return html`<section class="panel detail" aria-label="what is chosen">
    <header>
      <h2 class="as-is">${title}</h2>
      <span class="nowrap">
        ${status && html`<${Status} of=${status} kind=${kind} />`}
        ${
          close &&
          html`<button class="quiet" aria-label="choose nothing" title="choose nothing (Esc)" onClick=${close}>
            ×
          </button>`
        }
      </span>
    </header>
    ${children}
  </section>`;
}

/**
 * A payload: its value where the history has it, and the rest on demand; it is loaded at once unless it is very large.
 */
export function Value({ title, value, seq, field, followed, named = (it) => it }) {
  const found = useSignal(undefined);
  const wanted = isLarge(value) && value['[large]'] <= AUTOMATIC_BYTES;
  useEffect(() => {
    found.value = undefined;
    if (wanted)
      followed.payload(seq, field).then(
        (whole) => {
          found.value = whole;
        },
        () => {},
      );
  }, [seq, field]);
  const shown = found.value === undefined ? value : found.value;
  if (wanted && found.value === undefined)
    return html`<section class="payload">
      <header>
        <h3>${title}</h3>
      </header>
      <div class="json soft">…</div>
    </section>`;
  return html`<section class="payload">
    <header>
      <h3>${title}</h3>
      <${Copy} text=${async () => JSON.stringify(shown, null, 2)} label="Copy" />
    </header>
    <${Json}
      key=${`${seq}.${field}`}
      value=${named(shown)}
      label=${title}
      load=${() => followed.payload(seq, field)}
    />
  </section>`;
}

function eventAt(followed, seq) {
  // Events are in order and nearly without holes: the place is near.
  const { events } = followed;
  const first = events[0]?.seq ?? 0;
  const found = events[seq - first];
  return found?.seq === seq ? found : events.find((event) => event.seq === seq);
}

function RunDetail({ followed }) {
  const run = followed.run.value;
  const created = followed.events.find(
    (event) => event.run_id === run.id && (event.type === 'RunCreated' || event.type === 'SnapshotTaken'),
  );
  const ended = run.finished_at
    ? followed.events.findLast(
        (event) => event.run_id === run.id && /^Run(Succeeded|Failed|Cancelled|TimedOut|Continued)$/.test(event.type),
      )
    : null;
  const named = (value) => namedInput(value, followed.schema.value?.arguments);
  return html`
    ${run.error && html`<${Failure} failure=${run.error} />`}
    ${
      created?.type === 'RunCreated' &&
      html`<${Value}
        title="arguments"
        value=${created.data.input}
        seq=${created.seq}
        field="input"
        followed=${followed}
        named=${named}
      />`
    }
    ${
      ended?.type === 'RunSucceeded' &&
      html`<${Value} title="result" value=${ended.data.result} seq=${ended.seq} field="result" followed=${followed} />`
    }
    ${
      followed.published.value &&
      Object.keys(followed.published.value).length > 0 &&
      html`<section class="payload">
        <header>
          <h3 class=${run.finished_at ? '' : 'live'}>published</h3>
        </header>
        <${Json} value=${followed.published.value} label="published" />
      </section>`
    }
    ${
      !created &&
      !run.error &&
      html`<p class="soft pad">Choose a row of the timeline, or an event, to see what is in it.</p>`
    }
  `;
}

const PAYLOADS = ['arguments', 'result', 'payload', 'input', 'progress', 'published'];

function RowDetail({ row, followed, now, acts }) {
  const events = row.seqs.map((seq) => eventAt(followed, seq)).filter(Boolean);
  const last = events[events.length - 1];
  const tries = row.bars.filter((bar) => bar.attempt || bar.kind === 'again');
  const values = events
    .flatMap((event) =>
      PAYLOADS.filter((field) => event.data[field] !== undefined && event.data[field] !== null).map((field) => ({
        event,
        field,
      })),
    )
    .slice(-4);
  const child =
    row.child !== null
      ? followed.events.find((event) => event.run_id === row.link && event.type === 'RunSucceeded')
      : null;
  const length = rowLength(row, now);
  return html`
    <dl class="facts pad">
      <div>
        <dt>began</dt>
        <dd title=${exact(row.at)}>
          <${Time} at=${new Date(row.at).toISOString()} />
        </dd>
      </div>
      ${
        length !== null &&
        html`<div>
          <dt>${row.open ? 'for' : 'took'}</dt>
          <dd>${lasts(length)}</dd>
        </div>`
      }
      ${
        row.link &&
        html`<div>
          <dt>run</dt>
          <dd>
            <${RunLink} id=${row.link} />
          </dd>
        </div>`
      }
      ${
        row.note &&
        html`<div>
          <dt>note</dt>
          <dd>${row.note}</dd>
        </div>`
      }
      ${
        row.bars[row.bars.length - 1]?.until &&
        row.open &&
        html`<div>
          <dt>fires</dt>
          <dd>
            <${Time} at=${new Date(row.bars[row.bars.length - 1].until).toISOString()} />
          </dd>
        </div>`
      }
    </dl>
    ${acts?.length > 0 && html`<div class="acts pad">${acts}</div>`}
    ${row.failure && html`<${Failure} failure=${row.failure} />`}
    ${values.map(
      ({ event, field }) =>
        html`<${Value}
          key=${`${event.seq}.${field}`}
          title=${titleOf(row, event, field)}
          value=${event.data[field]}
          seq=${event.seq}
          field=${field}
          followed=${followed}
        />`,
    )}
    ${
      child &&
      html`<${Value} title="result" value=${child.data.result} seq=${child.seq} field="result" followed=${followed} />`
    }
    ${
      tries.length > 0 &&
      html`<table class="attempts">
        <caption class="aside">attempts</caption>
        <tbody>
          ${tries.map(
            (bar, index) =>
              html`
                <tr key=${index}>
                  <td>${bar.kind === 'again' ? '' : bar.attempt}</td>
                  <td class="mono">${bar.worker ?? ''}</td>
                  <td class=${bar.kind === 'again' ? 'soft' : bar.kind}>
                    ${
                      bar.kind === 'again'
                        ? 'interrupted'
                        : bar.kind === 'fail'
                          ? `${shortType(bar.failure?.type)}, ${lasts(bar.to - bar.from)}`
                          : bar.undone
                            ? 'taken back'
                            : lasts(bar.to - bar.from)
                    }
                  </td>
                </tr>
                ${
                  bar.retryAt &&
                  html`<tr key=${`${index}b`} class="soft">
                    <td></td>
                    <td></td>
                    <td>back-off ${lasts(bar.retryAt - bar.to)}</td>
                  </tr>`
                }
              `,
          )}
        </tbody>
      </table>`
    }
    ${!values.length && !tries.length && !row.failure && last && html`<p class="soft pad">${last.words}</p>`}
  `;
}

/** A step that runs now, as its worker says. */
function StepNow({ step, followed, now }) {
  const facts = [
    [
      'began',
      html`<span title=${exact(millis(step.since))}>
        <${Time} at=${step.since} />
      </span>`,
    ],
    ['for', lasts(Math.max(now - millis(step.since), 0))],
    ['attempt', step.attempts_max ? `${step.attempt} of ${step.attempts_max}` : step.attempt],
    ['worker', html`<span class="mono">${step.worker}</span>`],
    step.run_id !== followed.id && ['run', html`<${RunLink} id=${step.run_id} />`],
    step.heartbeat_at && ['last heartbeat', html`<${Time} at=${step.heartbeat_at} />`],
    step.last_failure && ['last failure', html`<span class="fail">${step.last_failure}</span>`],
  ];
  return html`
    <dl class="facts pad">
      ${facts.filter(Boolean).map(
        ([label, value]) =>
          html`<div key=${label}>
            <dt>${label}</dt>
            <dd>${value}</dd>
          </div>`,
      )}
    </dl>
    ${
      step.arguments &&
      html`<section class="payload">
        <header>
          <h3>arguments</h3>
          <${Copy} text=${() => JSON.stringify(step.arguments, null, 2)} label="Copy" />
        </header>
        <${Json} value=${step.arguments} label="arguments" />
      </section>`
    }
    ${
      step.progress !== null &&
      html`<section class="payload">
        <header>
          <h3>progress</h3>
        </header>
        <${Json} value=${step.progress} label="progress" />
      </section>`
    }
  `;
}

function titleOf(row, event, field) {
  if (event.type === 'RunCreated') return 'arguments';
  if (event.type === 'ApprovalRequested') return 'request';
  if (event.type === 'ApprovalDecided') return 'decision';
  if (event.type === 'AskReceived') return 'asked';
  if (event.type === 'AskAnswered') return 'answer';
  return field;
}

/** An error with what caused it; the frames of the user's code first. */
export function Failure({ failure }) {
  return html`<section class="failure">
    ${causesOf(failure).map(
      (each, index) =>
        html`<div key=${index}>
          <p>
            <b class="fail">
              ${index ? 'because of ' : ''}
              ${shortType(each.type)}
            </b>
            ${each.message && html`: ${each.message}`}
          </p>
          ${each.notes.map((note) => html`<p class="soft">${note}</p>`)}
          <ol class="frames">
            ${each.own.map((frame) => html`<${Frame} frame=${frame} />`)}
          </ol>
          ${
            each.others.length > 0 &&
            html`<details>
              <summary class="soft">
                ${each.others.length} frame${each.others.length > 1 ? 's' : ''} of libraries
              </summary>
              <ol class="frames">
                ${each.others.map((frame) => html`<${Frame} frame=${frame} />`)}
              </ol>
            </details>`
          }
        </div>`,
    )}
    <div class="pad-top">
      <${Copy} text=${() => failure.traceback || `${failure.type}: ${failure.message}`} label="Copy traceback" />
    </div>
  </section>`;
}

const Frame = ({ frame }) =>
  html`<li>
    <code class="where" title=${`${frame.file}:${frame.line}`}>
      ${frame.file.split('/').slice(-2).join('/')}:${frame.line}
    </code>${' '}
    <span class="soft">in ${frame.name}</span>
    ${frame.code && html`<code class="code">${frame.code}</code>`}
  </li>`;

function Gap({ gap, followed }) {
  const again = [...followed.timeline.byKey.values()].filter((row) =>
    row.bars.some((bar) => bar.kind === 'again' && bar.seq === gap.seq),
  );
  return html`
    <dl class="facts pad stacked">
      <div>
        <dt>lost</dt>
        <dd class="mono">${gap.lost || 'not known'}</dd>
      </div>
      <div>
        <dt>took over</dt>
        <dd class="mono">${gap.taken}</dd>
      </div>
      <div>
        <dt>last sign</dt>
        <dd>${exact(gap.from)}</dd>
      </div>
      <div>
        <dt>claimed</dt>
        <dd>${exact(gap.to)}</dd>
      </div>
      <div>
        <dt>gap</dt>
        <dd>${lasts(gap.to - gap.from)}</dd>
      </div>
    </dl>
    <p class="pad soft">
      The worker stopped renewing its lease without letting go of the run. Whatever was in the journal is kept;
      nothing that had ended runs again.
    </p>
    ${
      again.length > 0 &&
      html`<p class="pad">
        Ran again, with the same idempotency key:${' '}
        ${again.map(
          (row, index) =>
            html`
              ${index ? ', ' : ''}
              <code>${row.label}</code>
            `,
        )}
      </p>`
    }
  `;
}

function EventDetail({ event, followed }) {
  const values = PAYLOADS.filter((field) => event.data[field] !== undefined && event.data[field] !== null);
  const rest = Object.fromEntries(
    Object.entries(event.data).filter(
      ([name, value]) =>
        !values.includes(name) &&
        name !== 'failure' &&
        value !== null &&
        value !== '' &&
        value !== 0 &&
        value !== false &&
        !(typeof value === 'object' && Object.keys(value).length === 0),
    ),
  );
  return html`
    <p class="pad">${event.words}</p>
    <dl class="facts pad">
      <div>
        <dt>type</dt>
        <dd class="mono">${event.type}</dd>
      </div>
      <div>
        <dt>at</dt>
        <dd>${exact(millis(event.at))}</dd>
      </div>
      <div>
        <dt>run</dt>
        <dd>
          <${RunLink} id=${event.run_id} />
        </dd>
      </div>
    </dl>
    ${event.data.failure && html`<${Failure} failure=${event.data.failure} />`}
    ${values.map(
      (field) =>
        html`<${Value}
          key=${`${event.seq}.${field}`}
          title=${field}
          value=${event.data[field]}
          seq=${event.seq}
          field=${field}
          followed=${followed}
        />`,
    )}
    ${
      Object.keys(rest).length > 0 &&
      html`<section class="payload">
        <header>
          <h3>fields</h3>
          <${Copy} text=${() => JSON.stringify(event, null, 2)} />
        </header>
        <${Json} value=${rest} label="fields" />
      </section>`
    }
  `;
}
