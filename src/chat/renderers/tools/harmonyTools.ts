import type { ToolSpec } from '../core/Message.js';
import { pythonJson } from './pythonJson.js';

type Schema = Readonly<Record<string, unknown>>;

/** Tools as the TypeScript-like namespace that gpt-oss was trained on; `''` for none. */
export function harmonyTools(tools: readonly ToolSpec[]): string {
  if (tools.length === 0) return '';
  return `# Tools\n\n## functions\n\nnamespace functions {\n\n${tools.map(declaration).join('\n\n')}\n\n} // namespace functions`;
}

function declaration({ name, description, parameters }: ToolSpec): string {
  const comment = description ? `// ${description}\n` : '';
  return `${comment}type ${name} = ${signature(parameters ?? {})} => any;`;
}

function signature(schema: Schema): string {
  const properties = fieldsOf(schema);
  if (properties.length === 0) return '()';
  const lines = properties.map(([name, field, optional]) => {
    const description = textOf(field['description']);
    const comment = description === '' ? '' : `// ${description}\n`;
    return `${comment}${name}${optional}: ${typeOf(field)}${defaultOf(field)},\n`;
  });
  return `(_: {\n${lines.join('')}})`;
}

function fieldsOf(schema: Schema): [name: string, field: Schema, optional: '' | '?'][] {
  const required = (schema['required'] ?? []) as readonly string[];
  const properties = Object.entries((schema['properties'] ?? {}) as Record<string, Schema>);
  return properties.map(([name, field]) => [name, field, required.includes(name) ? '' : '?']);
}

function defaultOf(field: Schema): string {
  const value = field['default'];
  if (value === undefined) return '';
  const text = typeof value === 'string' && 'enum' in field ? value : pythonJson(value, { ensureAscii: false });
  return `, // default: ${text}`;
}

/** The template's types, down to its line breaks inside nested objects. */
function typeOf(schema: Schema): string {
  const type = schema['type'];
  const or = schema['nullable'] === true ? ' | null' : '';
  if (Array.isArray(schema['oneOf'])) {
    const variants = (schema['oneOf'] as Schema[]).map((each) => {
      const description = textOf(each['description']);
      return typeOf(each) + (description === '' ? '' : `// ${description}`);
    });
    return variants.join(' | \n');
  }
  if (Array.isArray(type)) return type.join(' | ');
  switch (type) {
    case 'string':
      return Array.isArray(schema['enum'])
        ? schema['enum'].map((each) => `"${String(each)}"`).join(' | ')
        : `string${or}`;
    case 'number':
    case 'integer':
      return 'number';
    case 'boolean':
      return 'boolean';
    case 'array':
      return `${typeOf((schema['items'] ?? {}) as Schema)}[]${or}`;
    case 'object': {
      const fields = fieldsOf(schema);
      if (fields.length === 0) return 'object';
      return `{\n${fields.map(([name, field, optional]) => `${name}${optional}: \n${INDENT}${typeOf(field)}`).join(', ')}}`;
    }
    default:
      return 'any';
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const INDENT = ' '.repeat(16);
