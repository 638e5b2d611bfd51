import type { ToolCall, UnparsedToolCall } from '../core/Message.js';
import { isJsonObject, parseJson, pythonJson, type Json } from './pythonJson.js';

/** Either a call, or why it cannot be read as one. */
export type ToolCallResult =
  | { readonly call: ToolCall; readonly unparsed?: never }
  | { readonly unparsed: UnparsedToolCall; readonly call?: never };

/** A call that could not be read. */
export function unparsed(rawText: string, error: string): ToolCallResult {
  return { unparsed: { rawText, error } };
}

/** Reads `{"name": …, "arguments": {…}}`, the form that Hermes-style families write. Never throws. */
export function toolCallFromJson(text: string, rawText: string): ToolCallResult {
  let value: Json;
  try {
    value = parseJson(text.trim());
  } catch (error) {
    return unparsed(rawText, `Invalid JSON: ${(error as Error).message}`);
  }
  if (!isJsonObject(value)) return unparsed(rawText, 'Tool call is not a JSON object');
  const name = value.get('name');
  const args = value.get('arguments');
  const id = value.get('id');
  if (typeof name !== 'string') return unparsed(rawText, "Missing or invalid 'name' field");
  if (!isJsonObject(args)) return unparsed(rawText, "Missing or invalid 'arguments' field");
  return {
    call: { name, arguments: pythonJson(args, { ensureAscii: false }), ...(typeof id === 'string' ? { id } : {}) },
  };
}

/** A call whose arguments stay the text they are, provided it is JSON. */
export function readCall(name: string, json: string, rawText: string, id?: string): ToolCallResult {
  const trimmed = json.trim();
  if (name.trim() === '') return unparsed(rawText, 'Missing function name');
  try {
    parseJson(trimmed);
  } catch (error) {
    return unparsed(rawText, `Invalid JSON: ${(error as Error).message}`);
  }
  return { call: { name: name.trim(), arguments: trimmed, ...(id === undefined ? {} : { id }) } };
}
