// @ts-check
// Instants and lengths of time, as people read them.
import { html, signal } from '../vendor/preact.js';

/** The time now, in milliseconds; whoever reads it is drawn again each second. */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);

/** @type {[number, string][]} */
const UNITS = [
  [31_557_600, 'y'],
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min'],
  [1, 's'],
];

/** A length of time in a few characters: 30 µs, 0.4 ms, 12 s, 3 min, 5 d. */
export function lasts(milliseconds) {
  if (milliseconds === null || milliseconds === undefined || Number.isNaN(milliseconds)) return '';
  if (milliseconds > 0 && milliseconds < 0.1) return `${Math.max(Math.round(milliseconds * 1000), 1)} µs`;
  if (milliseconds < 1000)
    return milliseconds < 10 ? `${Number(milliseconds.toFixed(1))} ms` : `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 10) return `${Number(seconds.toFixed(1))} s`;
  const at = UNITS.findIndex(([size]) => seconds >= size);
  const [size, unit] = UNITS[at];
  const whole = Math.floor(seconds / size);
  const rest = whole < 5 && at < 4 ? Math.floor((seconds % size) / UNITS[at + 1][0]) : 0;
  return `${whole} ${unit}${rest ? ` ${rest} ${UNITS[at + 1][1]}` : ''}`;
}

const SPAN = /^(-?)P(?:([\d.]+)W)?(?:([\d.]+)D)?(?:T(?:([\d.]+)H)?(?:([\d.]+)M)?(?:([\d.]+)S)?)?$/;

/** The milliseconds of a span of the API, as `P1DT30S`. */
export function span(text) {
  const [, sign, ...parts] = SPAN.exec(text) ?? [];
  return (
    [604_800_000, 86_400_000, 3_600_000, 60_000, 1000].reduce((sum, size, n) => sum + size * Number(parts[n] ?? 0), 0) *
    (sign ? -1 : 1)
  );
}

/** An instant, exactly, in the time zone of the browser. */
export function exact(instant) {
  const it = new Date(instant);
  const two = (n, width = 2) => String(n).padStart(width, '0');
  const day = `${it.getFullYear()}-${two(it.getMonth() + 1)}-${two(it.getDate())}`;
  return `${day} ${two(it.getHours())}:${two(it.getMinutes())}:${two(it.getSeconds())}.${two(it.getMilliseconds(), 3)}`;
}

/** How long ago an instant is, or when it will be. */
export function relative(instant, at = Date.now()) {
  const past = at - new Date(instant).getTime();
  if (Math.abs(past) < 1500) return 'now';
  const length = lasts(Math.max(Math.floor(Math.abs(past) / 1000), 1) * 1000);
  return past > 0 ? `${length} ago` : `in ${length}`;
}

/** An instant of the API: relative, with the exact one on hover. */
export function Time({ at, empty = '' }) {
  if (!at) return empty;
  return html`<time datetime=${at} title=${exact(at)}>
    ${relative(at, now.value)}
  </time>`;
}

/** How long it is between two instants; to now, and growing, if there is no second one. */
export function Length({ from, to }) {
  if (!from) return '';
  const end = to ? new Date(to).getTime() : now.value;
  return html`<span title=${`${exact(from)} to ${to ? exact(to) : 'now'}`}>
    ${lasts(Math.max(end - new Date(from).getTime(), 0))}
  </span>`;
}

const INSTANT = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d))/;

/** A sentence of the server: it begins with a capital letter, and instants in it are relative. */
export function Sentence({ text }) {
  if (!text) return null;
  return html`
    ${(text[0].toUpperCase() + text.slice(1))
      .split(INSTANT)
      .map((part, n) => (n % 2 ? html`<${Time} at=${part} />` : part.replace(/ at $/, ' ')))}
  `;
}
