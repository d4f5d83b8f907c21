// @ts-check
// A new flow: a draft that has no name before its document says it.
import { html } from '../vendor/preact.js';
import { Draft } from '../parts/draft.js';
import { Head } from '../parts/shown.js';

export default function NewFlow() {
  return html`
    <${Head}
      title="New flow"
      facts=${[
        [
          'guide',
          html`
            <code>outlive flows new</code> writes one with comments
          `,
        ],
      ]}
    />
    <${Draft} />
  `;
}
