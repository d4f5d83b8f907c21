// @ts-check
// Runs: a live list with every filter of the API in the URL, saved views, and what can be done to many runs.
import { html, useMemo, useRef, useSignal } from '../vendor/preact.js';
import { follow, get, post, useFollow, useLoaded } from '../api.js';
import { FILTERS } from '../filters.js';
import { at, go, here, href, setQuery } from '../router.js';
import { can, ownWorkflow, say } from '../session.js';
import { useKeys } from '../keys.js';
import { ActionDialog, Dialog, Field } from '../parts/dialog.js';
import { Empty, Head, Problem, Status } from '../parts/shown.js';
import { Pages } from '../parts/pages.js';
import { Table } from '../parts/table.js';
import { Length, Time } from '../parts/time.js';
import { count } from './overview.js';

const STATUSES = [
  'pending',
  'running',
  'waiting',
  'parked',
  'succeeded',
  'failed',
  'cancelled',
  'timed_out',
  'continued',
  'damaged',
];
const SINGLE = FILTERS.map(({ name }) => name);
const LIVE = 100;
const PAGE = 200;
const BULK_MAX = 1000;
/** How often an operation is looked at while its dialog is open, and how many times. */
const OPERATION_LOOK_MS = 300;
const OPERATION_LOOKS_MAX = 40;
const SAVED = 'outlive.views';

/** The filters of the URL, as the API takes them. */
function filtersOf(query) {
  const found = {
    status: query.getAll('status'),
    tag: query.getAll('tag'),
    ...(ownWorkflow() && { workflow: ownWorkflow() }),
  };
  for (const name of SINGLE) if (query.has(name)) found[name] = query.get(name);
  return found;
}

/** Whether a run is within the filters to the second: a list that is followed begins and ends at a whole minute. */
const isWithin = (run, { since, until }) =>
  !(since && new Date(run.created_at) < new Date(since)) && !(until && new Date(run.created_at) >= new Date(until));

const what = (run) =>
  run.error?.message
    ? `${run.error.type.split('.').pop()}: ${run.error.message}`
    : run.reason ||
      (run.status === 'pending' && run.queue && `in line in ${run.queue}`) ||
      run.waits.map((wait) => `${wait.kind} ${wait.name} ${wait.detail}`.trim()).join(', ');

/** @type {import('../parts/table.js').Column<import('outlive').Run>[]} */
const COLUMNS = [
  {
    name: 'id',
    value: (run) => run.id,
    cell: (run) =>
      html`<span class="mono run-id" title=${run.id}>
        ${run.id}
      </span>`,
  },
  { name: 'status', value: (run) => run.status, cell: (run) => html`<${Status} of=${run.status} />` },
  {
    name: 'workflow',
    value: (run) => run.workflow,
    cell: (run) =>
      html`
        ${run.workflow}
        ${
          run.version > 1 &&
          html`
            ${' '}
            <span class="soft">v${run.version}</span>
          `
        }
      `,
  },
  { name: 'started', value: (run) => run.created_at, cell: (run) => html`<${Time} at=${run.created_at} />` },
  {
    name: 'took',
    number: true,
    wide: true,
    value: (run) => (run.finished_at ? (Date.parse(run.finished_at) - Date.parse(run.created_at)) / 1000 : ''),
    cell: (run) => html`<${Length} from=${run.created_at} to=${run.finished_at} />`,
  },
  {
    name: 'tags',
    wide: true,
    value: (run) =>
      Object.entries(run.tags)
        .map(([name, value]) => `${name}=${value}`)
        .join(' '),
    cell: (run) =>
      Object.entries(run.tags)
        .slice(0, 3)
        .map(
          ([name, value]) =>
            html`<span class="tag" key=${name}>
              ${name}=${value}
            </span>`,
        ),
  },
  {
    name: 'what',
    label: 'what',
    grow: true,
    wide: true,
    value: what,
    cell: (run) =>
      html`<span class=${run.error ? 'fail' : 'soft'} title=${what(run)}>
        ${what(run)}
      </span>`,
  },
];

export default function Runs() {
  const { query } = here.value;
  const filters = filtersOf(query);
  const order = query.get('order') ?? '-created_at';
  const wanted = JSON.stringify([filters, order]);
  const pages = useMemo(
    () =>
      new Pages(
        (after) =>
          /** @type {Promise<import('outlive').RunsPage>} */ (get('/runs', { ...filters, order, limit: PAGE, after })),
      ),
    [wanted],
  );
  const state = useSignal('');
  const selection = useSignal(new Set());
  const doing = useSignal(null);
  const search = useRef(null);
  const counted = useLoaded(
    (signal) => /** @type {Promise<import('outlive').Count>} */ (get('/runs/count', filters, signal)),
    [wanted],
    { every: 10_000 },
  );
  useFollow(
    (signal) => {
      selection.value = new Set();
      if (order !== '-created_at') {
        state.value = '';
        return;
      }
      let isBack = false;
      follow('/runs/follow', {
        query: { ...filters, limit: LIVE },
        signal,
        state: (name) => {
          state.value = name;
        },
        on: {
          run: (run) => {
            if (
              isWithin(run, filters) &&
              pages.isKnown &&
              (pages.length === 0 || run.created_at >= (pages.at(0)?.created_at ?? '') || pages.has(run.id))
            )
              pages.put(run);
          },
          gone: ({ id }) => pages.take(id, LIVE),
          list: ({ ids }) => {
            if (isBack) pages.keep(new Set(ids), LIVE);
            isBack = true;
          },
        },
      });
    },
    [wanted],
  );
  useKeys({ f: ['write a filter', () => search.current.focus()] });
  const any = Object.values(filters).flat().length > 0;
  const close = () => {
    doing.value = null;
  };
  const done = () => {
    selection.value = new Set();
    pages.changed();
    counted.reload();
  };
  return html`
    <${Head}
      title="Runs"
      beside=${html`<span class=${`soft ${state.value === 'live' ? 'live' : ''}`}>
        ${{ live: 'live', away: 'not live: connecting' }[state.value] ?? ''}
      </span>`}
    >
      <${Actions}
        chosen=${selection.value}
        any=${any}
        statuses=${filters.status}
        purges=${!filters.waiting_for}
        doing=${doing}
      />
    </${Head}>
    <${Filters} filters=${filters} order=${order} search=${search} />
    <${Problem} error=${pages.error.value ?? counted.error.value} again=${() => pages.see(0, 60)} />
    <${Table}
      label="runs"
      rows=${pages}
      columns=${COLUMNS}
      href=${(run) => href(at`/runs/${run.id}`)}
      selection=${can('runs.cancel') ? selection : undefined}
      caption=${
        selection.value.size
          ? `${selection.value.size} chosen`
          : counted.data.value && `${count(counted.data.value)} ${counted.data.value.count === 1 ? 'run' : 'runs'}`
      }
      empty=${
        any
          ? html`<${Empty} title="No run fits.">
            <a href=${href('/runs')}>Show all runs</a>
          </${Empty}>`
          : html`<${Empty} title="There are no runs yet.">
            Start one: <code>outlive run app.py:NAME</code>, or <code>await engine.start(workflow, ...)</code>${' '}
            in your program.
          </${Empty}>`
      }
    />
    ${
      doing.value &&
      html`<${Bulk} ...${doing.value} chosen=${selection.value} filters=${filters} close=${close} done=${done} />`
    }
  `;
}

// -- Filters -------------------------------------------------------------------------------------------------------

/** What was typed into the field: the id of a run, name=value for a tag, error:Name, or any filter by its name. */
function readSearch(text) {
  const [, name, value] = /^(\w+):(.+)$/.exec(text) ?? [];
  if (name && (SINGLE.includes(name) || name === 'status')) return { [name]: value };
  return text.includes('=') ? { tag: [...here.value.query.getAll('tag'), text] } : { id_prefix: text };
}

function Filters({ filters, order, search }) {
  const more = useSignal(false);
  const submit = (event) => {
    event.preventDefault();
    const text = search.current.value.trim();
    if (text) setQuery(readSearch(text));
    search.current.value = '';
  };
  const toggle = (status) =>
    setQuery({
      status: filters.status.includes(status)
        ? filters.status.filter((each) => each !== status)
        : [...filters.status, status],
    });
  const chips = [
    ...filters.tag.map((tag) => [tag, () => setQuery({ tag: filters.tag.filter((each) => each !== tag) })]),
    ...SINGLE.filter((name) => filters[name]).map((name) => [
      `${name}: ${filters[name]}`,
      () => setQuery({ [name]: undefined }),
    ]),
  ];
  return html`<div class="stack">
    <div class="filters">
      <form onSubmit=${submit} role="search">
        <input
          ref=${search}
          type="search"
          size="34"
          aria-label="Find runs by id, by tag (name=value) or by error (error:Name)"
          placeholder="id, tag=value, error:Name"
        />
      </form>
      <div class="filters" role="group" aria-label="status">
        ${STATUSES.map(
          (status) =>
            html`<button
              key=${status}
              class="toggle"
              aria-pressed=${filters.status.includes(status)}
              onClick=${() => toggle(status)}
            >
              ${status.replace('_', ' ')}
            </button>`,
        )}
      </div>
      <button
        aria-expanded=${more.value}
        onClick=${() => {
          more.value = !more.value;
        }}
      >
        Filters
      </button>
      <${Saved} />
    </div>
    ${
      chips.length > 0 &&
      html`<div class="filters">
        ${chips.map(
          ([text, remove]) =>
            html`<button key=${text} class="chip" aria-label=${`${text}: remove this filter`} onClick=${remove}>
              ${text} ×
            </button>`,
        )}
        <button class="quiet" onClick=${() => go('/runs')}>
          Clear
        </button>
      </div>`
    }
    ${more.value && html`<${MoreFilters} filters=${filters} order=${order} />`}
  </div>`;
}

const local = (instant) =>
  instant
    ? new Date(new Date(instant).getTime() - new Date(instant).getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
    : '';

function MoreFilters({ filters, order }) {
  const { data } = useLoaded(
    (signal) => /** @type {Promise<import('outlive').WorkflowsList>} */ (get('/workflows', {}, signal)),
  );
  const names = [...new Set(data.value?.items.map((each) => each.name) ?? [])];
  const input = {
    text: (name) =>
      html`<input
        list=${name === 'workflow' && 'workflows'}
        value=${filters[name] ?? ''}
        onChange=${(event) => setQuery({ [name]: event.target.value || undefined })}
      />`,
    instant: (name) =>
      html`<input
        type="datetime-local"
        step="1"
        value=${local(filters[name])}
        onChange=${(event) =>
          setQuery({ [name]: event.target.value ? new Date(event.target.value).toISOString() : undefined })}
      />`,
    flag: (name) =>
      html`<input
        type="checkbox"
        checked=${filters[name] === 'true'}
        onChange=${(event) => setQuery({ [name]: event.target.checked ? 'true' : undefined })}
      />`,
  };
  return html`<div class="panel grid-form">
    ${FILTERS.map(
      ({ name, kind, hint }) =>
        html`<${Field} key=${name} label=${name.replaceAll('_', ' ')} hint=${hint}>
          ${input[kind](name)}
        </${Field}>`,
    )}
    <datalist id="workflows">
      ${names.map((name) => html`<option key=${name} value=${name} />`)}
    </datalist>
    <${Field} label="order">
      <select value=${order} onChange=${(event) => setQuery({ order: event.target.value })}>
        <option value="-created_at">newest first, live</option>
        <option value="created_at">oldest first</option>
      </select>
    </${Field}>
  </div>`;
}

function Saved() {
  const views = useSignal(JSON.parse(localStorage.getItem(SAVED) ?? '[]'));
  const naming = useSignal(false);
  const name = useRef(null);
  const query = here.value.query.toString();
  const keep = (list) => {
    views.value = list;
    localStorage.setItem(SAVED, JSON.stringify(list));
  };
  const save = (event) => {
    event.preventDefault();
    const own = name.current.value.trim();
    keep([...views.value.filter((each) => each.name !== own), { name: own, query }]);
    naming.value = false;
    say(`The view ${own} is saved in this browser.`);
  };
  return html`<span class="filters">
    ${views.value.map(
      (view) =>
        html`<span key=${view.name} class="joined">
          <a
            class="button"
            aria-current=${view.query === query ? 'true' : undefined}
            href=${`#/runs?${view.query}`}
          >
            ${view.name}
          </a>
          <button
            class="quiet"
            aria-label=${`forget the view ${view.name}`}
            onClick=${() => keep(views.value.filter((each) => each !== view))}
          >
            ×
          </button>
        </span>`,
    )}
    ${
      query &&
      html`<button
        class="quiet"
        onClick=${() => {
          naming.value = true;
        }}
      >
        Save view
      </button>`
    }
    ${
      naming.value &&
      html`<${Dialog}
        title="Save these filters as a view"
        close=${() => {
          naming.value = false;
        }}
      >
        <form onSubmit=${save}>
          <${Field} label="name">
            <input ref=${name} required maxlength="40" autofocus />
          </${Field}>
          <div class="buttons">
            <button class="do">Save</button>
          </div>
        </form>
      </${Dialog}>`
    }
  </span>`;
}

// -- What can be done to many runs ----------------------------------------------------------------------------------

const VERBS = [
  {
    verb: 'cancel',
    label: 'Cancel',
    one: 'runs.cancel',
    many: 'bulk.start',
    path: '/bulk/cancel',
    kind: 'no',
    says: 'asked to stop',
    for: ['pending', 'running', 'waiting', 'parked'],
  },
  {
    verb: 'retry',
    label: 'Retry',
    one: 'runs.retry',
    many: 'bulk.start',
    path: '/bulk/retry',
    kind: 'do',
    says: 'retried',
    for: ['failed', 'timed_out', 'cancelled'],
  },
  {
    verb: 'resume',
    label: 'Resume',
    one: 'runs.resume',
    many: 'bulk.start',
    path: '/bulk/resume',
    kind: 'do',
    says: 'resumed',
    for: ['parked'],
  },
];

function Actions({ chosen, any, statuses, purges, doing }) {
  const fits = (each) =>
    chosen.size > 0 ||
    (statuses.length ? statuses.some((status) => each.for.includes(status)) : each.verb !== 'resume');
  const verbs = VERBS.filter((each) => can(chosen.size ? each.one : each.many) && fits(each));
  if (!chosen.size && !any)
    return can('runs.cancel') && html`<span class="soft">Choose runs, or narrow the list, to act on many.</span>`;
  return html`
    ${verbs.map(
      (each) =>
        html`<button
          key=${each.verb}
          class=${each.kind === 'no' ? 'no' : ''}
          onClick=${() => {
            doing.value = each;
          }}
        >
          ${each.label} ${chosen.size ? `${chosen.size}…` : 'all that fit…'}
        </button>`,
    )}
    ${
      !chosen.size &&
      can('bulk.purge') &&
      purges &&
      statuses.every((status) => !VERBS[0].for.includes(status)) &&
      html`<button
        class="no"
        onClick=${() => {
          doing.value = { verb: 'purge', label: 'Delete', kind: 'no', path: '/bulk/purge' };
        }}
      >
        Delete all that fit…
      </button>`
    }
  `;
}

/**
 * The filters of the list as bulk operations take them: what the list shows is what they are for. Only operations that
 * know of child runs are told whether these are meant; the others are for whole trees.
 */
function bulkOf({ tag, roots_only: rootsOnly, internal: _, ...rest }, knowsChildren = false) {
  return {
    ...rest,
    ...(knowsChildren && { roots_only: rootsOnly === 'true' }),
    ...(tag.length && { tags: Object.fromEntries(tag.map((each) => each.split(/=(.*)/s).slice(0, 2))) }),
  };
}

function Bulk({ verb, label, kind, path, says, chosen, filters, close, done }) {
  const reason = useRef(null);
  const ids = [...chosen];
  const known = verb === 'cancel' || verb === 'retry';
  const body = (dry) => ({
    ...bulkOf(filters, known),
    limit: BULK_MAX,
    dry_run: dry,
    ...(known && { reason: reason.current?.value ?? '' }),
  });
  if (verb === 'purge') {
    const send = (dry) => post(path, { ...bulkOf(filters), older_than: 0, limit: BULK_MAX, dry_run: dry });
    return html`<${ActionDialog}
      title="Delete runs for good"
      verb="Delete"
      kind="no"
      close=${close}
      preview=${() => send(true)}
      disabled=${false}
      show=${(found) =>
        html`<p>
          <b>
            ${found.found} ${found.found === 1 ? 'run' : 'runs'}
          </b>${' '}
          that have ended, with their children, histories and values
          ${
            found.oldest &&
            html`
              , from <${Time} at=${found.oldest} /> to <${Time} at=${found.newest} />
            `
          }
          . This cannot be undone.
        </p>`}
      act=${() => send(false)}
      done=${(found) => {
        done();
        return `${found.deleted} deleted.`;
      }}
    />`;
  }
  const one = async () => {
    const failed = [];
    for (const id of ids)
      await post(at`/runs/${id}/${verb}`, verb === 'resume' ? undefined : { reason: reason.current.value }).catch(
        (error) => failed.push(error),
      );
    if (failed.length === ids.length) throw failed[0];
    return { done: ids.length - failed.length, of: ids.length };
  };
  // Workers carry it out, and go on when this page is closed.
  const many = async () => {
    const { dry_run: _, limit: __, ...wanted } = body(false);
    const { id } = await /** @type {Promise<import('outlive').Started>} */ (
      post('/bulk/operations', { ...wanted, verb })
    );
    let it = await /** @type {Promise<import('outlive').BulkProgress>} */ (get(at`/bulk/operations/${id}`));
    for (let looks = 0; !it.finished_at && looks < OPERATION_LOOKS_MAX; looks += 1) {
      await new Promise((go) => {
        setTimeout(go, OPERATION_LOOK_MS);
      });
      it = await /** @type {Promise<import('outlive').BulkProgress>} */ (get(at`/bulk/operations/${id}`));
    }
    return { done: it.done, of: it.found, goesOn: it.finished_at ? '' : ` It goes on: operation ${id}.` };
  };
  return html`<${ActionDialog}
    title=${`${label} runs`}
    verb=${label}
    kind=${kind}
    close=${close}
    act=${ids.length ? one : many}
    done=${(result) => {
      done();
      return `${result.done} of ${result.of} ${says}.${result.goesOn ?? ''}`;
    }}
    preview=${ids.length ? undefined : async () => (await post(path, body(true))).items}
    show=${(items) =>
      html`
        <p>
          <b>
            ${items.length} ${items.length === 1 ? 'run fits' : 'runs fit'}.
          </b>
          ${items.length === BULK_MAX && ' There may be more; all that fit are taken.'}
        </p>
        <${Names} items=${items} />
      `}
  >
    ${
      ids.length > 0 &&
      html`
        <p>
          <b>
            ${ids.length} ${ids.length === 1 ? 'run' : 'runs'}
          </b>
        </p>
        <${Names} items=${ids.map((id) => ({ id }))} />
      `
    }
    ${
      verb !== 'resume' &&
      html`<${Field} label="reason" hint="kept with each run">
        <input ref=${reason} maxlength="500" />
      </${Field}>`
    }
  </${ActionDialog}>`;
}

const Names = ({ items }) =>
  html`<ul class="names" tabindex="0" aria-label="runs">
    ${items.slice(0, 100).map(
      (each) =>
        html`<li key=${each.id}>
          <span class="mono">${each.id}</span>${' '}
          <span class="soft">
            ${each.workflow} ${each.status && html`<${Status} of=${each.status} />`}
          </span>
        </li>`,
    )}
    ${items.length > 100 && html`<li class="soft">and ${items.length - 100} more</li>`}
  </ul>`;
