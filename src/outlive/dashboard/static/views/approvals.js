// @ts-check
// Approvals: what runs ask people for, the oldest first, with the form of each and the two buttons.
import { html, useSignal } from '../vendor/preact.js';
import { get, post, useLoaded } from '../api.js';
import { at, here, href, setQuery } from '../router.js';
import { can, me, say } from '../session.js';
import { useCommands } from '../palette.js';
import { Field } from '../parts/dialog.js';
import { SchemaForm, startOf } from '../parts/form.js';
import { Act, Empty, Head, Problem, RunLink, Status } from '../parts/shown.js';
import { Table } from '../parts/table.js';
import { now, Time } from '../parts/time.js';

const keyOf = (it) => `${it.run_id} ${it.id}`;
const isDue = (it) => it.deadline && Date.parse(it.deadline) < now.value + 3_600_000;

/** @type {import('../parts/table.js').Column<import('outlive').ApprovalRequest>[]} */
const COLUMNS = [
  {
    name: 'title',
    label: 'asks',
    grow: true,
    value: (it) => it.title || it.name,
    cell: (it) => html`<b>${it.title || it.name}</b>`,
  },
  { name: 'name', wide: true, value: (it) => it.name, cell: (it) => html`<span class="mono">${it.name}</span>` },
  { name: 'run', wide: true, value: (it) => it.run_id, cell: (it) => html`<${RunLink} id=${it.run_id} />` },
  { name: 'asked', wide: true, value: (it) => it.requested_at, cell: (it) => html`<${Time} at=${it.requested_at} />` },
  {
    name: 'due',
    value: (it) => it.deadline ?? '',
    cell: (it) =>
      it.deadline &&
      html`<span class=${isDue(it) ? 'fail' : ''}>
        <${Time} at=${it.deadline} />
      </span>`,
  },
  {
    name: 'of',
    label: 'whom',
    wide: true,
    value: (it) => it.assignees.join(' '),
    cell: (it) => it.assignees.join(', ') || 'anyone',
  },
];

export default function Approvals() {
  const { query } = here.value;
  const assignee = query.get('assignee') ?? '';
  const workflow = query.get('workflow') ?? me.value.workflows?.[0] ?? '';
  const { data, error, reload } = useLoaded(
    async (signal) =>
      /** @type {Promise<import('outlive').ApprovalsPage>} */ (
        get('/approvals', { assignee, workflow, limit: 200 }, signal)
      ),
    [assignee, workflow],
    { every: 2000 },
  );
  const rows = data.value?.items;
  const chosen = rows?.find((it) => keyOf(it) === query.get('of')) ?? null;
  const next = () => {
    const rest = rows?.filter((it) => it !== chosen) ?? [];
    setQuery({ of: rest[0] && keyOf(rest[0]) });
    reload();
  };
  const link = (it) => href('/approvals', { assignee, workflow: query.get('workflow'), of: keyOf(it) });
  return html`
    <${Head}
      title="Approvals"
      facts=${
        rows &&
        [
          ['open', `${rows.length}${data.value?.next ? '+' : ''}`],
          ['due within an hour', rows.filter(isDue).length],
          rows[0] && ['oldest', html`<${Time} at=${rows[0].requested_at} />`],
        ].filter(Boolean)
      }
    >
      <label class="asked">
        for${' '}
        <input
          name="assignee"
          placeholder="anyone"
          aria-label="only for this person or group"
          value=${assignee}
          onChange=${(event) => setQuery({ assignee: event.target.value.trim(), of: undefined })}
        />
      </label>
    </${Head}>
    <${Problem} error=${error.value} again=${reload} />
    ${
      rows &&
      html`<div class=${chosen || query.get('of') ? 'two inbox' : ''}>
        <${Table}
          label="open approvals"
          rows=${rows}
          id=${keyOf}
          columns=${
            chosen || query.get('of') ? COLUMNS.filter((it) => !['name', 'run', 'of'].includes(it.name)) : COLUMNS
          }
          href=${link}
          empty=${html`<${Empty} title=${`Nothing waits for a decision${assignee && ` of ${assignee}`}.`}>
            A workflow asks with <code>await outlive.wait_for_approval("refund", title=...)</code>, a flow
            with <code>use: approval</code>.
          </${Empty}>`}
        />
        ${
          chosen
            ? html`<${Decide} key=${keyOf(chosen)} it=${chosen} next=${next} />`
            : query.get('of') &&
              html`<section class="panel">
                <${Empty} title="This request is not open any more.">
                  It was decided on, or its run has ended: <${RunLink} id=${(query.get('of') ?? '').split(' ')[0]} />
                </${Empty}>
              </section>`
        }
      </div>`
    }
  `;
}

/** What is asked, with its form; `next()` is called when it is decided. Also for the page of a run. */
export function Decide({ it, next }) {
  const form = useSignal(it.schema ? startOf(it.schema) : null);
  const comment = useSignal('');
  const by = useSignal(
    it.assignees.includes(me.value.name) || it.assignees.length === 0 ? me.value.name : it.assignees[0],
  );
  const error = useSignal(null);
  const mayName = me.value.name === 'local';
  const decide = async (verb) => {
    error.value = null;
    const body = {
      form: verb === 'approve' ? form.value : null,
      comment: comment.value,
      request: it.id,
      ...(mayName && { by: by.value }),
    };
    try {
      const made = await post(at`/runs/${it.run_id}/approvals/${it.name}/${verb}`, body);
      say(
        made.is_first
          ? `${made.approved ? 'Approved' : 'Rejected'}: ${it.title || it.name}`
          : `${made.by} was first: it is ${made.approved ? 'approved' : 'rejected'}.`,
        made.is_first ? 'ok' : 'fail',
      );
      next();
    } catch (refused) {
      error.value = refused;
    }
  };
  const submit = (event) => {
    event.preventDefault();
    return decide('approve');
  };
  const may = can('approvals.approve');
  useCommands(may ? [{ name: `Reject ${it.title || it.name}`, act: () => decide('reject') }] : []);
  return html`<section class="panel decide" aria-label="decision">
    <header>
      <h2>${it.name}</h2>
      <${Status} of="waiting" />
    </header>
    <form onSubmit=${submit}>
      <p class="ask">${it.title || it.name}</p>
      <dl class="facts">
        <div>
          <dt>run</dt>
          <dd>
            <${RunLink} id=${it.run_id} />
          </dd>
        </div>
        <div>
          <dt>asked</dt>
          <dd>
            <${Time} at=${it.requested_at} />
          </dd>
        </div>
        ${
          it.deadline &&
          html`<div>
            <dt>due</dt>
            <dd class=${isDue(it) ? 'fail' : ''}>
              <${Time} at=${it.deadline} />
            </dd>
          </div>`
        }
        ${
          it.escalated_at &&
          html`<div>
            <dt>escalated</dt>
            <dd>
              <${Time} at=${it.escalated_at} />
            </dd>
          </div>`
        }
        <div>
          <dt>whom</dt>
          <dd>${it.assignees.join(', ') || 'anyone'}</dd>
        </div>
      </dl>
      ${
        may
          ? html`
            ${
              it.schema &&
              html`<${SchemaForm}
                schema=${it.schema}
                value=${form.value}
                change=${(value) => {
                  form.value = value;
                }}
              />`
            }
            <${Field}
              label=${html`
                comment <i class="soft">optional</i>
              `}
            >
              <textarea
                name="comment"
                rows="2"
                onInput=${(event) => {
                  comment.value = event.target.value;
                }}
              ></textarea>
            </${Field}>
            ${
              mayName &&
              html`<${Field} label="decided by">
                <input
                  name="by"
                  required
                  value=${by.value}
                  onInput=${(event) => {
                    by.value = event.target.value;
                  }}
                />
              </${Field}>`
            }
            <${Problem} error=${error.value} />
            <div class="buttons">
              <${Act} kind="no" type="button" act=${() => decide('reject')}>
                Reject
              </${Act}>
              <button class="do">Approve</button>
            </div>
          `
          : html`<p class="soft">Your key may look, and not decide.</p>`
      }
    </form>
  </section>`;
}
