// @ts-check
// A form made from a JSON Schema: fields for plain types, JSON for the rest. The server checks what is sent; this only
// helps to write it.
import { html, useSignal } from '../vendor/preact.js';
import { Field } from './dialog.js';

/** The schema that a `$ref`, or a choice with null, means. */
export function plainOf(schema, root) {
  let found = schema ?? {};
  for (let deep = 0; found.$ref && deep < 9; deep += 1) {
    const rest = { ...found };
    delete rest.$ref;
    found = {
      ...found.$ref
        .split('/')
        .slice(1)
        .reduce((place, part) => place?.[part.replaceAll('~1', '/').replaceAll('~0', '~')], root),
      ...rest,
    };
  }
  const choices = found.anyOf ?? found.oneOf;
  if (choices) {
    // A number of a model may be infinite too, which is not what a person fills in.
    const plain = choices.map((each) => plainOf(each, root));
    const real = plain.filter((each) => each.type !== 'null' && !each.enum?.includes('Infinity'));
    if (real.length === 1)
      return {
        ...real[0],
        title: found.title ?? real[0].title,
        description: found.description ?? real[0].description,
        default: found.default,
        nullable: real[0].nullable || plain.some((each) => each.type === 'null'),
      };
    if (real.length && real.every((each) => 'const' in each))
      return { ...found, anyOf: undefined, enum: real.map((each) => each.const) };
  }
  if (Array.isArray(found.type)) {
    const kinds = found.type.filter((each) => each !== 'null');
    if (kinds.length === 1) return { ...found, type: kinds[0], nullable: found.type.includes('null') };
  }
  return found;
}

/** What a form begins with: the defaults of its schema. */
export function startOf(schema, root = schema) {
  const own = plainOf(schema, root);
  if (own.default !== undefined && own.default !== null) return own.default;
  if ('const' in own) return own.const;
  if (own.type === 'object' && own.properties) {
    const entries = Object.entries(own.properties)
      .map(([name, each]) => [name, startOf(each, root)])
      .filter(([, value]) => value !== undefined);
    return Object.fromEntries(entries);
  }
  return own.type === 'boolean' && !own.nullable ? false : undefined;
}

/** A form. Props: schema, value, change(value). Use `useForm` unless the value is kept elsewhere. */
export function SchemaForm({ schema, value, change, root = schema, name = '' }) {
  const own = plainOf(schema, root);
  if (own.type === 'object' && own.properties && Object.keys(own.properties).length) {
    const needed = own.required ?? [];
    const inside = Object.entries(own.properties).map(
      ([key, each]) =>
        html`<${Entry}
          key=${key}
          name=${key}
          schema=${each}
          root=${root}
          needed=${needed.includes(key)}
          value=${value?.[key]}
          change=${(next) => {
            const rest = { ...value };
            if (next === undefined) delete rest[key];
            else rest[key] = next;
            change(rest);
          }}
        />`,
    );
    return name
      ? html`<fieldset>
        <legend>${own.title ?? name}</legend>
        ${own.description && html`<small>${own.description}</small>`}
        ${inside}
      </fieldset>`
      : html`<div class="form">${inside}</div>`;
  }
  return html`<${Entry}
    name=${name || 'value'}
    schema=${schema}
    root=${root}
    value=${value}
    change=${change}
    needed=${false}
  />`;
}

function Entry({ name, schema, root, value, change, needed }) {
  const own = plainOf(schema, root);
  if (own.type === 'object' && own.properties && Object.keys(own.properties).length)
    return html`<${SchemaForm} schema=${own} root=${root} value=${value} change=${change} name=${name} />`;
  const label = html`
    ${own.title ?? name}
    ${
      needed
        ? ''
        : html`
          ${' '}
          <i class="soft">optional</i>
        `
    }
  `;
  return html`<${Field} label=${label} hint=${own.description}>
    ${inputOf(own, name, value, change, needed)}
  </${Field}>`;
}

function inputOf(own, name, value, change, needed) {
  const text = (event) => change(event.target.value === '' && !needed ? undefined : event.target.value);
  if (own.enum) {
    return html`<select
      name=${name}
      required=${needed}
      value=${own.enum.indexOf(value)}
      onChange=${(event) => change(own.enum[event.target.value])}
    >
      <option value="-1" disabled=${needed}></option>
      ${own.enum.map(
        (each, index) =>
          html`<option key=${index} value=${index}>
            ${String(each)}
          </option>`,
      )}
    </select>`;
  }
  switch (own.type) {
    case 'boolean':
      return html`<input
        type="checkbox"
        name=${name}
        checked=${value === true}
        onChange=${(event) => change(event.target.checked)}
      />`;
    case 'integer':
    case 'number':
      return html`<input
        type="number"
        name=${name}
        required=${needed}
        step=${own.type === 'integer' ? 1 : 'any'}
        min=${own.minimum}
        max=${own.maximum}
        value=${value ?? ''}
        onInput=${(event) => change(event.target.value === '' ? undefined : Number(event.target.value))}
      />`;
    case 'string':
      if ((own.maxLength ?? 0) > 200 || own.format === 'textarea')
        return html`<textarea name=${name} required=${needed} rows="4" onInput=${text}>
          ${value ?? ''}
        </textarea>`;
      return html`<input
        type=${{ date: 'date', email: 'email', uri: 'url' }[own.format] ?? 'text'}
        name=${name}
        required=${needed}
        minlength=${own.minLength}
        maxlength=${own.maxLength}
        pattern=${own.pattern}
        value=${value ?? ''}
        onInput=${text}
      />`;
    default:
      return html`<${JsonInput} name=${name} value=${value} change=${change} needed=${needed} />`;
  }
}

/** A text field for any JSON; what is none yet is said, and the form cannot be sent. */
export function JsonInput({ name, value, change, needed = false, rows = 3 }) {
  const text = useSignal(value === undefined ? '' : JSON.stringify(value, null, 2));
  const write = (event) => {
    text.value = event.target.value;
    let problem = '';
    try {
      change(text.value.trim() ? JSON.parse(text.value) : undefined);
    } catch {
      problem = 'This is not JSON: text needs quotation marks.';
    }
    event.target.setCustomValidity(problem);
  };
  return html`<textarea class="mono" name=${name} required=${needed} rows=${rows} spellcheck="false" onInput=${write}>
    ${text.value}
  </textarea>`;
}

/** The value of a form and its element: const [value, form] = useForm(schema). */
export function useForm(schema, start) {
  const value = useSignal(start === undefined ? startOf(schema) : start);
  return [
    value,
    html`<${SchemaForm}
      schema=${schema}
      value=${value.value}
      change=${(next) => {
        value.value = next;
      }}
    />`,
  ];
}

/** A type of a schema in a word: `integer`, `low | high`, `list of string`, `Order`. */
export function typeOf(schema, root = schema) {
  const own = plainOf(schema, root);
  const or = own.nullable ? ' or null' : '';
  if (own.enum) return own.enum.map(String).join(' | ') + or;
  if (own.type === 'array') return `list of ${typeOf(own.items ?? {}, root)}${or}`;
  return (own.type === 'object' && own.title ? own.title : (own.format ?? own.type ?? 'anything')) + or;
}

/** What a schema of an object asks for, field by field. */
export function Fields({ schema, root = schema, deep = 0 }) {
  const own = plainOf(schema, root);
  const needed = own.required ?? [];
  return html`<ul class="fields">
    ${Object.entries(own.properties ?? {}).map(([name, each]) => {
      const inside = plainOf(each, root);
      return html`<li key=${name}>
        <b class="mono">${name}</b> <span class="mono soft">${typeOf(each, root)}</span>
        ${
          !needed.includes(name) &&
          html`
            ${' '}
            <i class="soft">
              optional
              ${inside.default !== undefined && inside.default !== null ? `, ${JSON.stringify(inside.default)}` : ''}
            </i>
          `
        }
        ${inside.description && html`<small>${inside.description}</small>`}
        ${
          inside.type === 'object' &&
          inside.properties &&
          deep < 3 &&
          html`<${Fields} schema=${inside} root=${root} deep=${deep + 1} />`
        }
      </li>`;
    })}
  </ul>`;
}
