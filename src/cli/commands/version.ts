import type { Context } from '../context.js';
import { packageVersion } from '../packageVersion.js';

export default async function version({ stdout }: Context): Promise<void> {
  stdout.write(`tinker-rx ${await packageVersion()}\n`);
}
