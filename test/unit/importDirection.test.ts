import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const source = fileURLToPath(new URL('../../src', import.meta.url));

/** What each room may import; imports point one way, so that the lower rooms can be read without the upper ones. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  // What every room may use. It imports no room.
  support: [],
  wire: ['support'],
  losses: ['support', 'wire'],
  transport: ['support', 'wire'],
  chat: ['support', 'wire'],
  operators: ['support', 'wire', 'losses', 'chat'],
  client: ['support', 'wire', 'losses', 'transport', 'chat', 'operators'],
  sources: ['support', 'wire', 'client', 'chat', 'operators'],
  sinks: ['support', 'wire', 'client', 'operators', 'sources'],
  rl: ['support', 'wire', 'losses', 'client', 'chat', 'operators', 'sources', 'sinks'],
  evals: ['support', 'wire', 'losses', 'client', 'chat', 'operators', 'sources', 'sinks', 'rl'],
  // A checkpoint's adapter as files, without the service.
  adapters: ['support', 'wire', 'chat'],
  conformance: ['support', 'wire', 'losses', 'client'],
  testing: ['support', 'wire', 'transport', 'client', 'operators'],
  // Of chat only what fetches files of the hub: see below.
  local: ['support', 'wire', 'losses', 'chat'],
  serve: ['support', 'wire', 'transport', 'client', 'chat', 'operators', 'sources', 'sinks', 'rl'],
  'ai-sdk': ['support', 'wire', 'transport', 'client', 'chat', 'sources', 'serve'],
  opentelemetry: ['support', 'wire', 'client', 'rl'],
  dashboard: ['support', 'wire', 'client', 'operators', 'sources', 'sinks', 'rl', 'evals'],
  cli: [
    'support',
    'wire',
    'transport',
    'client',
    'operators',
    'sources',
    'sinks',
    'chat',
    'losses',
    'rl',
    'evals',
    'serve',
    'local',
    'dashboard',
    'adapters',
    'conformance',
  ],
};

/** Rooms of which only types may be imported, beside those above: operators know what a client looks like, never its code. */
const MAY_IMPORT_TYPES: Readonly<Record<string, readonly string[]>> = { operators: ['client'] };
const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
const imports = files.flatMap((file) => {
  const text = readFileSync(join(source, file), 'utf8');
  return [...text.matchAll(/(?:^(import|export) type [^;]*?)?(?:from|import\()\s*'(\.[^']+)'/gm)].map(
    ([, type, target]) => ({
      file,
      isType: type !== undefined,
      room: file.split(sep)[0]!,
      path: relative(source, resolve(source, dirname(file), target!)),
      target: relative(source, resolve(source, dirname(file), target!)).split(sep)[0]!,
    }),
  );
});

it('reads some imports', () => expect(imports.length).toBeGreaterThan(100));

it('every room is listed', () => {
  const rooms = new Set(files.filter((file) => file.includes(sep)).map((file) => file.split(sep)[0]!));
  expect([...rooms].sort()).toStrictEqual(Object.keys(MAY_IMPORT).sort());
});

it('nobody reaches into the internal folder of another room', () => {
  const reaching = imports.filter(({ room, target, path }) => room !== target && path.split(sep).includes('internal'));
  expect(reaching.map(({ file, path }) => `${file} imports ${path}`)).toStrictEqual([]);
});

it('imports point one way', () => {
  const wrong = imports.filter(
    ({ room, target, isType }) =>
      room !== target &&
      MAY_IMPORT[room] !== undefined &&
      !MAY_IMPORT[room].includes(target) &&
      !(isType && MAY_IMPORT_TYPES[room]?.includes(target)),
  );
  expect(wrong).toStrictEqual([]);
});

it('the embedded service uses the hub of chat, and nothing else there', () => {
  const used = imports.filter(({ room, target }) => room === 'local' && target === 'chat');
  expect(new Set(used.map(({ path }) => dirname(path)))).toStrictEqual(new Set([join('chat', 'tokenizer', 'hub')]));
});

it('nobody outside a room imports the command line', () => {
  expect(imports.filter(({ room, target }) => target === 'cli' && room !== 'cli')).toStrictEqual([]);
});
