import type { Context } from '../context.js';
import type { Chosen } from '../declare.js';
import type { Finding } from './Check.js';
import type { DOCTOR } from './command.js';
import { checkConformance } from './checkConformance.js';
import { checkMachine } from './checkMachine.js';
import { checkAccess, checkAddress } from './checkService.js';
import { withHttp } from '../http.js';
import { printJson } from '../output/print.js';
import { styleFor } from '../terminal/style.js';
import { oneLine, padEnd, wrap } from '../../support/terminal/textWidth.js';
import { waitFor } from '../terminal/waitFor.js';

const INDENT = 12;
const NARROWEST = 20;

export type DoctorOptions = Chosen<typeof DOCTOR>;

/** Looks at everything that has to be right, in the order in which it matters. Ends with 1 where something is wrong. */
export default async function doctor(context: Context, options: DoctorOptions): Promise<number> {
  const findings: Finding[] = [];
  const add = (found: readonly Finding[]) => {
    findings.push(...found);
    if (context.format === 'table') for (const finding of found) print(context, finding);
  };
  add(await checkMachine());
  add(await withHttp((http) => waitFor(context, 'measuring the connection', checkAddress(context, http))));
  // Asking with a key that is missing, or at an address where nobody is, would only say the same again.
  const isWrong = findings.some(({ state }) => state === 'wrong');
  if (!isWrong) add(await checkAccess(context));
  const failed = findings.filter(({ state }) => state === 'wrong').length;
  if (options.conformance === true && failed === 0) return probe(context, options);
  if (context.format === 'json') printJson(context, { ok: failed === 0, checks: findings });
  else
    context.stdout.write(
      failed === 0 ? '\nAll is well.\n' : `\n${failed} ${failed === 1 ? 'problem' : 'problems'} found.\n`,
    );
  return failed === 0 ? 0 : 1;
}

/** Ends with 0 however little a server can do: what it lacks is no fault of this machine. */
async function probe(context: Context, options: DoctorOptions): Promise<number> {
  await checkConformance(context, options);
  return 0;
}

function print({ stdout, withNpxPrefix }: Context, { name, state, found, advice }: Finding): void {
  const { green, yellow, red } = styleFor(stdout);
  const mark = { ok: green('✓'), warning: yellow('!'), wrong: red('✗') }[state];
  const width = stdout.isTTY === true ? Math.max(NARROWEST, (stdout.columns ?? 80) - INDENT) : Infinity;
  const lines = [found, ...(advice?.split('\n') ?? [])].flatMap((text) => wrap(withNpxPrefix(oneLine(text)), width));
  const [first, ...rest] = lines;
  stdout.write(`${mark} ${padEnd(name, INDENT - 2)}${first}\n`);
  for (const line of rest) stdout.write(`${padEnd('', INDENT)}${line}\n`);
}
