import { lastValueFrom, takeUntil, tap } from 'rxjs';
import type { Renderer } from '../../chat/renderers/Renderer.js';
import type { SamplingClient, ServiceClient } from '../../client/index.js';
import { ask, textOf } from '../ask.js';
import { DEMO_NEXT } from '../demoText.js';
import { INTERRUPTED, note, type Context } from '../context.js';
import { openService } from '../clients.js';
import { sparkline } from '../sparkline.js';
import { styleFor } from '../style.js';

const BASE_MODEL = 'tinker-rx/tiny';
const QUESTIONS = ['What is the capital of France?', 'What is the capital of Japan?', 'What is the capital of Egypt?'];
const DATA = new URL('../../../assets/questions.jsonl', import.meta.url);

/** Trains the embedded service's small model on twenty questions, and asks it before and after. */
export default async function demo(context: Context, { steps }: { readonly steps: number }): Promise<number> {
  const startedMs = context.now();
  const { LocalTinker } = await import('../../local/index.js');
  let interrupted = false;
  const listening = context.interrupted$.subscribe(() => (interrupted = true));
  const local = await LocalTinker.start();
  try {
    const { url: baseUrl, apiKey } = local;
    say(context, `A Tinker service with a real, small model (${BASE_MODEL}) runs at ${baseUrl}.`);
    const service = await openService({ ...context, baseUrl }, { apiKey, telemetry: false });
    const losses = await trainOnQuestions(context, service, steps);
    if (interrupted) {
      await service.destroy();
      note(context, 'Stopped. Nothing is left behind; start over with: tinker-rx demo');
      return INTERRUPTED;
    }
    await service.close();
    const seconds = ((context.now() - startedMs) / 1000).toFixed(1);
    say(
      context,
      `\nLoss ${losses[0]?.toPrecision(3)} ${sparkline(losses.map(Math.log))} ${losses.at(-1)?.toPrecision(3)} (log scale); all took ${seconds} s.\n`,
    );
    say(context, DEMO_NEXT.trimEnd());
    return 0;
  } finally {
    listening.unsubscribe();
    await local.close();
  }
}

async function trainOnQuestions(context: Context, service: ServiceClient, steps: number): Promise<readonly number[]> {
  const { batch, repeatEpochs, toDatums, train } = await import('../../operators/index.js');
  const { fromConversations } = await import('../../sources/index.js');
  const { progressBar } = await import('../../sinks/index.js');
  const trainer = await service.createLoraTrainingClient({ baseModel: BASE_MODEL, rank: 16, seed: 1 });
  const renderer = await trainer.getRenderer();
  say(context, '\nBefore training:');
  await quiz(context, await service.createSamplingClient({ baseModel: BASE_MODEL }), renderer);

  say(context, '\nTraining on 20 questions and answers:');
  const losses: number[] = [];
  await lastValueFrom(
    fromConversations(DATA).pipe(
      repeatEpochs({ epochs: steps }),
      toDatums(renderer),
      batch({ size: 20 }),
      train(trainer, { loss: 'cross_entropy', adam: { learningRate: 0.01 } }),
      progressBar({ total: steps, events$: service.events$, stream: context.stderr, lineEveryMs: 2000 }),
      tap(({ loss }) => losses.push(loss)),
      takeUntil(context.interrupted$),
    ),
    { defaultValue: undefined },
  );
  if (losses.length < steps) return losses;

  say(context, '\nAfter training:');
  await quiz(context, await trainer.saveWeightsAndGetSamplingClient(), renderer);
  return losses;
}

async function quiz(context: Context, sampler: SamplingClient, renderer: Renderer): Promise<void> {
  const { dim } = styleFor(context.stdout);
  const answers = QUESTIONS.map((content) =>
    ask(sampler, renderer, [{ role: 'user', content }], { maxTokens: 24, temperature: 0 }),
  );
  for (const [place, question] of QUESTIONS.entries()) {
    const text = textOf(renderer, await answers[place]!);
    say(context, `  ${question} ${dim('→')} ${JSON.stringify(text)}`);
  }
}

const say = ({ stdout }: Context, text: string): void => void stdout.write(`${text}\n`);
