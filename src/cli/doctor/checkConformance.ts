import { writeFile } from 'node:fs/promises';
import type { Feature, ServerProfile } from '../../conformance/profile.js';
import { connect } from '../../client/connection/connect.js';
import { CliError } from '../CliError.js';
import { openService, quiet } from '../clients.js';
import type { Context } from '../context.js';
import { printJson } from '../output/print.js';
import type { DoctorOptions } from './doctor.js';
import { styleFor } from '../terminal/style.js';
import { waitFor } from '../terminal/waitFor.js';
import { oneLine, padEnd } from '../../support/terminal/textWidth.js';
import { Prober } from '../../conformance/Prober.js';
import { FEATURES, runProbes } from '../../conformance/runProbes.js';

const WIDTH = Math.max(...FEATURES.map(({ length }) => length)) + 2;

/** Probes the service, prints a line for each feature as it is found out, and writes the profile. */
export async function checkConformance(context: Context, { model, profile: file }: DoctorOptions): Promise<void> {
  const baseModel = model ?? (await firstModel(context));
  const { connection, sockets } = connect({
    ...(context.baseUrl === undefined ? {} : { baseUrl: context.baseUrl }),
    ...quiet(),
  });
  const { stdout, format } = context;
  if (format === 'table') stdout.write(`\nWhat the service can do, with ${baseModel}:\n`);
  let asked = 0;
  const probing = runProbes(
    new Prober(connection, baseModel, context.now),
    connection.baseUrl.href,
    (name, feature) => {
      asked++;
      if (format === 'table') printFeature(context, name, feature);
    },
  );
  const profile = await waitFor(context, () => `${asked} of ${FEATURES.length} probes`, probing);
  await sockets?.close();
  if (file !== undefined) await writeFile(file, `${JSON.stringify(profile, null, 2)}\n`);
  if (format === 'json') printJson(context, profile);
  else stdout.write(`\n${summaryOf(profile)}${file === undefined ? '' : ` Written to ${file}.`}\n`);
}

async function firstModel(context: Context): Promise<string> {
  const service = await openService(context, { telemetry: false });
  const { supportedModels } = await waitFor(context, 'asking the service', service.getServerCapabilities());
  await service.close();
  const [found] = supportedModels.filter(({ trainable }) => trainable !== false);
  if (found?.modelName === undefined) throw new CliError('The service names no model to probe: give one with --model');
  return found.modelName;
}

function printFeature({ stdout }: Context, name: string, { state, note }: Feature): void {
  const { green, yellow, red } = styleFor(stdout);
  const mark = { yes: green('✓'), differs: yellow('!'), no: red('✗'), unknown: yellow('?') }[state];
  stdout.write(`${mark} ${note === undefined ? name : `${padEnd(name, WIDTH)}${oneLine(note)}`}\n`);
}

function summaryOf({ features }: ServerProfile): string {
  const count = (state: Feature['state']) =>
    Object.values(features).filter((feature) => feature.state === state).length;
  const parts = [
    `${count('yes')} as the protocol says`,
    `${count('differs')} in its own way`,
    `${count('no')} missing`,
  ];
  return `${parts.join(', ')}${count('unknown') === 0 ? '' : `, ${count('unknown')} unknown`}.`;
}
