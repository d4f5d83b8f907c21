// @ts-check
// Dialogs: the browser's own, which keep the focus and close with Escape.
import { html, useEffect, useRef, useSignal } from '../vendor/preact.js';
import { say } from '../session.js';
import { Problem } from './shown.js';

/** A dialog, open as long as it is shown. */
export function Dialog({ title, close, children, wide = false }) {
  const own = useRef(null);
  useEffect(() => {
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    own.current.showModal();
    return () => before?.focus();
  }, []);
  return html`<dialog
    ref=${own}
    class=${wide ? 'wide' : ''}
    aria-label=${title}
    onCancel=${(event) => {
      event.preventDefault();
      close();
    }}
    onClick=${(event) => {
      if (event.target === own.current) close();
    }}
  >
    <div class="inside">
      <h2>${title}</h2>
      ${children}
    </div>
  </dialog>`;
}

/**
 * A dialog that does something: what it does to what (`children`, or a `preview()` that is loaded first and shown by
 * `show`), and the button. `act(previewed)` does it; its error is shown and the dialog stays. `done` is what is said
 * after. With `stays` it is left open, to show what came of it.
 */
export function ActionDialog({
  title,
  verb,
  kind = 'do',
  act,
  close,
  done,
  preview,
  show,
  children,
  disabled = false,
  stays = false,
  wide = false,
}) {
  /** @type {import('../vendor/preact.js').Signal<{busy: boolean, error: any, found: any}>} */
  const state = useSignal({ busy: Boolean(preview), error: null, found: undefined });
  useEffect(() => {
    if (!preview) return;
    preview().then(
      (found) => {
        state.value = { busy: false, error: null, found };
      },
      (error) => {
        state.value = { busy: true, error, found: undefined };
      },
    );
  }, []);
  const submit = async (event) => {
    event.preventDefault();
    state.value = { ...state.value, busy: true, error: null };
    try {
      const result = await act(state.value.found);
      if (stays) state.value = { ...state.value, busy: false };
      else close();
      const text = typeof done === 'function' ? done(result) : done;
      if (text) say(text);
    } catch (error) {
      state.value = { ...state.value, busy: false, error };
    }
  };
  const { busy, error, found } = state.value;
  return html`<${Dialog} title=${title} close=${close} wide=${wide}>
    <form onSubmit=${submit}>
      ${children}
      ${preview && (found === undefined ? !error && html`<p class="soft">Looking…</p>` : show(found))}
      <${Problem} error=${error} />
      <div class="buttons">
        <button type="button" onClick=${close}>
          Close
        </button>
        <button class=${kind} disabled=${busy || disabled}>
          ${verb}
        </button>
      </div>
    </form>
  </${Dialog}>`;
}

/** A labelled field of a form. */
export function Field({ label, hint, children }) {
  return html`<label class="field">
    <span>${label}</span>
    ${children}
    ${hint && html`<small>${hint}</small>`}
  </label>`;
}
