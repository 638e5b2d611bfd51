import { firstValueFrom, NEVER, of, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ByteTokenizer, getRenderer, type Tokenizer } from 'tinker-rx/chat';
import { distill } from 'tinker-rx/rl';
import { whereTokenizersAgree } from '../../../src/rl/environments/sameTokenizer.js';

const student = new ByteTokenizer();
const other: Tokenizer = Object.assign(new ByteTokenizer(), { id: 'other', encode: () => Int32Array.of(1, 2) });
const agreed = (...teachers: unknown[]) => firstValueFrom(whereTokenizersAgree(student, teachers, of('taught')));
const WRONG = /the teacher's tokenizer \(other\) is not the student's/;

describe('teachers', () => {
  it('with the tokenizer of the student teach', async () => {
    expect(await agreed({ getTokenizer: () => of(new ByteTokenizer()) })).toBe('taught');
  });

  it('with another tokenizer are refused', async () => {
    const known = { getTokenizer: () => student };
    await expect(agreed(known, { getTokenizer: () => Promise.resolve(other) })).rejects.toThrow(WRONG);
  });

  it('that do not tell theirs, or cannot load it, are taken at their word', async () => {
    expect(await agreed({}, { getTokenizer: () => throwError(() => new Error('offline')) })).toBe('taught');
  });
});

it('distill asks its teachers before anything is sampled', async () => {
  const teacher = { getTokenizer: () => of(other), computeLogprobs: () => of(new Float32Array(1)) };
  const renderer = getRenderer('tinker_rx_bytes', student);
  const untouched = { saveWeightsAndGetSamplingClient: () => NEVER } as never;
  const steps = of('Hello?').pipe(distill(untouched, { teacher, renderer, group: 1, groupsPerBatch: 1 }));
  await expect(firstValueFrom(steps)).rejects.toThrow(WRONG);
});
