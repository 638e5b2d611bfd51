import type { Surroundings } from '../context.js';
import { packageVersion } from '../../support/packageVersion.js';

export default async function version({ stdout }: Surroundings): Promise<void> {
  stdout.write(`tinker-rx ${packageVersion()}\n`);
}
