import { readdirSync, readFileSync } from 'node:fs';
import type { Message, Renderer, ToolSpec } from '../../src/chat/renderers/index.js';
import { messagesFrom } from '../../src/chat/renderers/core/openai.js';
import { RecordedTokenizer, type RecordedVocabulary } from './renderersTokenizer.js';

/** What one oracle, or several that agree, gave. */
export interface Recorded<T> {
  readonly by: readonly string[];
  readonly not?: readonly string[];
  readonly value: T;
}

export interface RecordedExample {
  readonly tokens: readonly number[];
  readonly weights: readonly (readonly [weight: number, count: number])[];
}

export interface RecordedEntry {
  readonly prompt?: Recorded<readonly number[]>;
  readonly supervised?: Recorded<readonly RecordedExample[]>;
}

export interface RecordedCase {
  readonly system?: string;
  readonly tools?: readonly ToolSpec[];
  readonly messages: readonly unknown[];
}

/** What the cookbook reads from sampled tokens, white space at the ends aside. */
export interface RecordedResponse {
  readonly tokens: readonly number[];
  readonly termination: 'stop_sequence' | 'eos' | 'malformed';
  readonly text: string;
  readonly thinking: string;
  readonly calls: readonly [name: string, args: unknown][];
  readonly unparsed: number;
}

/** One file of `recorded/renderers`, written by `renderers_golden.py`. */
export interface RecordedFamily {
  readonly family: string;
  readonly tokenizer: RecordedVocabulary;
  readonly cases: Readonly<Record<string, RecordedCase>>;
  readonly renderers: Readonly<Record<string, Readonly<Record<string, RecordedEntry>>>>;
  readonly responses: Readonly<Record<string, readonly RecordedResponse[]>>;
}

const FOLDER = new URL('./recorded/renderers/', import.meta.url);

export function recordedFamilies(): { family: RecordedFamily; tokenizer: RecordedTokenizer }[] {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => {
      const family = JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8')) as RecordedFamily;
      return { family, tokenizer: new RecordedTokenizer(family.family, family.tokenizer) };
    });
}

/** A recorded case as this library's messages. */
export function conversation(renderer: Renderer, { system, tools, messages }: RecordedCase): Message[] {
  const prefix = tools
    ? renderer.declareTools(tools, system)
    : system === undefined
      ? []
      : [{ role: 'system', content: system }];
  return [...prefix, ...messagesFrom(messages)];
}
