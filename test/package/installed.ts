/** The tarball, and a project where it is installed. Made once, and shared by the test files of a worker. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execute, root } from './execute.js';
import { serveTarball } from './registry.js';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly exports: Record<string, string | { readonly types: string; readonly default: string }>;
  readonly dependencies: Record<string, string>;
  readonly devDependencies: Record<string, string>;
  readonly peerDependencies: Record<string, string>;
}

export const readJson = <A>(path: string): A => JSON.parse(readFileSync(path, 'utf8')) as A;
export const manifest = readJson<Manifest>(join(root, 'package.json'));
/** What can be imported: not the manifest, and not the data of the examples. */
export const ENTRIES = Object.keys(manifest.exports).filter((path) => !/\.json$|\*/.test(path));

export interface Packed {
  readonly filename: string;
  readonly integrity: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly entryCount: number;
  readonly files: readonly { readonly path: string }[];
}

let temporary: string | undefined;
/** A folder that is gone when the tests are done. */
export function folder(name: string): string {
  if (temporary === undefined) {
    const made = (temporary = mkdtempSync(join(tmpdir(), 'tinker-rx-package-')));
    process.once('exit', () => rmSync(made, { recursive: true, force: true }));
  }
  const path = join(temporary, name);
  mkdirSync(path, { recursive: true });
  return path;
}

const once = <A>(make: () => Promise<A>): (() => Promise<A>) => {
  let made: Promise<A> | undefined;
  return () => (made ??= make());
};

export const pack = once(async () => {
  const place = folder('tarball');
  const told = await execute('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', place]);
  const [packed] = JSON.parse(told) as [Packed];
  return { ...packed, path: join(place, packed.filename) };
});

const registry = once(async () => {
  const { path, integrity } = await pack();
  return serveTarball(path, manifest, integrity);
});

/** Runs npm where it finds the tarball under the package's name. */
export const npm = async (args: readonly string[], cwd: string): Promise<string> =>
  execute('npm', args, { cwd, env: await registry() });
export const npmEnvironment = registry;

export const INSTALL = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--no-package-lock'];

/** A project with the package, RxJS and the API of OpenTelemetry, which one entry is a sink for. */
export const install = once(async () => {
  const project = folder('project');
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'consumer', private: true, type: 'module' }));
  const beside = ['rxjs', '@opentelemetry/api'].map((name) => `${name}@${manifest.peerDependencies[name]}`);
  const types = `@types/node@${manifest.devDependencies['@types/node']}`;
  await npm([...INSTALL, manifest.name, ...beside, types], project);
  return { project, installed: join(project, 'node_modules', manifest.name) };
});
