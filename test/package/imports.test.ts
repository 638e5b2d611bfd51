import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { expect, it } from 'vitest';
import { execute } from './execute.js';
import { ENTRIES, folder, install, manifest, npm, readJson } from './installed.js';

/** What `import { ModelInput }` may bring along, unminified and with its dependencies. */
const SMALL_IMPORT_KIB = 150;

const CONSUMER = `
import assert from 'node:assert/strict';
const globals = new Set(Object.getOwnPropertyNames(globalThis));
const listeners = process.eventNames().length;

const entries = new Map();
for (const path of ${JSON.stringify(ENTRIES)}) {
  const entry = await import(path.replace(/^\\./, 'tinker-rx'));
  entries.set(path, entry);
  assert.ok(Object.keys(entry).length > 0, path + ' exports nothing');
}

// Each class exists once, whichever entry a program imports it from, and RxJS is the program's.
const { Observable } = await import('rxjs');
const { ModelInput, TinkerError } = entries.get('.');
const { ByteTokenizer, getRenderer } = entries.get('./chat');
const prompt = getRenderer('tinker_rx_bytes', new ByteTokenizer()).buildGenerationPrompt([{ role: 'user', content: 'hi' }]);
assert.equal(prompt.constructor, ModelInput);
assert.ok(entries.get('./sources').fromIterable([1]) instanceof Observable);
await assert.rejects(import('tinker-rx/dist/index.js'), { code: 'ERR_PACKAGE_PATH_NOT_EXPORTED' });

// What is imported and not used leaves no trace: no global, no listener, no timer, no socket.
assert.deepEqual(Object.getOwnPropertyNames(globalThis).filter((name) => !globals.has(name)), []);
assert.equal(process.eventNames().length, listeners);
const held = () => process.getActiveResourcesInfo().filter((kind) => !/^(TTY|Pipe)Wrap$|Req/.test(kind));
for (let turn = 0; turn < 100 && held().length > 0; turn++) await new Promise((resolve) => setImmediate(resolve));
assert.deepEqual(held(), []);

const { ServiceClient } = entries.get('.');
const { VirtualClock, fakeTransport } = entries.get('./testing');
const clock = new VirtualClock();
const service = new ServiceClient(fakeTransport({ scheduler: clock, workMs: 10_000 }).clientOptions);
clock.resolve(clock.resolve(service.createLoraTrainingClient({ baseModel: 'any' })).optimStep());
assert.equal(clock.now(), 20_000);
console.log(entries.size, 'entries');
`;

it('every entry imports as ESM, shares its classes with the others, and leaves no trace', async () => {
  const { project } = await install();
  writeFileSync(join(project, 'consumer.mjs'), CONSUMER);
  const printed = await execute(process.execPath, ['consumer.mjs'], { cwd: project });
  expect(printed).toBe(`${ENTRIES.length} entries\n`);
});

it.each([
  ['uses the RxJS of the project', [`rxjs@${manifest.peerDependencies['rxjs']!.replace('^', '')}`]],
  ['brings RxJS where there is none', []],
])('%s: there is one copy', async (name, rxjs) => {
  expect(manifest.dependencies).not.toHaveProperty('rxjs');
  const place = folder(name.replaceAll(' ', '-'));
  writeFileSync(join(place, 'package.json'), JSON.stringify({ name: 'consumer', private: true, type: 'module' }));
  // npm decides what goes where before it unpacks anything, and writes that down.
  await npm(['install', '--package-lock-only', manifest.name, ...rxjs], place);
  const { packages } = readJson<{ packages: object }>(join(place, 'package-lock.json'));
  expect(Object.keys(packages)).toContain(`node_modules/${manifest.name}`);
  expect(Object.keys(packages).filter((path) => /(^|\/)node_modules\/rxjs$/.test(path))).toHaveLength(1);
});

/** Bundles a program of the project: its code, and the modules that have a part in it. */
async function bundle(source: string): Promise<{ readonly code: string; readonly modules: readonly string[] }> {
  const { project } = await install();
  const input = join(project, 'bundle.mjs');
  writeFileSync(input, source);
  const made = await rolldown({ input, cwd: project, platform: 'node', logLevel: 'silent' });
  const { output } = await made.generate({ format: 'esm' });
  await made.close();
  const modules = Object.entries(output[0].modules).filter(([, { renderedLength }]) => renderedLength > 0);
  return {
    code: output[0].code,
    modules: modules.map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)),
  };
}

it.each(ENTRIES)('a bundler leaves %s out where it is imported and not used', async (path) => {
  const { code } = await bundle(`import '${path.replace('.', manifest.name)}';`);
  expect(code.replace(/\/\/#.*|export \{ *\};?/g, '').trim()).toBe('');
});

it('a bundler takes only what ModelInput needs', async () => {
  const { code, modules } = await bundle(
    `import { ModelInput } from 'tinker-rx';\nconsole.log(ModelInput.fromInts([1]).length);`,
  );
  const own = modules.filter((path) => path.startsWith(`${manifest.name}/`)).map((path) => path.split('/')[2]);
  expect([...new Set(own)].filter((room) => room !== 'wire' && room !== 'support')).toStrictEqual([]);
  expect(code.length / 1024).toBeLessThan(SMALL_IMPORT_KIB);
});
