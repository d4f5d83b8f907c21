// @ts-check
// Audit: who did what, what was refused, and whether the log is whole.
import { html, useMemo, useSignal } from '../vendor/preact.js';
import { get } from '../api.js';
import { here, setQuery } from '../router.js';
import { Act, Empty, figure, Head, Problem, Status } from '../parts/shown.js';
import { Pages } from '../parts/pages.js';
import { Table } from '../parts/table.js';
import { Time } from '../parts/time.js';

/** @type {import('../parts/table.js').Column<import('outlive').AuditEntry>[]} */
const COLUMNS = [
  { name: 'number', number: true, value: (it) => it.number },
  { name: 'at', value: (it) => it.at, cell: (it) => html`<${Time} at=${it.at} />` },
  { name: 'actor', value: (it) => it.actor },
  { name: 'verb', value: (it) => it.verb, cell: (it) => html`<span class="mono">${it.verb}</span>` },
  {
    name: 'target',
    value: (it) => it.target,
    cell: (it) =>
      html`<span class="mono run-id" title=${it.target}>
        ${it.target}
      </span>`,
  },
  {
    name: 'outcome',
    value: (it) => (it.is_denied ? 'refused' : 'done'),
    cell: (it) => html`<${Status} of=${it.is_denied ? 'refused' : 'done'} kind=${it.is_denied ? 'fail' : 'ok'} />`,
  },
  {
    name: 'reason',
    grow: true,
    wide: true,
    value: (it) => it.reason,
    cell: (it) => html`<span title=${it.reason}>${it.reason}</span>`,
  },
  { name: 'via', wide: true, value: (it) => it.via },
  {
    name: 'address',
    wide: true,
    value: (it) => it.address,
    cell: (it) => html`<span class="mono soft">${it.address}</span>`,
  },
];
const FIELDS = ['actor', 'verb', 'target'];

export default function Audit() {
  const { query } = here.value;
  const turn = useSignal(0);
  const checked = useSignal(null);
  const filters = Object.fromEntries(FIELDS.map((name) => [name, query.get(name)]));
  const pages = useMemo(
    () =>
      new Pages(
        (after) =>
          /** @type {Promise<import('outlive').ActionsPage>} */ (get('/audit', { ...filters, limit: 200, after })),
        { id: (it) => it.number },
      ),
    [JSON.stringify(filters), turn.value],
  );
  const check = async () => {
    checked.value = await /** @type {Promise<import('outlive').AuditCheck>} */ (get('/audit/verify'));
  };
  return html`
    <${Head} title="Audit" beside=${html`<span class="soft">who did what</span>`}>
      <button
        onClick=${() => {
          turn.value += 1;
        }}
      >
        Look again
      </button>
      <${Act} act=${check}>Check the log</${Act}>
    </${Head}>
    ${
      checked.value &&
      html`<div class=${`panel why ${checked.value.problems.length ? 'fail' : 'ok'}-edge`} role="status">
        <p>
          ${
            checked.value.problems.length
              ? html`
                <b>The log was changed.</b>
                <small>${checked.value.problems.join('; ')}</small>
              `
              : html`
                <b>The log is whole:</b> ${figure(checked.value.rows)}${' '}
                ${checked.value.rows === 1 ? 'row follows' : 'rows follow'} from one another.
                <small>
                  Keep this head elsewhere, and compare with <code>outlive audit verify --since</code>:${' '}
                  <code>${checked.value.head}</code>
                </small>
              `
          }
        </p>
      </div>`
    }
    <div class="filters">
      ${FIELDS.map(
        (name) =>
          html`<label key=${name}>
            ${name}${' '}
            <input
              value=${filters[name] ?? ''}
              onChange=${(event) => setQuery({ [name]: event.target.value || undefined })}
            />
          </label>`,
      )}
    </div>
    <${Problem}
      error=${pages.error.value}
      again=${() => {
        turn.value += 1;
      }}
    />
    <${Table}
      label="actions"
      rows=${pages}
      id=${(it) => it.number}
      columns=${COLUMNS}
      empty=${html`<${Empty}
        title=${FIELDS.some((name) => filters[name]) ? 'No action fits.' : 'Nothing was done yet.'}
      >
        What people and keys do over HTTP, on the command line and with <code>engine.audit.acting</code> is
        written here, in the same transaction as the deed.
      </${Empty}>`}
    />
  `;
}
