import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const source = fileURLToPath(new URL('../../src', import.meta.url));

/** What each room may import; imports point one way, so that the lower rooms can be read without the upper ones. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  wire: [],
  losses: ['wire'],
  transport: ['wire'],
  chat: ['wire'],
  client: ['wire', 'losses', 'transport', 'chat'],
  // Operators, sources and sinks stand beside each other.
  operators: ['wire', 'losses', 'client', 'chat', 'sources'],
  sources: ['wire', 'client', 'chat', 'operators'],
  sinks: ['wire', 'client', 'operators', 'sources'],
  rl: ['wire', 'losses', 'client', 'chat', 'operators', 'sources', 'sinks'],
  evals: ['wire', 'losses', 'client', 'chat', 'operators', 'sources', 'sinks', 'rl'],
  // A checkpoint's adapter as files, without the service.
  adapters: ['wire', 'chat'],
  conformance: ['wire', 'losses', 'client'],
  testing: ['wire', 'transport', 'client', 'operators'],
  local: ['wire', 'losses'],
  serve: ['wire', 'transport', 'client', 'chat', 'operators', 'sources', 'sinks', 'rl'],
  'ai-sdk': ['wire', 'transport', 'client', 'chat', 'serve'],
  opentelemetry: ['wire', 'client', 'rl'],
  dashboard: ['wire', 'client', 'operators', 'sources', 'sinks', 'rl', 'evals'],
  cli: [
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

const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
const imports = files.flatMap((file) => {
  const text = readFileSync(join(source, file), 'utf8');
  return [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map(([, target]) => ({
    file,
    room: file.split(sep)[0]!,
    target: relative(source, resolve(source, dirname(file), target!)).split(sep)[0]!,
  }));
});

it('reads some imports', () => expect(imports.length).toBeGreaterThan(100));

it('imports point one way', () => {
  const wrong = imports.filter(
    ({ room, target }) => room !== target && MAY_IMPORT[room] !== undefined && !MAY_IMPORT[room].includes(target),
  );
  expect(wrong).toStrictEqual([]);
});

it('nobody outside a room imports the command line', () => {
  expect(imports.filter(({ room, target }) => target === 'cli' && room !== 'cli')).toStrictEqual([]);
});
