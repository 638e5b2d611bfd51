import { parseJson, pythonJson, type Json } from './pythonJson.js';
import { unparsed, type ToolCallResult } from './toolCallJson.js';

/** The special token inside the tags of DeepSeek V4.1's calls. */
export const DSML = '｜DSML｜';

/** Reads a block of calls in which the character `mark` stands for the special token. Never throws. */
export function readDsml(text: string, mark: string): ToolCallResult[] {
  const shown = (raw: string): string => raw.replaceAll(mark, DSML);
  const open = `<${mark} calls>`;
  const close = `</${mark} calls>`;
  const end = text.indexOf(close);
  if (!text.startsWith(open)) return [unparsed(shown(text), 'Invalid DSML: marker outside a calls block')];
  if (end < 0) return [unparsed(shown(text), `unterminated tool block: no ${shown(close)}`)];
  const invoke = new RegExp(`<${mark} invoke name="(.*?)">\\n([\\s\\S]*?)</${mark} invoke>`, 'g');
  const body = text.slice(open.length, end);
  const invokes = [...body.matchAll(invoke)];
  const results: ToolCallResult[] = [];
  if (invokes.length === 0 || body.replace(invoke, '').trim() !== '') {
    return [unparsed(shown(text), 'Invalid DSML: malformed invoke')];
  }
  for (const [raw, name = '', parameters = ''] of invokes) results.push(readInvoke(shown(raw), name, parameters, mark));
  const after = text.slice(end + close.length);
  if (after.trim() !== '') results.push(unparsed(shown(after), 'Invalid DSML: output after the calls block'));
  return results;
}

function readInvoke(raw: string, name: string, parameters: string, mark: string): ToolCallResult {
  const parameter = new RegExp(
    `<${mark} parameter name="(.*?)" string="(true|false)">([\\s\\S]*?)</${mark} parameter>`,
    'g',
  );
  const invalid = (why: string): ToolCallResult => unparsed(raw, `Invalid DSML: ${why}`);
  if (name.trim() === '') return invalid('empty function name');
  if (parameters.replace(parameter, '').trim() !== '') return invalid('text outside parameters');
  const fields = new Map<string, Json>();
  for (const [, key = '', kind, value = ''] of parameters.matchAll(parameter)) {
    if (key.trim() === '') return invalid('empty parameter name');
    if (fields.has(key)) return invalid(`duplicate parameter ${key}`);
    try {
      fields.set(key, kind === 'true' ? value : parseJson(value));
    } catch (error) {
      return invalid((error as Error).message);
    }
  }
  return { call: { name, arguments: pythonJson(fields, { ensureAscii: false }) } };
}
