// @ts-check
// The draft of a flow: written with its graph and its mistakes beside it, kept, and published.
import { html, useEffect, useRef, useSignal } from '../vendor/preact.js';
import { del, get, post, useLoaded } from '../api.js';
import { at, go, here, href } from '../router.js';
import { can, say } from '../session.js';
import { ActionDialog, Field } from './dialog.js';
import { Compare, Document, Editor, Problems, rangesOf } from './document.js';
import { Graph } from './graph.js';
import { Act, Empty, Problem } from './shown.js';
import { Steps } from './steps.js';

// Line by line: the indent of a document has a meaning, and that of a module has none.
const NEW = [
  'name: hello',
  'input:',
  '  who: { type: string, default: world }',
  'steps:',
  '  greet:',
  '    use: log',
  '    must_run: true',
  '    with: { message: "Hello ${{ input.who }}" }',
  'output: "${{ input.who }}"',
  '',
].join('\n');

/** The draft of a flow, or, without a name, a new one. Props: name, info: what the API says of the flow, reload. */
export function Draft({ name, info, reload }) {
  const { data, error } = useLoaded(
    async (signal) => {
      if (!name) return { text: NEW, number: 0 };
      const number = info.draft?.number ?? 0;
      return {
        text: (
          await /** @type {Promise<import('outlive').DocumentView>} */ (
            get(at`/flows/${name}/document`, { draft: number > 0 }, signal)
          )
        ).text,
        number,
      };
    },
    [name],
  );
  if (!data.value) return html`<${Problem} error=${error.value} />`;
  return html`<${Written} key=${name} name=${name} info=${info} reload=${reload} saved=${data} />`;
}

function Written({ name, info, reload, saved }) {
  const text = useSignal(saved.value.text);
  const checked = useSignal(null);
  const problem = useSignal(null);
  const dialog = useSignal(null);
  const jump = useRef(null);
  const writes = can('flows.save_draft');
  useEffect(() => {
    const timer = setTimeout(
      async () => {
        const own = text.value;
        try {
          const found = await /** @type {Promise<import('outlive').CheckedView>} */ (
            post('/flows/check', { document: own || ' ' })
          );
          if (own === text.value) {
            checked.value = found;
            problem.value = null;
          }
        } catch (error) {
          problem.value = error;
        }
      },
      checked.value ? 300 : 0,
    );
    return () => clearTimeout(timer);
  }, [text.value]);
  const isDirty = text.value !== saved.value.text;
  const number = info?.draft?.number ?? 0;
  const isStale = number !== saved.value.number && !isDirty;
  useEffect(() => {
    if (isStale && name)
      /** @type {Promise<import('outlive').DocumentView>} */ (
        get(at`/flows/${name}/document`, { draft: number > 0 })
      ).then(
        (it) => {
          saved.value = { text: it.text, number };
          text.value = it.text;
        },
        () => {},
      );
  }, [number]);
  const save = async (reason = '') => {
    const document = text.value;
    const found = await /** @type {Promise<import('outlive').Flow>} */ (
      post('/flows/drafts', { document, reason, expected: saved.value.number })
    );
    saved.value = { text: document, number: found.draft?.number ?? 0 };
    await reload?.();
    return found;
  };
  const keep = async () => {
    const found = await save();
    say(`The draft of ${found.name} is kept.`);
    if (found.name !== name) go(at`/flows/${found.name}`, { tab: 'draft' });
  };
  const discard = async () => {
    await del(at`/flows/${name}/draft`);
    say('The draft is gone.');
    await reload();
    go(at`/flows/${name}`, { tab: info.current ? 'document' : 'draft' });
  };
  const publish = () => {
    dialog.value = html`<${PublishDialog}
      name=${checked.value.name}
      close=${() => {
        dialog.value = null;
        reload?.();
      }}
      before=${async () => {
        if (isDirty || !saved.value.number) await save();
      }}
      info=${info}
      text=${text.value}
    />`;
  };
  const graph = checked.value?.graph;
  const step = here.value.query.get('step');
  const ranges = graph ? rangesOf(graph, text.value) : {};
  useEffect(() => {
    if (ranges[step] && jump.current) jump.current(ranges[step][0]);
  }, [step, Boolean(graph)]);
  return html`
    <${Problem} error=${problem.value} />
    <div class="beside written">
      <section class="panel">
        <header>
          <h2>Draft</h2>
          <span class="soft">
            ${
              isDirty
                ? 'not kept yet'
                : number
                  ? `draft ${number}, of revision ${info.draft.base}`
                  : name
                    ? 'as published'
                    : 'new'
            }
          </span>
          ${
            writes &&
            html`<div class="filters">
              ${
                info?.draft &&
                can('flows.discard_draft') &&
                html`<${Act} kind="quiet no" act=${discard}>
                  Discard
                </${Act}>`
              }
              <${Act} act=${keep} disabled=${!isDirty}>
                Save draft
              </${Act}>
              ${
                can('flows.publish') &&
                html`<button
                  class="do"
                  disabled=${!checked.value?.is_fine || (name && !isDirty && !number)}
                  onClick=${publish}
                >
                  Publish…
                </button>`
              }
            </div>`
          }
        </header>
        <${Problems} checked=${checked.value} goTo=${(...place) => jump.current?.(...place)} />
        ${
          writes
            ? html`<${Editor}
              text=${text.value}
              change=${(next) => {
                text.value = next;
              }}
              problems=${checked.value?.problems}
              jump=${jump}
            />`
            : html`<${Document} text=${text.value} problems=${checked.value?.problems} range=${ranges[step]} />`
        }
      </section>
      <section class="panel">
        <header>
          <h2>Graph</h2>
          <span class="soft">as it is written</span>
        </header>
        ${
          graph
            ? html`<${Graph}
              graph=${graph}
              label="graph of the draft"
              selected=${step}
              hrefOf=${(node) => href(name ? at`/flows/${name}` : '/new-flow', { tab: name && 'draft', step: node.id })}
            />`
            : html`<${Empty} title="It cannot be drawn yet.">The list of mistakes says why.</${Empty}>`
        }
      </section>
    </div>
    <${Steps} />
    ${dialog.value}
  `;
}

function PublishDialog({ name, close, before, info, text }) {
  const reason = useSignal('');
  const act = async () => {
    await before();
    const found = await /** @type {Promise<import('outlive').Flow>} */ (
      post(at`/flows/${name}/publish`, { reason: reason.value })
    );
    go(at`/flows/${name}`, { tab: 'document' });
    return found;
  };
  const published = useLoaded(
    async (signal) =>
      info?.current && info.name === name
        ? /** @type {Promise<import('outlive').DocumentView>} */ (get(at`/flows/${name}/document`, {}, signal))
        : null,
    [name],
  ).data.value;
  return html`<${ActionDialog}
    wide
    title=${`Publish ${name}`}
    verb="Publish"
    act=${act}
    close=${close}
    done=${(it) => `Revision ${it.current.number} of ${name} is published.`}
  >
    <p>Runs that are started from now on get this document. Runs under way go on with their own.</p>
    ${
      published &&
      html`<${Compare}
        left=${{ label: `revision ${published.revision}`, text: published.text }}
        right=${{ label: 'draft', text }}
      />`
    }
    <${Field} label="why">
      <input
        name="reason"
        value=${reason.value}
        onInput=${(event) => {
          reason.value = event.target.value;
        }}
      />
    </${Field}>
  </${ActionDialog}>`;
}
