import { expect, it } from 'vitest';
import { ownPlace } from '../../../src/rl/sampling/ownPlace.js';

const thrownAt = (...frames: readonly string[]) =>
  ownPlace(
    Object.assign(new Error('no'), { stack: ['Error: no', ...frames].map((frame) => `    ${frame}`).join('\n') }),
  );

it.each([
  ['at grade (file:///app/reward.ts:3:7)', '/app/reward.ts:3:7'],
  ['at /app/reward.ts:3:7', '/app/reward.ts:3:7'],
  ['at async grade (/my app/reward.ts:3:7)', '/my app/reward.ts:3:7'],
  ['grade@file:///app/reward.ts:3:7', '/app/reward.ts:3:7'],
  ['at grade (C:\\app\\reward.ts:3:7)', 'C:\\app\\reward.ts:3:7'],
])('reads the place of an error from %s', (frame, place) => {
  expect(thrownAt('at process.processTicksAndRejections (node:internal/process/task_queues:95:5)', frame)).toBe(place);
});

it('does not take a frame inside Node for the place of an error', () => {
  expect(thrownAt('at process.processTicksAndRejections (node:internal/process/task_queues:95:5)')).toBeUndefined();
});
