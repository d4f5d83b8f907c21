// @ts-check
// Who uses the dashboard, what that one may do, and how it looks to them.
import { signal } from './vendor/preact.js';

const KEY = 'outlive.key';
const THEME = 'outlive.theme';

/** What `GET /me` says; null while that is not known. */
export const me = signal(null);
/** Whether the server wants a key that it has not got; then the sign-in view is shown. */
export const needsKey = signal(false);
/** The API key of this tab; empty if the server asks for none. */
export const key = signal(sessionStorage.getItem(KEY) ?? '');
/** 'light', 'dark', or 'system'. */
export const theme = signal(localStorage.getItem(THEME) ?? 'system');

/** Use a key in this tab from now on; an empty one forgets it. */
export function useKey(secret) {
  key.value = secret;
  if (secret) sessionStorage.setItem(KEY, secret);
  else sessionStorage.removeItem(KEY);
}

/** Whether the user may use an operation of the API, by its name in the OpenAPI document. */
export function can(operation) {
  return me.value?.operations.includes(operation) ?? false;
}

/** The workflow to ask for if the user does not name one: a key for some workflows has to. Undefined for all others. */
export const ownWorkflow = () => me.value?.workflows?.[0];

/** Use a theme from now on, in this browser. */
export function useTheme(name) {
  theme.value = name;
  localStorage.setItem(THEME, name);
  document.documentElement.dataset.theme = name;
}
document.documentElement.dataset.theme = theme.value;

/** What the dashboard last told the user; a screen reader says it. */
export const said = signal([]);
let count = 0;

/** Tell the user something for a few seconds: say('cancelled'), say('refused', 'fail'). */
export function say(text, kind = 'ok') {
  const it = { id: ++count, text, kind };
  said.value = [...said.value, it];
  setTimeout(() => {
    said.value = said.value.filter((each) => each !== it);
  }, 6000);
}
