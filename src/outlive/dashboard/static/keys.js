// @ts-check
// The keyboard: what keys do now, and the list of them for `?`.
import { signal, useLayoutEffect, useRef } from './vendor/preact.js';

/** @type {import('./vendor/preact.js').Ref<Record<string, [string, ((event: KeyboardEvent) => void)?]>>[]} */
const groups = [];
/** What keys do now, for the list: [{name, what}, ...]. */
export const listed = signal([]);
let first = '';

/**
 * Keys of a component, as long as it is shown: {j: ['next row', () => ...], 'g r': ['runs', ...]}. The component that
 * was shown last goes first, whichever was drawn last. They rest while the user types, and while a dialog is open. What
 * the browser does by itself (Enter on a link) is only listed, with null: one that is handled here would take Enter
 * away from every button of the page.
 */
export function useKeys(keys) {
  const group = useRef(keys);
  // With the drawing, and not a frame later: a key that is pressed as soon as a view is seen counts.
  useLayoutEffect(() => {
    groups.unshift(group);
    return () => {
      groups.splice(groups.indexOf(group), 1);
      list();
    };
  }, []);
  useLayoutEffect(() => {
    group.current = keys;
    list();
  });
}

function list() {
  listed.value = groups
    .toReversed()
    .flatMap((group) => Object.entries(group.current).map(([name, [what]]) => ({ name, what })));
}

addEventListener('keydown', (event) => {
  const typing = event.target instanceof Element && event.target.closest('input, textarea, select, [contenteditable]');
  const command = event.ctrlKey || event.metaKey;
  if (command && event.key.toLowerCase() === 'k') return act('mod+k', event);
  if (typing || command || event.altKey || event.defaultPrevented || document.querySelector('dialog[open]')) return;
  const name = first ? `${first} ${event.key}` : event.key;
  first = '';
  if (act(name, event)) return;
  if (groups.some((group) => Object.keys(group.current).some((each) => each.startsWith(`${event.key} `)))) {
    first = event.key;
    setTimeout(() => {
      first = '';
    }, 1000);
  }
});

function act(name, event) {
  const found = groups.map((group) => group.current[name]?.[1]).find(Boolean);
  if (!found) return false;
  event.preventDefault();
  found(event);
  return true;
}
