// The pipeline under test. Who answers and what time it is are its caller's business: it takes clients and makes none.
import { map, type Observable } from 'rxjs';
import type { SamplingClient, TrainingClient } from 'tinker-rx';
import type { Renderer } from 'tinker-rx/chat';
import { batch, checkpointEvery, sampleFrom, type Step, toDatums, train } from 'tinker-rx/operators';

/** Trains on conversations, two a step, and saves after every third step. */
export function fineTune(rows: Observable<unknown>, trainer: TrainingClient, renderer: Renderer): Observable<Step> {
  return rows.pipe(
    toDatums(renderer),
    batch({ size: 2 }),
    checkpointEvery({ steps: 3 }),
    train(trainer, { loss: 'cross_entropy', adam: { learningRate: 1e-2 } }),
  );
}

export interface Answer {
  readonly question: string;
  /** What the model says, or what went wrong with this one question. */
  readonly text: string;
}

/** Asks all questions at once; answers come as they are there, and a question that fails ends nothing. */
export function ask(questions: Observable<string>, sampler: SamplingClient, renderer: Renderer): Observable<Answer> {
  const samplingParams = { maxTokens: 32, temperature: 0, stop: renderer.getStopSequences() };
  return questions.pipe(
    map((question) => ({ question, prompt: renderer.buildGenerationPrompt([{ role: 'user', content: question }]) })),
    sampleFrom(sampler, { samplingParams, settle: true }),
    map((result): Answer => {
      if (result._tag === 'Left') {
        const { item, error } = result.left;
        return { question: item.question, text: `failed: ${(error as Error).message}` };
      }
      const { item, response } = result.right;
      return { question: item.question, text: renderer.parse(response.sequences[0]!.tokens).text };
    }),
  );
}
