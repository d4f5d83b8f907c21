// @ts-check
// A flow or a machine as boxes and arrows. The server says where they are; this draws them, with the state of a run in
// them.
import { html, useId, useRef } from '../vendor/preact.js';
import { follow, get, useFollow, useLoaded } from '../api.js';
import { at } from '../router.js';
import { Empty, Problem } from './shown.js';
import { lasts } from './time.js';

const KINDS = {
  pending: 'off',
  running: 'run',
  waiting: 'wait',
  retrying: 'wait',
  succeeded: 'ok',
  failed: 'fail',
  undone: 'park',
  skipped: 'off',
};
const WORDS = { pending: 'not begun', succeeded: 'done' };

/** The class of a state of a step: ok, run, wait, fail, park or off. */
export const kindOfState = (state) => KINDS[state] ?? 'off';
/** A state of a step in a word or two. */
export const wordOf = (state) => WORDS[state] ?? state;

const cut = (text, width) => {
  const max = Math.floor((width - 34) / 7.6);
  return text.length > max ? `${text.slice(0, max - 1)}…` : text;
};

function beside(node) {
  if (node.state === 'retrying') return `attempt ${node.attempts + 1} to come`;
  if (node.visits > 1) return `${node.visits} times`;
  if (node.attempts > 1) return `${node.attempts} attempts`;
  return node.took ? lasts(node.took * 1000) : '';
}

/** What is written into a box: its name, its kind, and what is beside that if there is room. */
function written(node) {
  const more = beside(node);
  return [
    `${cut(node.id, node.width)}${node.is_conditional ? ' ?' : ''}`,
    cut(node.kind, node.width),
    node.kind.length * 6.2 + more.length * 6 < node.width - 26 ? more : '',
  ];
}

/** A box in words, for those who do not see it: what is written in it first, then the rest. */
function spoken(node) {
  const marks = [
    node.state && wordOf(node.state),
    node.is_start && 'first',
    !node.is_needed && 'never needed',
    node.needs.length > 0 && `after ${node.needs.join(', ')}`,
    node.note,
  ];
  return [written(node).filter(Boolean).join(' '), ...marks.filter(Boolean)].join(', ');
}

/**
 * Props: graph as the API gives it; label; selected: the id of a box; hrefOf(node): where a box leads to, by default
 * nowhere. Arrow keys go from box to box.
 */
export function Graph({ graph, label, selected, hrefOf }) {
  const own = useId();
  const box = useRef(null);
  const press = (event) => {
    const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const all = [...box.current.querySelectorAll('a')];
    const next = all[all.indexOf(document.activeElement) + by];
    if (next) {
      event.preventDefault();
      next.focus();
    }
  };
  const places = Object.fromEntries(graph.nodes.map((node, n) => [node.id, n]));
  const order = [...graph.nodes].sort((a, b) => a.y - b.y || a.x - b.x);
  const legend = [...new Set(graph.nodes.map((node) => node.state).filter(Boolean))];
  return html`<div class="graph">
    <div class="drawing" ref=${box} onKeyDown=${press} role="group" aria-label=${label}>
      <svg
        viewBox=${`0 0 ${graph.width} ${graph.height}`}
        style=${{
          width: `${graph.width}px`,
          minWidth: `${Math.min(graph.width, Math.max(graph.width * 0.6, 280))}px`,
        }}
      >
        <defs>
          ${['tip', 'tip-taken'].map(
            (name) =>
              html`<marker
                key=${name}
                id=${own + name}
                class=${name}
                markerUnits="userSpaceOnUse"
                markerWidth="8"
                markerHeight="7"
                refX="7"
                refY="3.5"
                orient="auto"
              >
                <polygon points="0 0,8 3.5,0 7" />
              </marker>`,
          )}
        </defs>
        ${graph.arrows.map(
          (arrow) =>
            html`<path
              key=${`${places[arrow.start]}-${places[arrow.end]}`}
              d=${arrow.path}
              class=${`arrow${arrow.is_guess ? ' guess' : ''}${arrow.is_taken ? ' taken' : ''}`}
              marker-end=${`url(#${own}${arrow.is_taken ? 'tip-taken' : 'tip'})`}
            />`,
        )}
        ${order.map(
          (node) =>
            html`<${Node} key=${node.id} node=${node} isSelected=${node.id === selected} href=${hrefOf?.(node)} />`,
        )}
      </svg>
    </div>
    ${
      legend.length > 0 &&
      html`<p class="states">
        ${legend.map(
          (state) =>
            html`<span key=${state} class=${`pill ${kindOfState(state)}`}>
              ${wordOf(state)}
            </span>`,
        )}
      </p>`
    }
  </div>`;
}

function Node({ node, isSelected, href }) {
  const inset = node.is_exit ? 18 : 12;
  const state = node.state ? `has-state ${kindOfState(node.state)} ${node.state}` : '';
  const marks = [
    isSelected && ' selected',
    !node.is_needed && ' unneeded',
    node.is_exit && ' exit',
    node.is_start && ' start',
  ]
    .filter(Boolean)
    .join('');
  const [name, kind, more] = written(node);
  const inside = html`
    <rect
      x=${node.x}
      y=${node.y}
      width=${node.width}
      height=${node.height}
      rx=${node.is_exit ? node.height / 2 : 7}
    />
    ${
      node.state &&
      node.state !== 'pending' &&
      html`<circle cx=${node.x + node.width - inset - 1} cy=${node.y + 16} r="4" />`
    }
    <text class="m" x=${node.x + inset} y=${node.y + 20}>
      ${name}
    </text>${' '}
    <text class="t" x=${node.x + inset} y=${node.y + 36}>
      ${kind}
    </text>${' '}
    <text class="t end" x=${node.x + node.width - inset + 3} y=${node.y + 36}>
      ${more}
    </text>
  `;
  return href
    ? html`<a
      class=${`node ${state}${marks}`}
      href=${href}
      aria-label=${spoken(node)}
      aria-current=${isSelected ? 'true' : undefined}
    >
      ${inside}
    </a>`
    : html`<g class=${`node ${state}${marks}`} role="img" aria-label=${spoken(node)}>
      ${inside}
    </g>`;
}

/**
 * The graph of a run, live: props id, selected, hrefOf(node), and `children` for a run that has none.
 * For the page of a run: <${RunGraph} id=${id} selected=${step} hrefOf=${(node) => ...} />.
 */
export function RunGraph({ id, selected, hrefOf, children }) {
  const { data, error, reload } = useRunGraph(id);
  const graph = data.value;
  if (error.value) return html`<${Problem} error=${error.value} again=${reload} />`;
  if (!graph) return null;
  if (graph.kind === 'function')
    return (
      children ??
      html`<${Empty} title="This run has no graph.">
        A function has no steps before it calls them: see the timeline. A machine has a graph once a worker has
        described it, a flow if its document is in the library.
      </${Empty}>`
    );
  return html`<${Graph}
    graph=${graph}
    label=${`${graph.kind} ${graph.name}, with where the run is`}
    selected=${selected}
    hrefOf=${hrefOf}
  />`;
}

/** The graph of a run as long as the component is shown, asked for again when the run has moved. */
export function useRunGraph(id) {
  const took = useRef(0);
  const loaded = useLoaded(
    async (signal) => {
      const began = performance.now();
      const found = await /** @type {Promise<import('outlive').GraphView>} */ (get(at`/runs/${id}/graph`, {}, signal));
      took.current = performance.now() - began;
      return found;
    },
    [id],
  );
  const { reload } = loaded;
  useFollow(
    (signal) => {
      let timer = 0;
      // A run may write a hundred events a second, and a long journal takes a while to read: its picture is asked for a
      // few times.
      const soon = () => {
        timer ||= setTimeout(
          () => {
            timer = 0;
            reload();
          },
          Math.max(150, 4 * took.current),
        );
      };
      signal.addEventListener('abort', () => clearTimeout(timer));
      follow(at`/runs/${id}/follow`, { signal, on: { journal: soon, run: soon, end: soon } });
    },
    [id],
  );
  return loaded;
}
