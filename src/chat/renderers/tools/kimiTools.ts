import type { ToolSpec } from '../core/Message.js';
import { pythonJson } from './pythonJson.js';
import { RendererError } from '../core/RendererError.js';
import { pythonScalar } from './toolCallTags.js';

type Schema = Readonly<Record<string, unknown>>;

/** Definitions of one tool's schema, by name; `selfReferenced` when it points to itself. */
interface Definitions {
  readonly byName: Map<string, Schema>;
  selfReferenced: boolean;
}

/** Tools as Kimi K2.5 declares them: a TypeScript namespace, required fields first, each group by name. */
export function kimiTools(tools: readonly ToolSpec[]): string {
  return `# Tools\n\n## functions\nnamespace functions {\n${tools.map(declaration).join('\n')}\n}\n`;
}

function declaration({ name, description, parameters }: ToolSpec): string {
  const definitions: Definitions = { byName: new Map(), selfReferenced: false };
  const body = objectType(parameters ?? {}, '', definitions);
  const interfaces: string[] = [];
  if (definitions.selfReferenced) {
    const fields = fieldsOf(parameters, false).map((field) => fieldLine(field, '  ', definitions));
    interfaces.push(`interface parameters {${fields.length > 0 ? `\n${fields.join(',\n')}\n` : ''}}`);
  }
  for (const [defined, schema] of [...definitions.byName]) {
    const about = textOf(schema['description']);
    const comment = about === '' ? '' : `${commented(about, '')}\n`;
    interfaces.push(`${comment}interface ${defined} ${typeOf(schema, '', definitions)}`);
  }
  const type = `type ${name} = (_: ${definitions.selfReferenced ? 'parameters' : body}) => any;`;
  return [interfaces.join('\n'), description ? commented(description, '') : '', type]
    .filter((part) => part !== '')
    .join('\n');
}

function commented(text: string, indent: string): string {
  return text
    .split('\n')
    .map((line) => (line === '' ? '' : `${indent}// ${line}`))
    .join('\n');
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

interface Field {
  readonly name: string;
  readonly schema: Schema | boolean;
  readonly optional: boolean;
}

function fieldsOf(schema: Schema, sorted = true): Field[] {
  const required = (schema['required'] ?? []) as readonly string[];
  const fields = Object.entries((schema['properties'] ?? {}) as Record<string, Schema | boolean>).map(
    ([name, field]): Field => ({ name, schema: field, optional: !required.includes(name) }),
  );
  if (!sorted) return fields;
  const order = (a: Field, b: Field): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
  return [...fields.filter((f) => !f.optional).sort(order), ...fields.filter((f) => f.optional).sort(order)];
}

function fieldLine({ name, schema, optional }: Field, indent: string, definitions: Definitions): string {
  let comments = documentation(schema, indent);
  const fallback = typeof schema === 'boolean' ? undefined : schema['default'];
  if (fallback !== undefined && fallback !== null) {
    const text = typeof fallback === 'string' ? undefined : pythonScalar(fallback);
    comments += `${indent}// Default: ${text ?? pythonJson(fallback, { ensureAscii: false })}\n`;
  }
  return `${comments}${indent}${name}${optional ? '?' : ''}: ${typeOf(schema, indent, definitions)}`;
}

const CONSTRAINTS: Readonly<Record<string, readonly string[]>> = {
  string: ['maxLength', 'minLength', 'pattern'],
  number: ['maximum', 'minimum'],
  integer: ['maximum', 'minimum'],
  array: ['maxItems', 'minItems'],
};

function documentation(schema: Schema | boolean, indent: string): string {
  if (typeof schema === 'boolean') return '';
  const lines: string[] = [];
  const about = textOf(schema['description']);
  if (about !== '') lines.push(`${commented(about, indent)}\n`);
  const type = schema['type'];
  const plain = !('$ref' in schema) && !('anyOf' in schema) && !('enum' in schema) && typeof type === 'string';
  const known = plain ? (CONSTRAINTS[type] ?? []) : [];
  const limits = known
    .filter((key) => key in schema)
    .map((key) => `${key}: ${pythonScalar(schema[key]) ?? pythonJson(schema[key])}`);
  if (limits.length > 0) lines.push(`${indent}// ${limits.join(', ')}\n`);
  return lines.join('');
}

const UNION: Readonly<Record<string, string>> = { integer: 'number', object: '{}', array: 'Array<any>' };

function typeOf(schema: Schema | boolean, indent: string, definitions: Definitions): string {
  if (typeof schema === 'boolean') return schema ? 'any' : 'null';
  if (typeof schema['$ref'] === 'string') return reference(schema['$ref'], definitions);
  if (Array.isArray(schema['anyOf']))
    return (schema['anyOf'] as Schema[]).map((each) => typeOf(each, indent, definitions)).join(' | ');
  if (Array.isArray(schema['enum'])) {
    return schema['enum']
      .map((value: unknown) => (typeof value === 'string' ? `"${value}"` : (pythonScalar(value) ?? '')))
      .join(' | ');
  }
  const type = schema['type'];
  if (Array.isArray(type)) return type.map((each: string) => UNION[each] ?? each).join(' | ');
  if (type === 'object') return objectType(schema, indent, definitions);
  if (type === 'array') return arrayType(schema, indent, definitions);
  if (typeof type === 'string') return type === 'integer' ? 'number' : type;
  if (Object.keys(schema).length === 0) return 'any';
  throw new RendererError('Kimi K2.5 cannot declare a tool parameter that has neither type, enum, anyOf nor $ref');
}

function reference(ref: string, definitions: Definitions): string {
  if (ref === '#') {
    definitions.selfReferenced = true;
    return 'parameters';
  }
  const name = ref.split('/').at(-1) ?? '';
  if (!ref.startsWith('#/$defs/') || !definitions.byName.has(name))
    throw new RendererError(`a tool's schema refers to ${ref}, which it does not define`);
  return name;
}

function objectType(schema: Schema, indent: string, definitions: Definitions): string {
  for (const [name, defined] of Object.entries((schema['$defs'] ?? {}) as Record<string, Schema>))
    definitions.byName.set(name, defined);
  const inner = `${indent}  `;
  const lines = fieldsOf(schema).map((field) => fieldLine(field, inner, definitions));
  const more = schema['additionalProperties'] as Schema | boolean | undefined;
  if (more !== undefined && more !== null) {
    const type = more === true ? 'any' : more === false ? 'never' : typeOf(more, inner, definitions);
    lines.push(`${inner}[k: string]: ${type}`);
  }
  return lines.length === 0 ? '{}' : `{\n${lines.join(',\n')}\n${indent}}`;
}

function arrayType(schema: Schema, indent: string, definitions: Definitions): string {
  const items = schema['items'] as Schema | undefined;
  if (items === undefined || Object.keys(items).length === 0) return 'Array<any>';
  const inner = `${indent}  `;
  const comments = documentation(items, inner);
  if (comments === '') return `Array<${typeOf(items, indent, definitions)}>`;
  return `Array<\n${comments}${inner}${typeOf(items, inner, definitions)}\n${indent}>`;
}
