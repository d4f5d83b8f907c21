// @ts-check
// A part that is loaded when it is first wanted.
import { html, useEffect, useSignal } from '../vendor/preact.js';
import { say } from '../session.js';

/** What `load()` gives is shown, with all other properties, as soon as it is here. */
export function Later({ load, ...rest }) {
  const Show = useSignal(null);
  useEffect(() => {
    load().then(
      (it) => {
        Show.value = { it };
      },
      () => say('This part of the dashboard could not be loaded. Reload the page.', 'fail'),
    );
  }, []);
  return Show.value && html`<${Show.value.it} ...${rest} />`;
}
