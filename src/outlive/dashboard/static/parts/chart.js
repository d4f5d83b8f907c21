// @ts-check
// Drawings of figures over time, as SVG of our own.
import { html, useEffect, useRef, useSignal } from '../vendor/preact.js';
import { figure } from './shown.js';

/** The width of an element in pixels, as a signal, and the reference to give it. */
/** @returns {[import('../vendor/preact.js').Ref<any>, import('../vendor/preact.js').Signal<number>]} */
export function useWidth(start = 800) {
  const own = useRef(null);
  const width = useSignal(start);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => {
      width.value = Math.max(Math.floor(entry.contentRect.width), 120);
    });
    watch.observe(own.current);
    return () => watch.disconnect();
  }, []);
  return [own, width];
}

/** A round number that is not below this one, for the top of an axis. */
export function roundUp(number) {
  const size = 10 ** Math.floor(Math.log10(Math.max(number, 1)));
  return [1, 2, 5, 10].map((each) => each * size).find((each) => each >= number) ?? size;
}

/**
 * Stacked bars. Props: bars [{label, title, parts: [[class, number], ...]}], height, summary (for those who do not see
 * it), click(index), every (how many bars have one label). What a click does, a button under it does for the keyboard:
 * arrows go from bar to bar.
 */
export function Bars({ bars, height = 190, summary, click, every = 10 }) {
  const [own, width] = useWidth();
  const [left, bottom, top] = [36, 20, 8];
  const most = roundUp(Math.max(1, ...bars.map((bar) => bar.parts.reduce((sum, [, n]) => sum + n, 0))));
  const step = (width.value - left) / bars.length;
  const scale = (height - bottom - top) / most;
  const press = (event) => {
    const index = Math.floor((event.clientX - event.currentTarget.getBoundingClientRect().left - left) / step);
    if (bars[index]) click(index);
  };
  const chosen = useSignal(bars.length - 1);
  const move = (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    chosen.value = Math.min(Math.max(chosen.value + by, 0), bars.length - 1);
  };
  const at = Math.min(chosen.value, bars.length - 1);
  return html`<div ref=${own} class="chart">
    <svg
      width=${width.value}
      height=${height}
      role="img"
      aria-label=${summary}
      onClick=${click && press}
      class=${click ? 'click' : ''}
    >
      ${[0, most / 2, most].filter(Number.isInteger).map(
        (n) =>
          html`<g key=${n}>
            <line
              class="axis"
              x1=${left}
              x2=${width.value}
              y1=${height - bottom - n * scale}
              y2=${height - bottom - n * scale}
            />
            <text class="t" x=${left - 8} y=${height - bottom - n * scale + 4} text-anchor="end">
              ${figure(n)}
            </text>
          </g>`,
      )}
      ${bars.map((bar, index) => {
        let y = height - bottom;
        const x = left + index * step;
        return html`<g key=${index}>
          <title>${bar.title}</title>
          <rect x=${x} y=${top} width=${step} height=${height - bottom - top} fill="transparent" />
          ${bar.parts.map(([kind, n]) => {
            if (!n) return null;
            const tall = Math.max(n * scale, 1);
            y -= tall;
            return html`<rect
              key=${kind}
              class=${kind}
              x=${x + step * 0.12}
              y=${y}
              width=${Math.max(step * 0.76, 1)}
              height=${tall}
              rx=${Math.min(step * 0.2, 2)}
            />`;
          })}
          ${
            index % every === 0 &&
            html`<text class="t" x=${x} y=${height - 4}>
              ${bar.label}
            </text>`
          }
        </g>`;
      })}
    </svg>
    ${
      click &&
      html`<button class="by-keys" onKeyDown=${move} onClick=${() => click(at)}>
        ${bars[at].title}
        <span> (← →)</span>
      </button>`
    }
  </div>`;
}
