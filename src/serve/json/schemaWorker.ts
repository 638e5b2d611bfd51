import { parentPort } from 'node:worker_threads';
import type { Ajv, AnySchemaObject, ValidateFunction } from 'ajv';

/** JSON and the schema it should fit, as text. */
export interface SchemaJob {
  readonly schema: string;
  readonly json: string;
}

/** What does not fit, if anything; or why the schema cannot be used. */
export type SchemaVerdict = { readonly wrong: string | undefined } | { readonly unusable: string };

const OPTIONS = { strict: false, allErrors: true, validateFormats: false, addUsedSchema: false };
const MOST_KEPT = 100;
const MOST_COMPLAINTS = 20;

/** The newest draft, unless the schema names another; without a name writers of today mean the newest. */
async function ajvFor(draft: unknown): Promise<Ajv> {
  const name = typeof draft === 'string' ? draft : '';
  if (/draft-0[4-7]/.test(name)) return new (await import('ajv')).Ajv(OPTIONS);
  if (name.includes('2019-09')) return new (await import('ajv/dist/2019.js')).Ajv2019(OPTIONS);
  return new (await import('ajv/dist/2020.js')).Ajv2020(OPTIONS);
}

/** The validators used last, by the text of their schema. */
const kept = new Map<string, Promise<ValidateFunction>>();

function validatorOf(text: string): Promise<ValidateFunction> {
  const known = kept.get(text);
  kept.delete(text);
  const made = known ?? compile(text);
  kept.set(text, made);
  for (const oldest of kept.keys()) {
    if (kept.size <= MOST_KEPT) break;
    kept.delete(oldest);
  }
  return made;
}

async function compile(text: string): Promise<ValidateFunction> {
  const { $schema, ...schema } = JSON.parse(text) as AnySchemaObject;
  return (await ajvFor($schema)).compile(schema);
}

async function judge({ schema, json }: SchemaJob): Promise<SchemaVerdict> {
  try {
    const validate = await validatorOf(schema);
    if (validate(JSON.parse(json))) return { wrong: undefined };
    const complaints = (validate.errors ?? []).slice(0, MOST_COMPLAINTS);
    return { wrong: complaints.map(({ instancePath: at, message = '' }) => `${at || '/'} ${message}`).join('; ') };
  } catch (error) {
    return { unusable: (error as Error).message };
  }
}

// The body of a thread of SchemaChecker: one job at a time, since the checker sends the next after the verdict.
const port = parentPort;
port?.on('message', (job: SchemaJob) => void judge(job).then((verdict) => port.postMessage(verdict)));
port?.postMessage('ready');
