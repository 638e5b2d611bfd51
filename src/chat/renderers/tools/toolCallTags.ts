import type { Markup, Piece } from '../core/pieces.js';
import { parseJson, PythonFloat, pythonFloat, pythonJson, type Json } from './pythonJson.js';
import { unparsed, type ToolCallResult } from './toolCallJson.js';

const FUNCTION = /^\s*<function=([^>\n]+)>\s*([\s\S]*?)\s*<\/function>\s*$/;
const PARAMETER = /\s*<parameter=([^>\n]+)>\n?([\s\S]*?)\n?<\/parameter>\s*/y;

/** Reads `<function=name><parameter=key>value</parameter>…</function>`, as Qwen3.5 and Nemotron write calls. Never throws. */
export function toolCallFromTags(text: string, rawText: string): ToolCallResult {
  const match = FUNCTION.exec(text);
  if (match === null) return unparsed(rawText, 'Malformed tool call: no <function=…> block');
  const name = (match[1] ?? '').trim();
  const body = match[2] ?? '';
  if (name === '') return unparsed(rawText, 'Missing function name');
  const fields = new Map<string, Json>();
  for (let at = 0; at < body.length; at = PARAMETER.lastIndex) {
    PARAMETER.lastIndex = at;
    const parameter = PARAMETER.exec(body);
    if (parameter === null) return unparsed(rawText, 'Unexpected text inside the <function=…> block');
    const key = (parameter[1] ?? '').trim();
    if (key === '') return unparsed(rawText, 'Empty parameter name');
    fields.set(key, valueOf(parameter[2] ?? ''));
  }
  return { call: { name, arguments: pythonJson(fields, { ensureAscii: false }) } };
}

const WORDS = new Map<string, Json>([
  ['True', true],
  ['False', false],
  ['None', null],
]);

/** JSON if it is JSON, Python's words for true, false and null, else the text itself. */
function valueOf(text: string): Json {
  const word = WORDS.get(text.trim());
  if (word !== undefined) return word;
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}

/** A scalar as Python's `str` prints it, or undefined for lists and objects. */
export function pythonScalar(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'bigint' || typeof value === 'number') return String(value);
  return value instanceof PythonFloat ? pythonFloat(value.value) : undefined;
}

/** What Qwen3.5 and Nemotron say about their tools, around the family's own listing of them. */
export function functionTags(markup: Markup, listing: string): Piece[] {
  return [
    ...markup`# Tools\n\nYou have access to the following functions:\n\n<tools>\n${listing}\n</tools>\n\n`,
    ...markup`If you choose to call a function ONLY reply in the following format with NO suffix:\n\n`,
    ...markup`<tool_call>\n<function=example_function_name>\n<parameter=example_parameter_1>\nvalue_1\n</parameter>\n`,
    ...markup`<parameter=example_parameter_2>\nThis is the value for the second parameter\nthat can span\nmultiple lines\n</parameter>\n`,
    ...markup`</function>\n</tool_call>\n\n<IMPORTANT>\nReminder:\n- Function calls MUST follow the specified format: `,
    ...markup`an inner <function=...></function> block must be nested within <tool_call></tool_call> XML tags\n`,
    ...markup`- Required parameters MUST be specified\n`,
    ...markup`- You may provide optional reasoning for your function call in natural language BEFORE the function call, but NOT after\n`,
    ...markup`- If there is no function call available, answer the question like normal with your current knowledge and do not tell `,
    ...markup`the user about function calls\n</IMPORTANT>`,
  ];
}
