// @ts-check
// What can be done to a run: one dialog for each verb.
import { html, useEffect, useSignal } from '../../vendor/preact.js';
import { del, post } from '../../api.js';
import { at, go } from '../../router.js';
import { say } from '../../session.js';
import { ActionDialog, Field } from '../../parts/dialog.js';
import { JsonInput, SchemaForm, startOf } from '../../parts/form.js';
import { Json } from '../../parts/json.js';
import { namedInput } from './standing.js';

/** The dialog of an action. Props: wanted: {name, of, row, approval}, followed, close. */
export function Action({ wanted, followed, close }) {
  const Show = DIALOGS[wanted.name];
  return Show ? html`<${Show} ...${wanted} run=${followed.run.value} followed=${followed} close=${close} />` : null;
}

function Reason({ value }) {
  return html`<${Field}
    label=${html`
      Reason <i class="soft">optional</i>
    `}
    hint="It stands in the history, for those who read it later."
  >
    <input
      name="reason"
      maxlength="1000"
      value=${value.value}
      onInput=${(event) => {
        value.value = event.target.value;
      }}
    />
  </${Field}>`;
}

function reasoned(verb, { title, label, kind = 'do', done, words }) {
  return function Reasoned({ run, followed, close }) {
    const reason = useSignal('');
    return html`<${ActionDialog}
      title=${title(run)}
      verb=${label}
      kind=${kind}
      close=${close}
      done=${done}
      act=${async () => {
        await post(at`/runs/${run.id}/${verb}`, { reason: reason.value });
        followed.ask();
        followed.again();
      }}
    >
      <p>${words}</p>
      <${Reason} value=${reason} />
    </${ActionDialog}>`;
  };
}

function SendSignal({ run, of = '', followed, close }) {
  const waits = run.waits.filter((wait) => wait.kind === 'signal');
  const name = useSignal(of || waits[0]?.name || '');
  const payload = useSignal(undefined);
  return html`<${ActionDialog}
    title="Send a signal"
    verb="Send"
    close=${close}
    disabled=${!name.value}
    done=${`Signal ${name.value} is durable; the run gets it once.`}
    act=${async () => {
      await post(
        at`/runs/${run.id}/signals/${name.value}`,
        { payload: payload.value ?? null },
        { 'idempotency-key': crypto.randomUUID() },
      );
      followed.ask();
    }}
  >
    <${Field}
      label="Name"
      hint=${
        waits.length
          ? `It waits for ${waits.map((wait) => wait.name).join(', ')}.`
          : 'It waits for none now: the signal is kept until it asks for it.'
      }
    >
      <input
        name="name"
        required
        value=${name.value}
        onInput=${(event) => {
          name.value = event.target.value;
        }}
      />
    </${Field}>
    <${Field}
      label=${html`
        Payload <i class="soft">JSON, optional</i>
      `}
    >
      <${JsonInput}
        name="payload"
        value=${payload.peek()}
        change=${(next) => {
          payload.value = next;
        }}
      />
    </${Field}>
  </${ActionDialog}>`;
}

/** Tags and the timeout at any time; the queue and the start of a run that no worker has begun. */
function Change({ run, followed, close }) {
  const isNew = run.status === 'pending' && run.number === 0;
  const tags = useSignal(Object.entries(run.tags).map(([name, value]) => `${name}=${value}`));
  const given = { timeout: useSignal(''), queue: useSignal(run.queue), delay: useSignal('') };
  const reason = useSignal('');
  const wanted = () => {
    const now = Object.fromEntries(
      tags.value
        .filter((it) => it.includes('='))
        .map((it) => [it.slice(0, it.indexOf('=')), it.slice(it.indexOf('=') + 1)]),
    );
    const gone = Object.fromEntries(
      Object.keys(run.tags)
        .filter((name) => !(name in now))
        .map((name) => [name, null]),
    );
    const others = Object.entries(now).filter(([name, value]) => run.tags[name] !== value);
    const body = { reason: reason.value };
    if (others.length || Object.keys(gone).length) body.tags = { ...gone, ...Object.fromEntries(others) };
    if (given.timeout.value) body.timeout = given.timeout.value === 'none' ? null : given.timeout.value;
    if (isNew && given.queue.value !== run.queue) body.queue = given.queue.value || 'default';
    if (isNew && given.delay.value) body.delay = given.delay.value;
    return body;
  };
  const field = (name, label, hint) => html`<${Field} label=${label} hint=${hint}>
    <input
      name=${name}
      value=${given[name].value}
      onInput=${(event) => {
        given[name].value = event.target.value;
      }}
    />
  </${Field}>`;
  return html`<${ActionDialog}
    title="Change the run"
    verb="Change"
    close=${close}
    disabled=${Object.keys(wanted()).length < 2}
    done="It is changed."
    act=${async () => {
      await post(at`/runs/${run.id}/change`, wanted(), { 'idempotency-key': crypto.randomUUID() });
      followed.ask();
      followed.again();
    }}
  >
    <${Field} label="Tags" hint="One on each line: name=value. The workflow may change them again.">
      <textarea
        name="tags"
        rows="3"
        onInput=${(event) => {
          tags.value = event.target.value.split('\n').map((it) => it.trim());
        }}
      >
        ${tags.peek().join('\n')}
      </textarea>
    </${Field}>
    ${
      run.number === 0 &&
      field('timeout', 'Timeout', 'From now on, or from its beginning: 30m, 2h; “none” for no limit; empty as it is.')
    }
    ${isNew && field('queue', 'Queue', 'Only as long as no worker has begun it.')}
    ${isNew && field('delay', 'Begins in', 'A span from now, as 10m; empty as it is.')}
    <${Reason} value=${reason} />
  </${ActionDialog}>`;
}

function Ask({ run, of = '', close }) {
  const name = useSignal(of || run.waits.find((wait) => wait.kind === 'ask')?.name || '');
  const body = useSignal(undefined);
  const answer = useSignal(null);
  const act = async () => {
    answer.value = await /** @type {Promise<import('outlive').AnswerView>} */ (
      post(
        at`/runs/${run.id}/asks/${name.value}`,
        { body: body.value ?? null, wait: 20 },
        { 'idempotency-key': crypto.randomUUID() },
      )
    );
  };
  const given = answer.value;
  return html`<${ActionDialog} title="Ask the run" verb="Ask" close=${close} disabled=${!name.value} act=${act} stays>
    <${Field} label="Name">
      <input
        name="name"
        required
        value=${name.value}
        onInput=${(event) => {
          name.value = event.target.value;
        }}
      />
    </${Field}>
    <${Field}
      label=${html`
        Body <i class="soft">JSON, optional</i>
      `}
    >
      <${JsonInput}
        name="body"
        value=${body.peek()}
        change=${(next) => {
          body.value = next;
        }}
      />
    </${Field}>
    ${
      given &&
      html`<section class="payload" role="status">
        <h3>${given.error ? 'refused' : 'answer' in given ? 'answer' : 'not answered yet'}</h3>
        <${Json} value=${given.error ?? given.answer ?? given.why} label="answer" />
      </section>`
    }
  </${ActionDialog}>`;
}

/** The form of a decision. */
function decide(verb) {
  return function Decide({ run, approval, followed, close }) {
    const wanted = approval ?? followed?.approvals.value.find((each) => each.status === 'pending');
    const form = useSignal(wanted?.schema ? startOf(wanted.schema) : undefined);
    const comment = useSignal('');
    if (!wanted) return null;
    const act = async () => {
      const body = { comment: comment.value, request: wanted.id };
      if (wanted.schema && (verb === 'approve' || form.value !== undefined)) body.form = form.value ?? null;
      if (verb === 'reject') delete body.form;
      const made = await post(at`/runs/${wanted.run_id}/approvals/${wanted.name}/${verb}`, body);
      followed?.ask();
      if (!made.is_first) say(`${made.by} was first, and ${made.approved ? 'approved' : 'rejected'} it.`, 'fail');
    };
    return html`<${ActionDialog}
      title=${`${verb === 'approve' ? 'Approve' : 'Reject'} ${wanted.name}`}
      verb=${verb === 'approve' ? 'Approve' : 'Reject'}
      kind=${verb === 'approve' ? 'do' : 'no'}
      close=${close}
      done="The decision is durable."
      act=${act}
    >
      ${wanted.title && html`<p>${wanted.title}</p>`}
      ${
        verb === 'approve' &&
        wanted.schema &&
        html`<${SchemaForm}
          schema=${wanted.schema}
          value=${form.value}
          change=${(next) => {
            form.value = next;
          }}
        />`
      }
      <${Field}
        label=${html`
          Comment <i class="soft">optional</i>
        `}
      >
        <input
          name="comment"
          maxlength="1000"
          value=${comment.value}
          onInput=${(event) => {
            comment.value = event.target.value;
          }}
        />
      </${Field}>
    </${ActionDialog}>`;
  };
}

function Resume({ run, followed, close }) {
  return html`<${ActionDialog}
    title="Resume"
    verb="Resume"
    close=${close}
    done="It goes on as soon as a worker has room."
    act=${async () => {
      await post(at`/runs/${run.id}/resume`);
      followed.ask();
    }}
  >
    <p>
      The run goes on from where it stopped. If what stopped it is still there, it is parked again with the
      reason.
    </p>
  </${ActionDialog}>`;
}

function ResumeWorkflow({ run, followed, close }) {
  return html`<${ActionDialog}
    title="Resume the workflow"
    verb="Resume"
    close=${close}
    done="Its runs go on."
    act=${async () => {
      await post(at`/workflows/${run.workflow}/resume`);
      followed.ask();
    }}
  >
    <p>
      All runs of <code>${run.workflow}</code> go on.
    </p>
  </${ActionDialog}>`;
}

function Skip({ run, row, followed, close }) {
  const call = useSignal(row?.kind === 'step' && row.open ? row.label : '');
  const result = useSignal(undefined);
  return html`<${ActionDialog}
    title="Skip a step"
    verb="Skip"
    close=${close}
    done="The run goes on without calling the step."
    act=${async () => {
      const body = {};
      if (call.value) body.call = call.value;
      if (result.value !== undefined) body.result = result.value;
      await post(at`/runs/${run.id}/skip`, body);
      followed.ask();
    }}
  >
    <p>
      The run goes on as if the step had returned what you give here. Without a result the workflow gets the
      error <code>StepSkippedError</code>.
    </p>
    <${Field}
      label=${html`
        Step <i class="soft">optional</i>
      `}
      hint="May be left out if only one is in flight."
    >
      <input
        class="mono"
        name="call"
        value=${call.value}
        onInput=${(event) => {
          call.value = event.target.value;
        }}
      />
    </${Field}>
    <${Field}
      label=${html`
        Result <i class="soft">JSON, optional</i>
      `}
    >
      <${JsonInput}
        name="result"
        change=${(next) => {
          result.value = next;
        }}
      />
    </${Field}>
  </${ActionDialog}>`;
}

const hides = (value) => JSON.stringify(value ?? null).includes('[redacted]');

/** A fork: from a step on, with another result of it, or with other arguments. */
function Fork({ run, row, followed, close }) {
  const steps = [...followed.timeline.byKey.values()]
    .filter((each) => each.kind === 'step' && each.number === 0 && !each.open)
    .slice(-500);
  const call = useSignal(row?.kind === 'step' ? row.label : '');
  const mode = useSignal(row?.kind === 'step' ? 'again' : 'all');
  const value = useSignal(undefined);
  const input = useSignal(undefined);
  const reason = useSignal('');
  const known = useSignal(undefined);
  const created = followed.events.find((event) => event.type === 'RunCreated' && event.run_id === run.id);
  const step = steps.findLast((each) => each.label === call.value);
  useEffect(() => {
    let left = false;
    const load = async () => {
      const seq = step?.seqs.findLast(
        (each) => followed.events.find((event) => event.seq === each)?.type === 'StepSucceeded',
      );
      const whole =
        mode.value === 'set' && seq !== undefined
          ? await followed.payload(seq, 'result')
          : mode.value === 'input' && created
            ? namedInput(await followed.payload(created.seq, 'input'), followed.schema.peek()?.arguments)
            : undefined;
      if (!left) known.value = { of: `${mode.value} ${call.value}`, whole };
    };
    known.value = undefined;
    load().catch(() => {
      if (!left) known.value = { of: `${mode.value} ${call.value}`, whole: undefined };
    });
    return () => {
      left = true;
    };
  }, [mode.value, call.value]);
  const act = async () => {
    const body = { reason: reason.value };
    if (mode.value === 'again' && call.value) body.at = call.value;
    if (mode.value === 'set')
      body.set = { [call.value]: value.value === undefined ? (known.value?.whole ?? null) : value.value };
    if (mode.value === 'input') body.input = input.value ?? known.value?.whole;
    const made = await /** @type {Promise<import('outlive').Started>} */ (
      post(at`/runs/${run.id}/fork`, body, { 'idempotency-key': crypto.randomUUID() })
    );
    go(at`/runs/${made.id}`);
  };
  const pick = (of, label, hint) =>
    html`<label class="pick">
      <input
        type="radio"
        name="mode"
        checked=${mode.value === of}
        onChange=${() => {
          mode.value = of;
          value.value = undefined;
          input.value = undefined;
        }}
      />
      <span>
        ${label}
        <small>${hint}</small>
      </span>
    </label>`;
  const editor =
    known.value !== undefined &&
    html`<${Field}
      key=${known.value.of}
      label=${mode.value === 'set' ? 'Result' : 'Arguments'}
      hint=${
        hides(known.value.whole)
          ? 'Parts of it are hidden from you. Write them again: a hidden value cannot be sent.'
          : 'What it was; change what you like.'
      }
    >
      <${JsonInput}
        name="value"
        needed
        rows="7"
        value=${known.value.whole}
        change=${(next) => {
          (mode.value === 'set' ? value : input).value = next;
        }}
      />
    </${Field}>`;
  return html`<${ActionDialog}
    title="Fork"
    verb="Fork"
    close=${close}
    act=${act}
    done="This is the new run."
    disabled=${mode.value !== 'all' && mode.value !== 'input' && !call.value}
  >
    <p>
      A new run begins with the history of this one. This one stays as it is, and steps that are copied are not
      called again.
    </p>
    <fieldset class="picks">
      <legend>Begin</legend>
      ${pick('all', 'with all of its history', 'It goes on where this one is, or ended.')}
      ${steps.length > 0 && pick('again', 'at a step, which is called again', 'Nothing from this step on is copied.')}
      ${steps.length > 0 && pick('set', 'with another result of a step', 'What depends on it is done again.')}
      ${
        created &&
        pick('input', 'with other arguments', 'Steps that are asked for with other arguments are called again.')
      }
    </fieldset>
    ${
      (mode.value === 'again' || mode.value === 'set') &&
      html`<${Field} label="Step">
        <select
          name="step"
          required
          value=${call.value}
          onChange=${(event) => {
            call.value = event.target.value;
            value.value = undefined;
          }}
        >
          <option value=""></option>
          ${steps.map(
            (each) =>
              html`<option key=${each.key} value=${each.label}>
                ${each.label}
              </option>`,
          )}
        </select>
      </${Field}>`
    }
    ${((mode.value === 'set' && call.value) || mode.value === 'input') && editor}
    <${Reason} value=${reason} />
  </${ActionDialog}>`;
}

function Delete({ run, close }) {
  return html`<${ActionDialog}
    title="Delete for good"
    verb="Delete"
    kind="no"
    close=${close}
    done="Deleted."
    act=${async () => {
      await del(at`/runs/${run.id}`);
      go('/runs');
    }}
  >
    <p>
      The run <code>${run.id}</code>, its children and its history are deleted. There is no way back.
    </p>
  </${ActionDialog}>`;
}

const DIALOGS = {
  signal: SendSignal,
  ask: Ask,
  approve: decide('approve'),
  reject: decide('reject'),
  resume: Resume,
  resume_workflow: ResumeWorkflow,
  skip_step: Skip,
  change: Change,
  fork: Fork,
  delete_run: Delete,
  cancel: reasoned('cancel', {
    title: () => 'Cancel the run',
    label: 'Cancel the run',
    kind: 'no',
    done: 'It was asked to stop.',
    words: 'It is asked to stop, with its steps and children, wherever they run. Its code may clean up first.',
  }),
  retry: reasoned('retry', {
    title: () => 'Retry',
    label: 'Retry',
    done: 'It goes on at what failed.',
    words: 'It goes on at what failed. Steps that succeeded are not called again.',
  }),
  pause: reasoned('pause', {
    title: () => 'Pause',
    label: 'Pause',
    done: 'It begins nothing more.',
    words: 'Steps that run end, and their results are kept; nothing more is begun until a person resumes it.',
  }),
};
