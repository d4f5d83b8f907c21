// @ts-check
// Starting a run: a form from the schema of what it takes, and an id if one is wanted.
import { html, useSignal } from '../vendor/preact.js';
import { at, go } from '../router.js';
import { ActionDialog, Field } from './dialog.js';
import { SchemaForm, startOf } from './form.js';

const isFilled = (schema) => Object.keys(schema?.properties ?? {}).length > 0;

/**
 * Props: title; parts: [[name, schema or null for any JSON]]; start(given by part, id) gives {id}; close. Then the run
 * is shown. A schema of an object is a form; without a schema, a field for JSON.
 */
export function StartDialog({ title, parts, start, close, verb = 'Start' }) {
  const given = useSignal(
    Object.fromEntries(parts.map(([name, schema]) => [name, schema ? startOf(schema) : undefined])),
  );
  const id = useSignal('');
  const act = async () => {
    const run = await start(given.value, id.value.trim() || undefined);
    go(at`/runs/${run.id}`);
    return run;
  };
  const several = parts.filter(([, schema]) => !schema || isFilled(schema)).length > 1;
  return html`<${ActionDialog}
    title=${title}
    verb=${verb}
    act=${act}
    close=${close}
    done=${(run) => `Run ${run.id} is started.`}
  >
    ${parts.map(([name, schema]) =>
      schema && !isFilled(schema) && schema.type === 'object'
        ? null
        : html`<${SchemaForm}
          key=${name}
          schema=${schema ?? {}}
          name=${several || !schema ? name : ''}
          value=${given.value[name]}
          change=${(value) => {
            given.value = { ...given.value, [name]: value };
          }}
        />`,
    )}
    <${Field}
      label=${html`
        id of the run <i class="soft">optional</i>
      `}
      hint="A start with the id of a run that is there does not start another one."
    >
      <input
        name="id"
        pattern="[A-Za-z0-9][A-Za-z0-9_.:\\-]*"
        maxlength="128"
        value=${id.value}
        onInput=${(event) => {
          id.value = event.target.value;
        }}
      />
    </${Field}>
  </${ActionDialog}>`;
}
