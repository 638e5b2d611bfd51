/**
 * A module of the sources as one file that Node runs, for this repository's own tests: Node 20 runs no TypeScript. It is bundled by
 * rolldown, which comes with vitest, when one of its modules has changed since the last time: hundreds of threads are started by a run
 * of the tests, and loading rolldown takes longer than what most of them do.
 */
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';

/** Below node_modules, so that packages are found from there. */
const folder = new URL('../node_modules/.cache/tinker-rx/', import.meta.url);

/** Changes with the text of a module; a file that is gone has none. */
const stampOf = (path) =>
  stat(path).then(
    ({ mtimeMs, size }) => `${mtimeMs} ${size}`,
    () => undefined,
  );

/** Written aside first: another process may be reading it. */
async function write(name, text) {
  const temporary = new URL(randomUUID(), folder);
  await writeFile(temporary, text);
  await rename(temporary, new URL(name, folder));
}

async function bundle(input) {
  const { rolldown } = await import('rolldown');
  const made = await rolldown({ input, platform: 'node', external: /^[@a-z]/ });
  const { output } = await made.generate({ format: 'esm', sourcemap: false });
  await made.close();
  return output[0];
}

/**
 * The address of the bundled module.
 *
 * @param name names the bundle; one for each input
 * @param input the path of the module
 */
export async function bundledSource(name, input) {
  const known = await readFile(new URL(`${name}.json`, folder), 'utf8').then(JSON.parse, () => undefined);
  if (known?.input === input) {
    const stamps = await Promise.all(Object.keys(known.stamps).map(stampOf));
    if (Object.values(known.stamps).every((stamp, place) => stamp === stamps[place]))
      return new URL(known.file, folder);
  }
  await mkdir(folder, { recursive: true });
  const { code, moduleIds } = await bundle(input);
  const file = `${name}-${createHash('sha256').update(code).digest('hex').slice(0, 16)}.mjs`;
  await write(file, code);
  const stamps = await Promise.all(moduleIds.map(async (id) => [id, await stampOf(id)]));
  await write(`${name}.json`, JSON.stringify({ input, file, stamps: Object.fromEntries(stamps) }));
  return new URL(file, folder);
}
