import type { ValidateFunction } from 'ajv';
import { defer, from, map, type Observable, shareReplay } from 'rxjs';
import type { ScoreArgs } from './scorer.js';

/** 1 if the output is JSON that fits the schema, else 0. Code fences around it are taken off. */
export function jsonSchema(schema: object) {
  // Ajv is loaded when the first output is scored, and the schema is compiled once.
  const compiled = defer(() => from(import('ajv'))).pipe(
    map(({ Ajv }): ValidateFunction => new Ajv({ strict: false, logger: false }).compile(schema)),
    shareReplay(1),
  );
  return function json_schema({ output }: ScoreArgs): Observable<number> {
    return compiled.pipe(map((validate) => (fits(validate, output) ? 1 : 0)));
  };
}

function fits(validate: ValidateFunction, output: string): boolean {
  const text = /^\s*```(?:json)?\s*\n([\s\S]*?)\n\s*```\s*$/.exec(output)?.[1] ?? output;
  try {
    return validate(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
