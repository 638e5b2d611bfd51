import type { Surroundings } from '../context.js';
import { packageVersion } from '../packageVersion.js';

export default async function version({ stdout }: Surroundings): Promise<void> {
  stdout.write(`tinker-rx ${await packageVersion()}\n`);
}
