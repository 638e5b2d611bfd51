import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { firstValueFrom, lastValueFrom, map, of, ReplaySubject, takeUntil, tap } from 'rxjs';
import type { Renderer } from '../../chat/renderers/core/Renderer.js';
import type { Conversation } from '../../chat/data/toConversation.js';
import type { SamplingClient, ServiceClient } from '../../client/index.js';
import type { Dashboard } from '../../dashboard/index.js';
import { ask, textOf } from '../terminal/ask.js';
import { confirm } from '../terminal/confirm.js';
import type { DEMO } from './command.js';
import { downloadOf, findModel, loadingBar } from './findModel.js';
import { DEMO_NEXT } from './demoText.js';
import { INTERRUPTED, note, type Context } from '../context.js';
import { openService } from '../clients.js';
import type { Chosen } from '../declare.js';
import { shellWord } from '../output/format.js';
import { sparkline } from '../terminal/sparkline.js';
import { styleFor } from '../terminal/style.js';

const QUESTIONS = ['What is the capital of France?', 'What is the capital of Japan?', 'What is the capital of Egypt?'];
const DATA = new URL('../../../assets/questions.jsonl', import.meta.url);

/** Trains the embedded service's small model on twenty questions, asks it before and after, and shows all of it on a dashboard. */
export default async function demo(context: Context, options: Chosen<typeof DEMO>): Promise<number> {
  const startedMs = context.now();
  const { model, yes = false } = options;
  const download = model === undefined || yes ? undefined : await downloadOf(model);
  if (download !== undefined && !(await confirm(context, `This downloads ${download}. Continue?`))) return 0;
  const { LocalTinker } = await import('../../local/index.js');
  const { serveDashboard } = await import('../../dashboard/index.js');
  const interrupted$ = new ReplaySubject<void>(1);
  let stopped = false;
  const listening = context.interrupted$.subscribe(() => {
    stopped = true;
    interrupted$.next();
  });
  const port = typeof options.dashboard === 'number' ? options.dashboard : 0;
  const loading = loadingBar(context);
  const models = model === undefined ? [] : [await findModel(context, model)];
  const local = await LocalTinker.start({ models, onLoading: loading.onLoading });
  loading.end();
  const lesson = model === undefined ? BYTES : PIRATE;
  const { steps = lesson.steps } = options;
  const log = options.log ?? (await mkdtemp(join(tmpdir(), 'tinker-rx-demo-')));
  let dashboard: Dashboard | undefined;
  let kept = false;
  try {
    const { url: baseUrl, apiKey } = local;
    const service = await openService({ ...context, baseUrl }, { apiKey, telemetry: false });
    dashboard = await serveDashboard({ service }, { port, title: 'tinker-rx demo' });
    const baseModel = local.baseModels[0]!;
    say(context, `A Tinker service with a real, small model (${baseModel}) runs at ${baseUrl}.`);
    say(context, `Watch the run in a browser: ${dashboard.url}`);
    const losses = await trainOnQuestions(
      { ...context, interrupted$ },
      { ...lesson, service, dashboard, log, steps, baseModel },
    );
    if (stopped) {
      await service.destroy();
      note(context, 'Stopped. Nothing is left behind; start over with: tinker-rx demo');
      return INTERRUPTED;
    }
    kept = true;
    await service.close();
    const seconds = ((context.now() - startedMs) / 1000).toFixed(1);
    say(
      context,
      `\nLoss ${losses[0]?.toPrecision(3)} ${sparkline(losses.map(Math.log))} ${losses.at(-1)?.toPrecision(3)} (log scale); all took ${seconds} s.`,
    );
    say(context, `See the run again in a browser: tinker-rx dashboard --log ${shellWord(log)}\n`);
    say(context, DEMO_NEXT.trimEnd());
    if (options.dashboard !== undefined) {
      note(context, `\nThe dashboard stays open at ${dashboard.url} until Ctrl-C.`);
      await firstValueFrom(interrupted$);
    }
    return 0;
  } finally {
    listening.unsubscribe();
    await dashboard?.close();
    await local.close();
    // A folder that the user named is the user's.
    if (!kept && options.log === undefined) await rm(log, { recursive: true, force: true });
  }
}

/** What is taught: the answers of the file to the byte model, a way of speaking to one that knows them already. */
const BYTES = { steps: 60, learningRate: 0.01, about: 'questions and answers', says: (answer: string) => answer };
const PIRATE = {
  steps: 10,
  learningRate: 1e-3,
  about: 'questions, answered like a pirate',
  says: (answer: string) => `Arr, ${answer} it be, matey!`,
};

interface Lesson {
  readonly baseModel: string;
  readonly learningRate: number;
  readonly about: string;
  readonly says: (answer: string) => string;
  readonly service: ServiceClient;
  readonly dashboard: Dashboard;
  readonly log: string;
  readonly steps: number;
}

async function trainOnQuestions(
  context: Context,
  { service, dashboard, log, steps, baseModel, learningRate, about, says }: Lesson,
): Promise<readonly number[]> {
  const { batch, repeatEpochs, toDatums, train } = await import('../../operators/index.js');
  const { fromConversations } = await import('../../sources/index.js');
  const { metricsLog, progressBar } = await import('../../sinks/index.js');
  const trainer = await service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });
  const renderer = await trainer.getRenderer();
  say(context, '\nBefore training:');
  await quiz(context, await service.createSamplingClient({ baseModel }), renderer, dashboard);

  say(context, `\nTraining on 20 ${about}:`);
  const losses: number[] = [];
  await lastValueFrom(
    fromConversations(DATA).pipe(
      map(answering(says)),
      repeatEpochs({ epochs: steps }),
      toDatums(renderer),
      batch({ size: 20 }),
      train(trainer, { loss: 'cross_entropy', adam: { learningRate } }),
      dashboard.showSteps('demo'),
      metricsLog(log, { config: { model: baseModel, rank: 16, learningRate } }),
      progressBar({ total: steps, events$: service.events$, stream: context.stderr, lineEveryMs: 2000 }),
      tap(({ loss }) => losses.push(loss)),
      takeUntil(context.interrupted$),
    ),
    { defaultValue: undefined },
  );
  if (losses.length < steps) return losses;

  say(context, '\nAfter training:');
  await quiz(context, await trainer.saveWeightsAndGetSamplingClient(), renderer, dashboard);
  return losses;
}

const answering =
  (says: (answer: string) => string) =>
  (conversation: Conversation): Conversation => ({
    ...conversation,
    messages: conversation.messages.map((message) =>
      message.role === 'assistant' ? { ...message, content: says(message.content as string) } : message,
    ),
  });

async function quiz(
  context: Context,
  sampler: SamplingClient,
  renderer: Renderer,
  dashboard: Dashboard,
): Promise<void> {
  const { dim } = styleFor(context.stdout);
  const decode = (tokens: ArrayLike<number>) => renderer.tokenizer.decode(tokens);
  const answers = QUESTIONS.map((content) =>
    ask(sampler, renderer, [{ role: 'user', content }], { maxTokens: 24, temperature: 0 }),
  );
  for (const [place, question] of QUESTIONS.entries()) {
    const response = await answers[place]!;
    of({ response, prompt: question })
      .pipe(dashboard.showSamples({ decode, run: 'demo' }))
      .subscribe();
    say(context, `  ${question} ${dim('→')} ${JSON.stringify(textOf(renderer, response))}`);
  }
}

const say = ({ stdout, withNpxPrefix }: Context, text: string): void => void stdout.write(`${withNpxPrefix(text)}\n`);
