// @ts-check
// Queues: how full they are, which runs hold their slots, and what they allow.
import { html, useSignal } from '../vendor/preact.js';
import { get, post, put, useLoaded } from '../api.js';
import { at, href } from '../router.js';
import { can } from '../session.js';
import { ActionDialog, Field } from '../parts/dialog.js';
import { Act, Empty, figure, Head, Problem, Status, Tile } from '../parts/shown.js';
import { Table } from '../parts/table.js';
import { Sentence, lasts, span } from '../parts/time.js';
import { count } from './overview.js';

const LIMITS = [
  ['concurrency', 'slots, in all workers'],
  ['per_worker', 'slots of one worker'],
  ['per_key', 'runs at once with the same key'],
];
const most = (limit) => (limit === null ? 'no limit' : figure(limit));
const rateOf = (tier) =>
  tier.kind === 'bucket'
    ? `${tier.amount} a second, ${tier.burst} at once`
    : `${tier.amount} in ${tier.kind === 'sliding' ? 'any ' : ''}${lasts(span(tier.span))}`;
const age = (text) => (text === null ? '—' : lasts(span(text)));

/** How much of what is allowed is used, as a bar. */
const Used = ({ it }) =>
  it.limits.concurrency === null
    ? html`${count(it.running)}`
    : html`<span class="used">
      <meter
        min="0"
        max=${it.limits.concurrency}
        value=${it.slots.count}
        aria-label=${`${it.slots.count} of ${it.limits.concurrency} slots are used`}
      ></meter>
      ${count(it.slots)} of ${it.limits.concurrency}
    </span>`;

/** @type {import('../parts/table.js').Column<import('outlive').QueueState>[]} */
const COLUMNS = [
  { name: 'name', value: (it) => it.name, cell: (it) => html`<span class="mono">${it.name}</span>` },
  {
    name: 'state',
    value: (it) => (it.paused ? 'paused' : 'open'),
    cell: (it) => html`<${Status} of=${it.paused ? 'paused' : 'open'} kind=${it.paused ? 'park' : 'ok'} />`,
  },
  {
    name: 'in_line',
    label: 'in line',
    number: true,
    value: (it) => it.in_line.count,
    cell: (it) => count(it.in_line),
  },
  {
    name: 'age',
    label: 'waits longest',
    number: true,
    value: (it) => (it.waiting === null ? null : span(it.waiting)),
    cell: (it) => age(it.waiting),
  },
  { name: 'running', label: 'hold a slot', value: (it) => it.running.count, cell: (it) => html`<${Used} it=${it} />` },
  { name: 'later', number: true, wide: true, value: (it) => it.later.count, cell: (it) => count(it.later) },
  {
    name: 'limits',
    grow: true,
    wide: true,
    value: (it) => JSON.stringify(it.limits),
    cell: (it) =>
      html`<span class="soft">
        ${
          [
            ...LIMITS.filter(([name]) => it.limits[name] !== null).map(
              ([name]) => `${name.replace('_', ' ')} ${it.limits[name]}`,
            ),
            ...it.limits.rate.map(rateOf),
          ].join(', ') || 'none'
        }
      </span>`,
  },
];

export default function Queues({ name }) {
  return name ? html`<${One} name=${name} />` : html`<${All} />`;
}

function All() {
  const { data, error, reload } = useLoaded(
    async (signal) => (await /** @type {Promise<import('outlive').QueuesList>} */ (get('/queues', {}, signal))).items,
    [],
    {
      every: 2000,
    },
  );
  const rows = data.value;
  return html`
    <${Head}
      title="Queues"
      facts=${
        rows && [
          ['queues', rows.length],
          ['in line', figure(rows.reduce((sum, it) => sum + it.in_line.count, 0))],
          ['hold a slot', figure(rows.reduce((sum, it) => sum + it.running.count, 0))],
          ['paused', rows.filter((it) => it.paused).length],
        ]
      }
    />
    <${Problem} error=${error.value} again=${reload} />
    ${
      rows &&
      html`<${Table}
        label="queues"
        rows=${rows}
        id=${(it) => it.name}
        columns=${COLUMNS}
        href=${(it) => href(at`/queues/${it.name}`)}
        empty=${html`<${Empty} title="There are no queues.">
          A run gets in line with <code>engine.start(workflow, queue="emails")</code>; limits are set with${' '}
          <code>outlive.Queue("emails", concurrency=10)</code>.
        </${Empty}>`}
      />`
    }
  `;
}

const KEYS = [
  {
    name: 'key',
    grow: true,
    value: (it) => it.key,
    cell: (it) =>
      it.key
        ? html`<span class="mono" title=${it.key}>
          ${it.key}
        </span>`
        : html`<span class="soft">no key</span>`,
  },
  { name: 'in line', number: true, value: (it) => it.in_line.count, cell: (it) => count(it.in_line) },
  {
    name: 'waits',
    number: true,
    value: (it) => (it.waiting === null ? '' : span(it.waiting)),
    cell: (it) => age(it.waiting),
  },
  { name: 'holds', label: 'hold a slot', number: true, value: (it) => it.holds },
];

/** The keys that wait longest, then those that only hold slots; none if no run of the queue has a key. */
function keysOf({ keys, holders }) {
  const holds = {};
  for (const { key } of holders) holds[key] = (holds[key] ?? 0) + 1;
  const waiting = new Set(keys.map((each) => each.key));
  const others = Object.keys(holds)
    .filter((key) => !waiting.has(key))
    .map((key) => ({ key, in_line: { count: 0 }, waiting: null }));
  const found = [...keys, ...others].map((each) => ({ ...each, holds: holds[each.key] ?? 0 }));
  return found.some((each) => each.key) ? found : [];
}

function One({ name }) {
  const { data, error, reload } = useLoaded(
    (signal) => /** @type {Promise<import('outlive').QueueState>} */ (get(at`/queues/${name}`, {}, signal)),
    [name],
    {
      every: 1500,
    },
  );
  const it = data.value;
  const doing = useSignal('');
  const close = () => {
    doing.value = '';
  };
  if (!it)
    return html`
      <${Head}
        title=${html`
          Queue <span class="mono">${name}</span>
        `}
      />
      <${Problem} error=${error.value} again=${reload} />
    `;
  const resume = async () => {
    await post(at`/queues/${name}/resume`);
    await reload();
  };
  const reset = async () => {
    await post(at`/queues/${name}/reset`);
    await reload();
  };
  const keys = keysOf(it);
  return html`
    <${Head}
      title=${html`
        Queue <span class="mono">${name}</span>
      `}
      beside=${html`<${Status} of=${it.paused ? 'paused' : 'open'} kind=${it.paused ? 'park' : 'ok'} />`}
    >
      ${
        can('queues.set') &&
        html`<button
          onClick=${() => {
            doing.value = 'limits';
          }}
        >
          Limits…
        </button>`
      }
      ${can('queues.reset') && it.changed.length > 0 && html`<${Act} act=${reset}>Reset limits</${Act}>`}
      ${
        !it.paused &&
        can('queues.pause') &&
        html`
          <button
            onClick=${() => {
              doing.value = 'pause';
            }}
          >
            Pause…
          </button>
          <button
            onClick=${() => {
              doing.value = 'drain';
            }}
          >
            Drain…
          </button>
        `
      }
      ${
        it.paused &&
        can('queues.resume') &&
        html`<${Act} kind="do" act=${resume}>
          Resume
        </${Act}>`
      }
    </${Head}>
    <${Problem} error=${error.value} again=${reload} />
    ${
      it.paused &&
      html`<div class="panel why park-edge">
        <p>
          <${Sentence} text=${it.paused} />
          <small>
            ${
              it.running.count
                ? [
                    count(it.running),
                    it.running.count === 1 ? ' run holds a slot and goes' : ' runs hold a slot and go',
                    ' on; no other gets one.',
                  ]
                : 'It is drained: no run holds a slot.'
            }
          </small>
        </p>
      </div>`
    }
    <div class="tiles">
      <${Tile}
        label="in line"
        value=${count(it.in_line)}
        note="wait for a slot"
        to=${href('/runs', { queue: name, status: 'pending' })}
      />
      <${Tile} label="waits longest" value=${age(it.waiting)} />
      <${Tile}
        label="hold a slot"
        value=${count(it.running)}
        note=${it.limits.concurrency === null ? 'no limit' : `${it.slots.count} of ${it.limits.concurrency} slots`}
      />
      <${Tile} label="later" value=${count(it.later)} note="get in line at an instant" />
      <${Tile} label="all runs" value="→" note="of this queue" to=${href('/runs', { queue: name })} />
    </div>
    <div class="two">
      <${Table}
        label="runs that hold a slot"
        rows=${it.holders}
        caption="runs that hold a slot"
        href=${(run) => href(at`/runs/${run.id}`)}
        columns=${[
          { name: 'id', value: (run) => run.id, cell: (run) => html`<span class="mono">${run.id}</span>` },
          { name: 'key', value: (run) => run.key, cell: (run) => html`<span class="mono">${run.key}</span>` },
          { name: 'status', value: (run) => run.status, cell: (run) => html`<${Status} of=${run.status} />` },
          { name: 'slots', number: true, wide: true, value: (run) => run.slots },
          {
            name: 'worker',
            grow: true,
            wide: true,
            value: (run) => run.worker,
            cell: (run) => html`<span class="mono soft">${run.worker}</span>`,
          },
        ]}
        empty=${html`<${Empty} title="No run holds a slot.">
          ${it.paused ? 'The queue is paused.' : 'Runs in line get one as soon as a worker takes from this queue.'}
        </${Empty}>`}
      />
      <div class="stack">
        <section class="panel" aria-labelledby="limits">
          <header>
            <h2 id="limits">Limits</h2>
          </header>
          <dl class="list">
            ${LIMITS.map(
              ([limit, what]) =>
                html`<div key=${limit}>
                  <dt>${what}</dt>
                  <dd>
                    ${most(it.limits[limit])}
                    ${
                      it.changed.includes(limit) &&
                      html`
                        ${' '}
                        <span class="soft">changed</span>
                      `
                    }
                  </dd>
                </div>`,
            )}
            ${it.limits.rate.map(
              (tier, n) =>
                html`<div key=${n}>
                  <dt>begin</dt>
                  <dd>
                    ${rateOf(tier)}
                    ${
                      it.changed.includes('rate') &&
                      html`
                        ${' '}
                        <span class="soft">changed</span>
                      `
                    }
                  </dd>
                </div>`,
            )}
            ${Object.entries(it.limits.weights).map(
              ([key, weight]) =>
                html`<div key=${`weight ${key}`}>
                  <dt>
                    turns of <span class="mono">${key}</span>
                  </dt>
                  <dd>
                    ${weight}
                    ${
                      it.changed.includes('weights') &&
                      html`
                        ${' '}
                        <span class="soft">changed</span>
                      `
                    }
                  </dd>
                </div>`,
            )}
          </dl>
        </section>
        ${
          keys.length > 0 &&
          html`<${Table}
            label="keys"
            keys=${false}
            rows=${keys}
            id=${(each) => each.key}
            caption="keys, longest wait first"
            columns=${KEYS}
          />`
        }
      </div>
    </div>
    ${doing.value === 'limits' && html`<${Limits} it=${it} close=${close} reload=${reload} />`}
    ${
      (doing.value === 'pause' || doing.value === 'drain') &&
      html`<${Pause} it=${it} drains=${doing.value === 'drain'} close=${close} reload=${reload} />`
    }
  `;
}

const linesOf = (text) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
function tierText(tier) {
  if (tier.kind === 'bucket') return `${tier.amount}:${tier.burst}`;
  return `${tier.amount}${tier.kind === 'sliding' ? ' in any ' : '/'}${span(tier.span) / 1000}`;
}

/** A rate as a person writes it: 10 a second, 10:50 with 50 at once, 500/60 in each minute, 5 in any 2 seconds. */
function tierOf(line) {
  const [, limit, period] = /^(\d+)\s+in\s+any\s+([\d.]+)\s*s?$/.exec(line) ?? [];
  if (Number(limit)) return { kind: 'sliding', amount: Number(limit), span: Number(period) };
  const [, amount, sign, more] = /^([\d.]+)\s*(?:([:/])\s*([\d.]+))?$/.exec(line) ?? [];
  if (!Number(amount))
    throw new Error(`“${line}” is not a rate: write 10, 10:50, 500/60 or 5 in any 2, as below the field.`);
  return sign === '/'
    ? { kind: 'window', amount: Number(amount), span: Number(more) }
    : { kind: 'bucket', amount: Number(amount), burst: sign ? Number(more) : null };
}

/** A key may have every sign in it, so the last one separates. */
function weightOf(line) {
  const [, key, weight] = /^(.*\S)\s*=\s*([\d.]+)$/.exec(line) ?? [];
  if (!key) throw new Error(`“${line}” is not a weight: write a key and its turns, for example customer-7=3.`);
  return [key, Number(weight)];
}

function Limits({ it, close, reload }) {
  const values = useSignal({
    ...Object.fromEntries(LIMITS.map(([name]) => [name, it.limits[name] ?? ''])),
    rate: it.limits.rate.map(tierText).join('\n'),
    weights: Object.entries(it.limits.weights)
      .map(([key, weight]) => `${key}=${weight}`)
      .join('\n'),
  });
  const change = (event) => {
    values.value = { ...values.value, [event.target.name]: event.target.value };
  };
  const act = async () => {
    const given = {
      ...Object.fromEntries(
        LIMITS.map(([name]) => [name, values.value[name] === '' ? null : Number(values.value[name])]),
      ),
      rate: linesOf(values.value.rate).map(tierOf),
      weights: Object.fromEntries(linesOf(values.value.weights).map(weightOf)),
    };
    const changed = Object.entries(given).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(it.limits[name]),
    );
    if (changed.length) await put(at`/queues/${it.name}`, Object.fromEntries(changed));
    reload();
  };
  return html`<${ActionDialog}
    title=${`Limits of ${it.name}`}
    verb="Change"
    close=${close}
    act=${act}
    done="Changed for all workers."
  >
    <p>
      They count for all workers at once, and over restarts, until they are reset to what the code says. An empty
      field sets no limit.
    </p>
    ${LIMITS.map(
      ([name, what]) =>
        html`<${Field} key=${name} label=${what}>
          <input type="number" name=${name} min="1" step="1" value=${values.value[name]} onInput=${change} />
        </${Field}>`,
    )}
    <${Field}
      label="how often runs may begin"
      hint="one on a line: 10 a second, 10:50 with 50 at once, 500/60 in each minute, 5 in any 2 seconds"
    >
      <textarea name="rate" rows="2" spellcheck=${false} value=${values.value.rate} onInput=${change}></textarea>
    </${Field}>
    <${Field} label="turns of keys" hint="one on a line: customer-7=3; all others have one">
      <textarea
        name="weights"
        rows="2"
        spellcheck=${false}
        value=${values.value.weights}
        onInput=${change}
      ></textarea>
    </${Field}>
  </${ActionDialog}>`;
}

function Pause({ it, drains, close, reload }) {
  const reason = useSignal(drains ? 'draining' : '');
  const act = async () => {
    await post(at`/queues/${it.name}/pause`, { reason: reason.value });
    reload();
  };
  return html`<${ActionDialog}
    title=${`${drains ? 'Drain' : 'Pause'} ${it.name}`}
    verb=${drains ? 'Drain' : 'Pause'}
    close=${close}
    act=${act}
    done=${drains ? 'No more slots are given; this page shows when the last run has ended.' : 'Paused.'}
  >
    <p>
      ${count(it.running)} that hold a slot go on to their end. ${count(it.in_line)} in line stay there, and new
      ones may be started.
    </p>
    <${Field} label="reason" hint="shown to those who look at it">
      <input
        maxlength="500"
        value=${reason.value}
        onInput=${(event) => {
          reason.value = event.target.value;
        }}
      />
    </${Field}>
  </${ActionDialog}>`;
}
