import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const RECORDED = new URL('../recorded/', import.meta.url);

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A request as the recording server saw it. */
export interface RecordedRequest {
  readonly method: string;
  /** Below `/api/v1/`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: RecordedBody;
}
export type RecordedBody =
  | { readonly json: Json }
  | { readonly protobuf: string; readonly decoded: Json }
  /** Too long for a fixture: everything but the data, and the digest of all of it. */
  | { readonly bytes: number; readonly decoded: Json; readonly datums: number; readonly sha256: string };
export interface RecordedResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: Json;
  readonly protobuf?: string;
}
export interface Exchange {
  readonly request: RecordedRequest;
  readonly response: RecordedResponse;
}
/** One scenario of record_sdk.py. README.md describes it. */
export interface SdkFixture {
  readonly scenario: string;
  readonly recorded: { readonly by: string; readonly sdk: string; readonly how: string };
  readonly racing?: readonly string[];
  readonly exchanges: readonly Exchange[];
  readonly polls: Readonly<Record<string, readonly Exchange[]>>;
  readonly results: readonly { readonly call: string; readonly value: Json }[];
}

const read = (path: string): unknown => JSON.parse(readFileSync(new URL(path, RECORDED), 'utf8'));

export const readFixture = (scenario: string): SdkFixture => read(`sdk/${scenario}.json`) as SdkFixture;

export const scenarios = (): string[] =>
  readdirSync(fileURLToPath(new URL('sdk/', RECORDED))).map((file) => file.replace(/\.json$/, ''));

/** A case of record_decode.py: what was decoded or reduced, and the SDK's value or its error. */
export interface DecodeCase {
  readonly case: string;
  readonly protobuf?: string;
  readonly chunks?: readonly { readonly outputs: number; readonly metrics: Readonly<Record<string, Json>> }[];
  readonly value?: Json;
  readonly error?: { readonly error: string; readonly message: string };
}
export const readDecodeCases = (name: string): readonly DecodeCase[] =>
  (read(`decode/${name}.json`) as { cases: readonly DecodeCase[] }).cases;

export const fromBase64 = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'base64'));
