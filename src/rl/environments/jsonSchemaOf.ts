import type { StandardSchema } from './toolUse.js';

/** What a tool takes, as JSON Schema. @throws TypeError where its validator cannot say it. */
export function jsonSchemaOf(name: string, schema: StandardSchema): Readonly<Record<string, unknown>> {
  const { jsonSchema, vendor } = schema['~standard'];
  if (jsonSchema === undefined) {
    throw new TypeError(
      `tool ${name}: schemas of ${vendor} have no JSON Schema that can be read here: pass it as parameters`,
    );
  }
  return jsonSchema.input({ target: 'draft-07' });
}
