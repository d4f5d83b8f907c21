// The keyboard: what keys do now, and the list of them for `?`.
import { signal, useEffect } from './vendor/preact.js';

const groups = [];
/** What keys do now, for the list: [[keys, what], ...]. */
export const listed = signal([]);
let first = '';

/**
 * Keys of a component, as long as it is shown: {j: ['next row', () => ...], 'g r': ['runs', ...]}. The newest component
 * goes first. They rest while the user types, and while a dialog is open. What the browser does by itself (Enter on a link) is only
 * listed, with null: one that is handled here would take Enter away from every button of the page.
 */
export function useKeys(keys) {
  const own = Object.entries(keys);
  useEffect(() => {
    const group = Object.fromEntries(own.map(([name, [, act]]) => [name, act]));
    groups.unshift(group);
    listed.value = [...listed.peek(), ...own.map(([name, [what]]) => ({ name, what, group }))];
    return () => {
      groups.splice(groups.indexOf(group), 1);
      listed.value = listed.peek().filter((each) => each.group !== group);
    };
  });
}

addEventListener('keydown', (event) => {
  const typing = event.target.closest?.('input, textarea, select, [contenteditable]');
  const command = event.ctrlKey || event.metaKey;
  if (command && event.key.toLowerCase() === 'k') return act('mod+k', event);
  if (typing || command || event.altKey || event.defaultPrevented || document.querySelector('dialog[open]')) return;
  const name = first ? `${first} ${event.key}` : event.key;
  first = '';
  if (act(name, event)) return;
  if (groups.some((group) => Object.keys(group).some((each) => each.startsWith(`${event.key} `)))) {
    first = event.key;
    setTimeout(() => { first = ''; }, 1000);
  }
});

function act(name, event) {
  const found = groups.find((group) => group[name]);
  if (!found) return false;
  event.preventDefault();
  found[name](event);
  return true;
}
