// @ts-check
// The dashboard: asks who one is, then shows the view of the route inside the shell.
import {
  html,
  render,
  signal,
  useEffect,
  useErrorBoundary,
  useLayoutEffect,
  useRef,
  useSignal,
} from './vendor/preact.js';
import { get } from './api.js';
import { go, here, href, match } from './router.js';
import { can, key, me, needsKey, ownWorkflow, said, say, theme, useKey, useTheme } from './session.js';
import { listed, useKeys } from './keys.js';
import { open as paletteOpen, Palette } from './palette.js';
import { Dialog } from './parts/dialog.js';
import { Empty, Head, Problem } from './parts/shown.js';
import { VIEWS } from './views.js';

/** What each view imports, as the server found it. */
const IMPORTS = JSON.parse(document.querySelector('#imports')?.textContent ?? '{}');
const helpOpen = signal(false);
const problem = signal(null);
/** How many approvals wait for a decision; beside the name of that view. */
const due = signal(0);

/**
 * @param {string} selector
 * @param {FocusOptions} [how]
 */
function focusOn(selector, how) {
  /** @type {HTMLElement | null} */ (document.querySelector(selector))?.focus(how);
}

async function enter() {
  try {
    me.value = await /** @type {Promise<import('outlive').MeView>} */ (get('/me'));
    needsKey.value = false;
    problem.value = null;
  } catch (error) {
    if (error.status !== 401) {
      problem.value = error;
      setTimeout(enter, 3000);
    }
  }
}

async function countDue() {
  if (document.hidden || !me.value || !can('approvals.list')) return;
  try {
    due.value = (
      await /** @type {Promise<import('outlive').ApprovalsPage>} */ (
        get('/approvals', { limit: 100, workflow: ownWorkflow() })
      )
    ).items.length;
  } catch {
    /* The next look may do better. */
  }
}

/** The module of a view; all that it imports is asked for at once, and not when the module that wants it is there. */
function load(view) {
  for (const path of IMPORTS[view.module] ?? []) {
    document.head.append(
      Object.assign(document.createElement('link'), {
        rel: 'modulepreload',
        href: new URL(path, import.meta.url).href,
      }),
    );
  }
  delete IMPORTS[view.module];
  return import(view.module);
}

function beginEarly() {
  const [view, names] = viewOf(here.value.path);
  if (!view) return;
  load(view);
  view.early?.(names);
}

const viewOf = (path) => VIEWS.map((each) => [each, match(each.path, path)]).find(([, fits]) => fits) ?? [];

function App() {
  if (needsKey.value) return html`<${SignIn} />`;
  if (problem.value)
    return html`<${Shell}>
      <${Problem} error=${problem.value} again=${enter} />
    </${Shell}>`;
  if (!me.value) return html`<${Shell} />`;
  return html`<${Shell}>
    <${View} />
  </${Shell}>`;
}

function View() {
  const { path } = here.value;
  const [view, names] = viewOf(path);
  const loaded = useSignal({});
  const [failure, again] = useErrorBoundary();
  const first = useRef(true);
  // At once, and not after the next frame, as all that is asked for.
  useLayoutEffect(() => {
    // A key for some workflows may not see figures of the whole store.
    if (view?.path === '/' && !can(view.needs)) {
      go('/runs');
      return undefined;
    }
    if (!view) return undefined;
    // A module that comes late must not take the place of the view that the user has gone to meanwhile.
    let isLeft = false;
    load(view).then(
      (module) => {
        if (!isLeft) loaded.value = { path: view.path, Show: module.default };
      },
      () => say('This part of the dashboard could not be loaded. Reload the page.', 'fail'),
    );
    document.title = `${[...Object.values(names ?? {}), view.name].find(Boolean) ?? 'Outlive'} · outlive`;
    again();
    return () => {
      isLeft = true;
    };
  }, [view, path]);
  useEffect(() => {
    // A screen reader and the keyboard begin at the title of a view that was gone to.
    if (!first.current) {
      scrollTo(0, 0);
      focusOn('main h1', { preventScroll: true });
    }
    first.current = false;
  }, [path, loaded.value.path]);
  if (!view)
    return html`<${Empty} title="There is no such page.">
      <a href="#/">Go to the overview</a>
    </${Empty}>`;
  if (failure)
    return html`<${Problem}
      error=${{
        message: `this view has failed: ${failure.message}`,
        next: 'Reload the page; if it stays, please report it.',
      }}
      again=${again}
    />`;
  const { Show, path: shown } = loaded.value;
  return shown === view.path ? html`<${Show} key=${path} ...${names} />` : null;
}

function Shell({ children }) {
  const { path } = here.value;
  const views = VIEWS.filter((view) => view.name && (!view.needs || can(view.needs)));
  const rest = views.filter((view) => view.more);
  const [menu, more] = [useSignal(false), useSignal(false)];
  useEffect(() => {
    menu.value = false;
    more.value = false;
  }, [path]);
  useKeys({
    '?': [
      'list the keys',
      () => {
        helpOpen.value = true;
      },
    ],
    '/': [
      'find',
      () => {
        paletteOpen.value = true;
      },
    ],
    'mod+k': [
      'find',
      () => {
        paletteOpen.value = !paletteOpen.value;
      },
    ],
    ...Object.fromEntries(
      views
        .filter((view) => view.key)
        .map((view) => [`g ${view.key}`, [view.name?.toLowerCase(), () => go(view.path)]]),
    ),
  });
  const isHere = (view) => path === view.path || (view.path !== '/' && path.startsWith(`${view.path}/`));
  return html`
    <a
      class="skip"
      href="#main"
      onClick=${(event) => {
        event.preventDefault();
        focusOn('main h1, main');
      }}
    >
      Skip to the content
    </a>
    <header class="top">
      <a class="logo" href="#/">
        <${Mark} />
        outlive
      </a>
      <button
        class="menu"
        aria-expanded=${menu.value}
        aria-controls="nav"
        onClick=${() => {
          menu.value = !menu.value;
        }}
      >
        ${views.find(isHere)?.name ?? 'Menu'}
      </button>
      <nav id="nav" aria-label="views" class=${menu.value ? 'open' : ''}>
        ${views
          .filter((view) => !view.more)
          .map((view) => html`<${ViewLink} key=${view.path} view=${view} isHere=${isHere(view)} />`)}
        ${
          rest.length > 0 &&
          html`<span class="more">
            <button
              class="quiet"
              aria-expanded=${more.value}
              aria-controls="more"
              aria-current=${rest.some(isHere) ? 'true' : undefined}
              onClick=${() => {
                more.value = !more.value;
              }}
            >
              ${rest.find(isHere)?.name ?? 'More'}
            </button>
            <span id="more" class=${more.value ? 'open' : ''}>
              ${rest.map((view) => html`<${ViewLink} key=${view.path} view=${view} isHere=${isHere(view)} />`)}
            </span>
          </span>`
        }
      </nav>
      <button
        class="find"
        aria-label="Find a run, tag, error (/)"
        onClick=${() => {
          paletteOpen.value = true;
        }}
      >
        <span>Find a run, tag, error</span>
        <kbd>/</kbd>
      </button>
      ${
        (menu.value || more.value) &&
        html`<${OpenMenu}
          close=${() => {
            menu.value = false;
            more.value = false;
          }}
        />`
      }
      <${Theme} />
      ${
        key.value &&
        html`<button
          class="quiet"
          title=${`${me.value?.name}: ${me.value?.scopes.join(', ')}`}
          onClick=${() => {
            useKey('');
            me.value = null;
            enter();
          }}
        >
          Sign out
        </button>`
      }
    </header>
    <main id="main" tabindex="-1">
      ${children}
    </main>
    <div class="said" role="status" aria-live="polite">
      ${said.value.map(
        (each) =>
          html`<p key=${each.id} class=${each.kind}>
            ${each.text}
          </p>`,
      )}
    </div>
    ${paletteOpen.value && html`<${Palette} />`}
    ${helpOpen.value && html`<${Help} />`}
  `;
}

/** As long as a menu is open, Escape is for it and not for the view. */
function OpenMenu({ close }) {
  useKeys({ Escape: ['close the menu', close] });
  return null;
}

const ViewLink = ({ view, isHere }) =>
  html`<a href=${href(view.path)} aria-current=${isHere ? 'page' : undefined}>
    ${view.name}
    ${
      view.path === '/approvals' &&
      due.value > 0 &&
      html`<span class="badge">${due.value >= 100 ? '99+' : due.value}</span>`
    }
  </a>`;

const Mark = () =>
  html`<svg
    width="18"
    height="18"
    viewBox="0 0 24 24"
    aria-hidden="true"
    fill="none"
    stroke="var(--accent)"
    stroke-width="2.4"
    stroke-linecap="round"
    stroke-linejoin="round"
  >
    <path d="M2 12h4.5l2.5-7 5 14 2.8-7H22" />
  </svg>`;

const NEXT = { system: 'light', light: 'dark', dark: 'system' };

function Theme() {
  const shown = { system: 'Auto', light: 'Light', dark: 'Dark' };
  return html`<button
    class="quiet"
    title="light, dark, or as the system"
    aria-label=${`${shown[theme.value]} theme, switch to ${shown[NEXT[theme.value]]}`}
    onClick=${() => useTheme(NEXT[theme.value])}
  >
    ${shown[theme.value]}
  </button>`;
}

function Help() {
  const keys = [...new Map(listed.value.map((each) => [each.name, each.what]))].sort();
  return html`<${Dialog}
    title="Keys"
    close=${() => {
      helpOpen.value = false;
    }}
  >
    <dl class="keys">
      ${keys.map(
        ([name, what]) =>
          html`<div key=${name}>
            <dt>
              ${name.split(/[ +]/).map(
                (each) =>
                  html`
                    <kbd>${each === 'mod' ? 'Ctrl' : each}</kbd>${' '}
                  `,
              )}
            </dt>
            <dd>${what}</dd>
          </div>`,
      )}
    </dl>
  </${Dialog}>`;
}

function SignIn() {
  const text = useSignal('');
  const error = useSignal('');
  const submit = async (event) => {
    event.preventDefault();
    useKey(text.value.trim());
    error.value = '';
    try {
      me.value = await /** @type {Promise<import('outlive').MeView>} */ (get('/me'));
      needsKey.value = false;
    } catch (refused) {
      useKey('');
      error.value =
        refused.status === 401
          ? 'The server does not know this key. Look for a typo; it may also have expired or been revoked.'
          : `${refused.message}. ${refused.next}`;
    }
  };
  return html`<main class="sign-in">
    <form class="panel" onSubmit=${submit}>
      <${Head} title="Sign in" />
      <p>
        This server asks for an API key. An administrator makes one with <code>outlive keys create</code>.
      </p>
      <label class="field">
        <span>API key</span>
        <input
          type="password"
          name="key"
          autocomplete="current-password"
          required
          value=${text.value}
          onInput=${(event) => {
            text.value = event.target.value;
          }}
        />
      </label>
      ${
        error.value &&
        html`<p class="refused" role="alert">
          ${error.value}
        </p>`
      }
      <div class="buttons">
        <button class="do">Sign in</button>
      </div>
      <p class="soft">The key stays in this tab and is forgotten when it is closed.</p>
    </form>
  </main>`;
}

const place = /** @type {Element} */ (document.querySelector('#app'));
place.replaceChildren();
render(html`<${App} />`, place);
// The modules of the first view, and what it asks for first, are loaded while the server says who one is.
enter().then(countDue);
beginEarly();
setInterval(countDue, 10_000);
addEventListener('visibilitychange', countDue);
