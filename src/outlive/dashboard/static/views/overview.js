// Overview: what needs a person, and how the store does.
import { html } from '../vendor/preact.js';
import { Head } from '../parts/shown.js';

export default function Overview() {
  return html`<${Head} title="Overview" />`;
}
