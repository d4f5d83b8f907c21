// @ts-check
// The command palette: every view, every command of the view that is shown, and runs by id, tag or error.
import { html, signal, useEffect, useRef, useSignal } from './vendor/preact.js';
import { get } from './api.js';
import { at, go, href } from './router.js';
import { can, ownWorkflow } from './session.js';
import { Dialog } from './parts/dialog.js';
import { Status } from './parts/shown.js';
import { VIEWS } from './views.js';

/** Whether it is open. */
export const open = signal(false);
const commands = signal([]);

/** Commands of a component, as long as it is shown: [{name, act}]. */
export function useCommands(list) {
  const names = list.map((each) => each.name).join('\n');
  useEffect(() => {
    commands.value = [...commands.peek(), ...list];
    return () => {
      commands.value = commands.peek().filter((each) => !list.includes(each));
    };
  }, [names]);
}

export function Palette() {
  const text = useSignal('');
  const runs = useSignal([]);
  const chosen = useSignal(0);
  const box = useRef(null);
  const close = () => {
    open.value = false;
  };
  useEffect(() => {
    box.current.focus();
  }, []);
  useEffect(() => {
    const wanted = text.value.trim();
    runs.value = [];
    if (wanted.length < 2) return undefined;
    const leaving = new AbortController();
    const timer = setTimeout(async () => {
      const query = wanted.includes('=') ? { tag: wanted } : { id_prefix: wanted };
      try {
        runs.value = (
          await /** @type {Promise<import('outlive').RunsPage>} */ (
            get('/runs', { ...query, workflow: ownWorkflow(), limit: 8 }, leaving.signal)
          )
        ).items;
      } catch {
        /* Nothing is found while one types. */
      }
    }, 120);
    return () => {
      clearTimeout(timer);
      leaving.abort();
    };
  }, [text.value]);
  const wanted = text.value.trim().toLowerCase();
  const views = VIEWS.filter((view) => view.name && (!view.needs || can(view.needs))).map((view) => ({
    id: `go-${view.path}`,
    name: view.name,
    beside:
      view.key &&
      html`
        <kbd>g</kbd> <kbd>${view.key}</kbd>
      `,
    act: () => go(view.path),
  }));
  const own = commands.value.map((each, n) => ({ ...each, id: `do-${n}` }));
  const found = runs.value.map((run) => ({
    id: `run-${run.id}`,
    name: html`<span class="mono">${run.id}</span>`,
    beside: html`
      ${run.workflow} <${Status} of=${run.status} />
    `,
    act: () => go(at`/runs/${run.id}`),
  }));
  const search =
    wanted.length > 1 && !wanted.includes('=')
      ? [
          {
            id: 'error',
            name: `Runs that failed with ${text.value.trim()}`,
            act: () => go('/runs', { error: text.value.trim() }),
          },
        ]
      : [];
  const list = [...[...own, ...views].filter((each) => each.name.toLowerCase().includes(wanted)), ...found, ...search];
  const at_ = Math.min(chosen.value, list.length - 1);
  const press = (event) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      chosen.value = (at_ + (event.key === 'ArrowDown' ? 1 : list.length - 1)) % Math.max(list.length, 1);
    } else if (event.key === 'Enter' && list[at_]) {
      event.preventDefault();
      close();
      list[at_].act();
    }
  };
  return html`<${Dialog} title="Find a view, a command or a run" close=${close}>
    <input
      ref=${box}
      class="palette"
      type="text"
      role="combobox"
      aria-expanded="true"
      aria-controls="palette-list"
      aria-autocomplete="list"
      aria-activedescendant=${list[at_] ? `palette-${at_}` : undefined}
      aria-label="Find a view, a command, or a run by its id, a tag (name=value) or its error"
      placeholder="A view, a command, the id of a run, tag=value, an error"
      value=${text.value}
      onInput=${(event) => {
        text.value = event.target.value;
        chosen.value = 0;
      }}
      onKeyDown=${press}
    />
    <ul id="palette-list" role="listbox" aria-label="found">
      ${list.map(
        (each, n) =>
          html`<li
            key=${each.id}
            id=${`palette-${n}`}
            role="option"
            aria-selected=${n === at_}
            onClick=${() => {
              close();
              each.act();
            }}
          >
            <span>${each.name}</span>
            <span class="soft">${each.beside}</span>
          </li>`,
      )}
    </ul>
    ${
      list.length === 0 &&
      html`<p class="soft">
        Nothing fits.${' '}
        <a href=${href('/runs')} onClick=${close}>
          Look at all runs.
        </a>
      </p>`
    }
  </${Dialog}>`;
}
