import { describe, expect, it } from 'vitest';
import { ValidationError } from '../../../src/wire/tinkerError.js';
import { isCheckpointPath, parseTinkerPath } from '../../../src/wire/tinkerPath.js';

describe('a tinker:// path', () => {
  it.each([
    ['tinker://run/weights/name', { trainingRunId: 'run', checkpointType: 'training', checkpointId: 'weights/name' }],
    [
      'tinker://run/sampler_weights/name',
      { trainingRunId: 'run', checkpointType: 'sampler', checkpointId: 'sampler_weights/name' },
    ],
    [
      'tinker://run/external_weights/name',
      { trainingRunId: 'run', checkpointType: 'external', checkpointId: 'external_weights/name' },
    ],
    ['tinker://run/name', { trainingRunId: 'run', checkpointId: 'name' }],
    [
      'tinker://session:train:0/weights/step 1',
      { trainingRunId: 'session:train:0', checkpointType: 'training', checkpointId: 'weights/step 1' },
    ],
  ])('%s is parsed, and kept as it was given', (path, parts) => {
    expect(parseTinkerPath(path)).toStrictEqual({ path, ...parts });
  });

  it.each([
    '',
    'run/weights/name',
    'http://run/weights/name',
    'tinker:/run/weights/name',
    'tinker://',
    'tinker://run',
    'tinker://run/',
    'tinker:///weights/name',
    'tinker://run/weights/',
    'tinker://run/other/name',
    'tinker://run/weights/a/b',
    'tinker://run/weights/..',
    'tinker://../weights/a',
    'tinker://./a',
  ])('%j is refused', (path) => {
    expect(() => parseTinkerPath(path)).toThrow(
      new ValidationError(
        `not a checkpoint path: expected tinker://run/{weights|sampler_weights|external_weights}/name, got ${JSON.stringify(path)}`,
      ),
    );
  });

  it('that is very long is shown in part', () => {
    expect(() => parseTinkerPath('x'.repeat(10_000))).toThrow(/^.{0,320}$/);
  });
});

describe("another server's path", () => {
  it('is kept as it is: its run first, then the checkpoint, whatever it is called there', () => {
    expect(parseTinkerPath('twinkle://run-1/checkpoints/step/4')).toEqual({
      path: 'twinkle://run-1/checkpoints/step/4',
      trainingRunId: 'run-1',
      checkpointId: 'checkpoints/step/4',
    });
    expect(isCheckpointPath('twinkle://a/b')).toBe(true);
    for (const text of ['', 'Qwen/Qwen3-8B', '://a/b', undefined]) expect(isCheckpointPath(text)).toBe(false);
    for (const text of ['twinkle://', 'twinkle://a', 'twinkle://a/b//c', 'twinkle://a/../c'])
      expect(() => parseTinkerPath(text)).toThrow('not a checkpoint path');
  });
});
