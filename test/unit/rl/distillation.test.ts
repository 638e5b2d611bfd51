import { from, lastValueFrom, map, Observable, of, Subject, switchMap, take, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ByteTokenizer, getRenderer } from '../../../src/chat/index.js';
import type { SampleOptions } from '../../../src/client/SamplingClient.js';
import {
  comparison,
  type GroupReward,
  type JudgeOptions,
  pairwise,
  rollouts,
  singleTurn,
  taught,
  type TaughtOptions,
  type Trajectory,
} from '../../../src/rl/index.js';
import { ModelInput } from '../../../src/wire/modelInput.js';

const tokenizer = new ByteTokenizer();
const renderer = getRenderer('tinker_rx_bytes', tokenizer);
const END = tokenizer.tokenId('<|end|>');
const LOGPROB = -0.5;

/** Says the same to everything, with a log probability of −½ a token. */
const sampler = {
  sample: ({ numSamples = 1 }: SampleOptions) => {
    const tokens = Int32Array.from([...tokenizer.encode('hi'), END]);
    const sequence = { stopReason: 'stop' as const, tokens, logprobs: new Float32Array(tokens.length).fill(LOGPROB) };
    return of({ sequences: Array.from({ length: numSamples }, () => sequence), promptCacheHitTokens: 0 });
  },
};
type Sampler = typeof sampler;
/** Finds every token as likely as this, and keeps what it was asked about. */
const teacherOf = (logprob: number, asked: ModelInput[] = []) => ({
  computeLogprobs: (prompt: ModelInput) => {
    asked.push(prompt);
    return of(new Float32Array(prompt.length).fill(logprob));
  },
});
const student = singleTurn<string, Sampler>({ renderer, prompt: (task) => task, reward: () => 0.25 });
const tried = (options: TaughtOptions<string>, task = 'say hi') =>
  lastValueFrom(
    of(task).pipe(rollouts<string, Sampler>(taught<string, Sampler>(student, options), { policy: sampler, group: 2 })),
  );
const advantagesOf = ({ trajectories }: { readonly trajectories: readonly Trajectory[] }) =>
  trajectories.map(({ turns }) => Array.from(turns[0]!.advantage as Float32Array));

describe('taught', () => {
  it('gives each token −c · (log p − log t), and reports the mean difference beside the reward of the agent', async () => {
    const group = await tried({ teacher: teacherOf(-2.5), coefficient: 0.5 });
    expect(advantagesOf(group)).toEqual([
      [-1, -1, -1],
      [-1, -1, -1],
    ]);
    expect(group.trajectories.map(({ metrics }) => metrics!['teacher_kl'])).toEqual([2, 2]);
    expect(group.trajectories.map(({ reward }) => reward)).toEqual([0.25, 0.25]);
  });

  it('asks about the very tokens that were sampled, after what the student read', async () => {
    const asked: ModelInput[] = [];
    await tried({ teacher: teacherOf(-1, asked) });
    const prompt = renderer.buildGenerationPrompt([{ role: 'user', content: 'say hi' }]);
    expect([...asked[0]!.toInts()]).toEqual([...prompt.toInts(), ...tokenizer.encode('hi'), END]);
  });

  it('asks the teacher about a finished answer while later ones are still being sampled', () => {
    const log: string[] = [];
    const answers = new Map<string, Subject<void>>();
    const slow: Sampler = {
      sample: (options) => {
        const task = answers.size === 0 ? 'first' : 'second';
        log.push(`${task} sampled`);
        const go = new Subject<void>();
        answers.set(task, go);
        return go.pipe(
          take(1),
          switchMap(() => sampler.sample(options)),
        );
      },
    };
    const grading = new Subject<void>();
    const teacher = {
      computeLogprobs: (prompt: ModelInput) => {
        log.push('teacher asked');
        return grading.pipe(
          take(1),
          map(() => new Float32Array(prompt.length).fill(-1)),
        );
      },
    };
    const agent = taught<string, Sampler>(student, { teacher });
    from(['first', 'second'])
      .pipe(rollouts<string, Sampler>(agent, { policy: slow, group: 1 }))
      .subscribe(({ task }) => log.push(`${task} graded`));
    expect(log).toEqual(['first sampled', 'second sampled']);
    answers.get('first')!.next();
    expect(log.slice(2)).toEqual(['teacher asked']); // the second answer is still being sampled
    grading.next();
    expect(log.slice(3)).toEqual(['first graded']);
  });

  it('mixes several teachers by weight, and chooses by task', async () => {
    const both = [
      { teacher: teacherOf(-1), weight: 1 },
      { teacher: teacherOf(-2), weight: 3 },
    ];
    expect(advantagesOf(await tried({ teacher: both }))[0]![0]).toBeCloseTo(LOGPROB * -1 - 1.75, 6);
    const byTask = (task: string) => (task === 'maths' ? teacherOf(-3.5) : teacherOf(-0.5));
    expect(advantagesOf(await tried({ teacher: byTask }, 'maths'))[0]).toEqual([-3, -3, -3]);
    expect(advantagesOf(await tried({ teacher: byTask }, 'chat'))[0]!.map(Math.abs)).toEqual([0, 0, 0]);
  });

  it('lets the teacher read a prompt that the student does not see', async () => {
    const asked: ModelInput[] = [];
    const hidden = renderer.buildGenerationPrompt([
      { role: 'system', content: 'be brief' },
      { role: 'user', content: 'say hi' },
    ]);
    const group = await tried({ teacher: teacherOf(-1, asked), teacherPrompt: () => hidden });
    expect([...asked[0]!.toInts()].slice(0, hidden.length)).toEqual([...hidden.toInts()]);
    expect(group.trajectories[0]!.turns[0]!.prompt.length).toBeLessThan(hidden.length);
  });

  it('a teacher that fails, or answers too little, costs its rollout', async () => {
    const failing = { computeLogprobs: () => throwError(() => new Error('asleep')) };
    expect((await tried({ teacher: failing })).failures.map(({ message }) => message)).toEqual(['asleep', 'asleep']);
    const short = { computeLogprobs: () => of(new Float32Array(1)) };
    expect((await tried({ teacher: short })).failures[0]!.message).toContain('gave 1 logprobs for an answer of 3');
    const failures = (await tried({ teacher: teacherOf(-Infinity) })).failures.map(({ message }) => message);
    expect(failures[0]).toBe('the teacher gave token 0 of an answer a logprob of -Infinity');
  });

  it('refuses options out of range at the call', () => {
    expect(() => taught(student, { teacher: teacherOf(0), coefficient: 0 })).toThrow('coefficient');
    expect(() => taught(student, { teacher: teacherOf(0), coefficient: Infinity })).toThrow('coefficient');
    expect(() => taught(student, { teacher: [] })).toThrow('at least one teacher');
    expect(() => taught(student, { teacher: [{ teacher: teacherOf(0), weight: -1 }] })).toThrow('weight');
  });
});

/** Tries that are as good as their index says. */
const tries = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ index, seed: index, reward: 0, turns: [] }) as unknown as Trajectory);
const judged = (reward: GroupReward<string>, count: number) =>
  lastValueFrom(reward(tries(count), 'task') as Observable<readonly number[]>);

describe('pairwise', () => {
  it('compares all pairs both ways round, and scores from −1 to 1', async () => {
    let asked = 0;
    const better = pairwise<string>((a, b) => (asked++, a.index > b.index ? 1 : 0));
    expect(await judged(better, 5)).toEqual([-1, -0.5, 0, 0.5, 1]);
    expect(asked).toBe(20);
  });

  it('takes out what a judge gives to the first', async () => {
    const firstAlways = () => of(1);
    expect(await judged(pairwise(firstAlways), 4)).toEqual([0, 0, 0, 0]);
    expect(await judged(pairwise(firstAlways, { bothWays: false }), 3)).toEqual([1, 0, -1]);
  });

  it('needs few comparisons in a tournament, and still finds the best and the worst', async () => {
    let asked = 0;
    const better = pairwise<string>((a, b) => (asked++, a.index > b.index ? 1 : 0), {
      matches: 'tournament',
      bothWays: false,
    });
    const rewards = await judged(better, 8);
    expect(asked).toBe(12);
    expect(rewards[7]).toBe(1);
    expect(rewards[0]).toBe(-1);
    expect(Math.max(...rewards.slice(0, 7))).toBeLessThan(1);
  });

  it('has no more comparisons in flight than asked, also both ways round', async () => {
    let [open, most] = [0, 0];
    const slow = () =>
      new Observable<number>((subscriber) => {
        most = Math.max(most, ++open);
        const timer = setTimeout(() => (open--, subscriber.next(0.5), subscriber.complete()));
        return () => clearTimeout(timer);
      });
    await judged(pairwise(slow, { concurrency: 3 }), 5);
    expect(most).toBe(3);
  });

  it('begins a tournament anew for every subscriber', async () => {
    let asked = 0;
    const reward = pairwise<string>((a, b) => (asked++, a.index > b.index ? 1 : 0), { matches: 'tournament' });
    const rewards = reward(tries(8), 'task') as Observable<readonly number[]>;
    const first = await lastValueFrom(rewards);
    expect(await lastValueFrom(rewards)).toEqual(first);
    expect(asked).toBe(2 * 24);
  });

  it('gives one try alone nothing, and rests one of an odd number', async () => {
    expect(
      await judged(
        pairwise(() => 1),
        1,
      ),
    ).toEqual([0]);
    expect(
      await judged(
        pairwise((a, b) => (a.index > b.index ? 1 : 0), { matches: 'tournament' }),
        3,
      ),
    ).toHaveLength(3);
  });

  it('fails for a comparison that gives no number from 0 to 1', async () => {
    await expect(
      judged(
        pairwise(() => 2),
        2,
      ),
    ).rejects.toThrow('from 0 to 1, got 2');
    expect(() => pairwise(() => 1, { concurrency: 0 })).toThrow('concurrency');
  });
});

describe('comparison', () => {
  const said = (...texts: string[]) => saidTo(undefined, ...texts);
  const saidTo = (question: JudgeOptions<string>['question'], ...texts: string[]) => {
    const asked: SampleOptions[] = [];
    const judgeSampler = {
      sample: (options: SampleOptions) => {
        asked.push(options);
        const text = texts[Math.min(asked.length, texts.length) - 1]!;
        const tokens = Int32Array.from([...tokenizer.encode(text), END]);
        return of({ sequences: [{ stopReason: 'stop' as const, tokens }], promptCacheHitTokens: 0 });
      },
    };
    const own = question === undefined ? {} : { question };
    return {
      asked,
      judge: comparison<string>({ sampler: judgeSampler, renderer, criteria: 'the kinder one', ...own }),
    };
  };
  const trajectory = (text: string) =>
    ({
      seed: 1,
      turns: [
        { prompt: ModelInput.fromInts([...tokenizer.encode('Q')]), sequence: { tokens: tokenizer.encode(text) } },
      ],
    }) as unknown as Trajectory;
  const ask = (judge: ReturnType<typeof said>['judge']) =>
    lastValueFrom(judge(trajectory('aaa'), trajectory('bbb'), 'task', { seed: 3 }) as Observable<number>);

  it.each([
    ['It is A.', 1],
    ['Well, B', 0],
    ['**Tie**', 0.5],
  ])('reads %j as %d', async (text, score) => expect(await ask(said(text).judge)).toBe(score));

  it('shows both tries and the criteria, and asks again with another seed where it cannot read', async () => {
    const { judge, asked } = said('hmm', 'B');
    expect(await ask(judge)).toBe(0);
    const text = tokenizer.decode(asked[0]!.prompt.toInts());
    for (const part of ['the kinder one', '<A>\naaa\n</A>', '<B>\nbbb\n</B>']) expect(text).toContain(part);
    expect(new Set(asked.map(({ samplingParams }) => samplingParams?.seed)).size).toBe(2);
    await expect(ask(said('hmm').judge)).rejects.toThrow('A, B or tie');
  });

  it('asks what it is told to ask', async () => {
    const { judge, asked } = saidTo(([a, b], shared, task) => `${task} ${shared}: ${a} or ${b}?`, 'A');
    expect(await ask(judge)).toBe(1);
    expect(tokenizer.decode(asked[0]!.prompt.toInts())).toContain('task Q: aaa or bbb?');
  });
});
