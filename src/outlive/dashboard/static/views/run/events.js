// @ts-check
// The events of a run, newest first.
import { html, useMemo, useSignal } from '../../vendor/preact.js';
import { at, href } from '../../router.js';
import { Empty } from '../../parts/shown.js';
import { Table } from '../../parts/table.js';
import { exact } from '../../parts/time.js';
import { millis } from './timeline.js';

/**
 * The events that fit, newest first, as a table reads a list. With a hundred more a second, none is looked at twice.
 */
class EventRows {
  constructor(events, run, wanted) {
    this.events = events;
    this.run = run;
    this.wanted = wanted;
    /** @type {{event: any, worker: string}[]} */
    this.oldestFirst = [];
    this.looked = 0;
    this.worker = '';
    this.version = { value: 0 };
    this.isKnown = true;
    this.isWhole = true;
  }

  /** Look at the events that have come since. */
  grow() {
    for (; this.looked < this.events.length; this.looked += 1) {
      const event = this.events[this.looked];
      if (event.data.worker && (event.type === 'RunClaimed' || event.type === 'RunCreated'))
        this.worker = event.data.worker;
      if (this.fits(event)) this.oldestFirst.push({ event, worker: this.worker });
    }
    return this;
  }

  fits(event) {
    if (this.run.number && event.run_id !== this.run.id && !event.run_id.startsWith(`${this.run.id}~`)) return false;
    return (
      !this.wanted || event.words.toLowerCase().includes(this.wanted) || event.type.toLowerCase().includes(this.wanted)
    );
  }

  get length() {
    return this.oldestFirst.length;
  }

  get rows() {
    return this.oldestFirst.slice().reverse();
  }

  at(index) {
    return this.oldestFirst[this.oldestFirst.length - 1 - index];
  }

  see() {} // All of them are here.
}

export function Events({ followed, run, query }) {
  const find = useSignal('');
  const { events } = followed;
  const rows = useMemo(() => new EventRows(events, run, find.value.toLowerCase()), [events, find.value, run.id]).grow();
  const columns = useMemo(
    () => [
      { name: 'seq', value: (it) => it.event.seq, cell: (it) => html`<span class="mono">${it.event.seq}</span>` },
      {
        name: 'at',
        value: (it) => it.event.at,
        cell: (it) => {
          const moment = exact(millis(it.event.at));
          return html`<span title=${moment}>${moment.slice(11)}</span>`;
        },
      },
      {
        name: 'event',
        wide: true,
        value: (it) => it.event.type,
        cell: (it) => html`<span class="mono">${it.event.type}</span>`,
      },
      {
        name: 'what',
        grow: true,
        value: (it) => it.event.words,
        cell: (it) =>
          html`<span class=${toneOf(it.event)} title=${it.event.words}>
            ${
              it.event.run_id !== run.id
                ? html`<span class="soft mono">${it.event.run_id.slice(run.root_id.length) || run.root_id} </span>`
                : ''
            }
            ${it.event.words}
          </span>`,
      },
      {
        name: 'worker',
        wide: true,
        value: (it) => it.worker,
        cell: (it) => html`<span class="mono">${it.worker}</span>`,
      },
    ],
    [run.id],
  );
  const others = Object.fromEntries(query);
  const search = html`<label class="filters">
    <span class="aside">find in events</span>
    <input
      type="search"
      placeholder="Find in events"
      value=${find.value}
      onInput=${(event) => {
        find.value = event.target.value;
      }}
    />
  </label>`;
  const empty = followed.isLoading.value
    ? html`<div class="empty soft">Looking…</div>`
    : find.value
      ? html`<${Empty} title="No event says this." />`
      : html`<${Empty} title="No events yet.">The first one comes when the run is created.</${Empty}>`;
  return html`<${Table}
    label="events"
    keys=${false}
    rows=${rows}
    id=${(it) => it.event.seq}
    columns=${columns}
    search=${search}
    empty=${empty}
    href=${(it) => href(at`/runs/${run.id}`, { ...others, at: undefined, event: it.event.seq })}
  />`;
}

function toneOf(event) {
  if (event.type === 'RunClaimed' && event.data.interrupted) return 'fail';
  return /Failed|TimedOut|SetAside/.test(event.type) ? 'fail' : event.type === 'RunParked' ? 'park' : '';
}
