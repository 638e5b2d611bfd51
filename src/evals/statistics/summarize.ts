import { map, type OperatorFunction, reduce } from 'rxjs';
import type { EvalRecord } from '../run/record.js';
import { type Calibration, calibrationOf, type Decided } from './calibrationOf.js';
import { type Interval, meanInterval } from './intervals.js';
import { passAtK } from './passAtK.js';

/** Options of `summarize`. */
export interface SummarizeOptions {
  /** A score from this on is a pass. Default 0.5. */
  readonly passAt?: number;
  /** How sure the intervals are: between 0 and 1. Default 0.95. */
  readonly confidence?: number;
  /** For which k pass@k is reported. Default: 1, 2, 4, … and the number of samples. */
  readonly k?: readonly number[];
}

/** What an evaluation came to. All means go over examples: one with many samples counts as one. */
export interface EvalSummary {
  /** How many examples were evaluated. */
  readonly examples: number;
  /** How many samples were drawn for them. */
  readonly samples: number;
  /** Examples without any score, and failed samples by where they failed. None of them counts as a wrong answer. */
  readonly unscored: number;
  /** What failed, by where. */
  readonly failures: {
    /** Samples that failed. */
    readonly rollout: number;
    /** Scorers that failed. */
    readonly scorer: number;
  };
  /** The score that counts. */
  readonly score: Interval;
  /** All scores by name. */
  readonly scores: Readonly<Record<string, Interval>>;
  /** Of examples with at least k samples: how likely one of k samples passes. */
  readonly passAtK: Readonly<Record<number, Interval>>;
  /** The share of samples that ended at the token limit. */
  readonly cutOff: number;
  /** Prompt tokens in all. */
  readonly promptTokens: number;
  /** Sampled tokens in all. */
  readonly sampledTokens: number;
  /** Of texts that were scored and not asked: over all tokens and bytes together. */
  readonly corpus?: CorpusSummary;
  /** Of decisions between labels: how far their confidence can be trusted. */
  readonly decisions?: Calibration;
}

/** How well a model predicts texts. */
export interface CorpusSummary {
  /** Tokens scored in all. */
  readonly tokens: number;
  /** Bytes of text scored in all, in UTF-8. */
  readonly bytes: number;
  /** Per token, in nats. */
  readonly nll: number;
  /** e to the power of the mean loss per token. */
  readonly perplexity: number;
  /** Loss per byte of text, in bits, without end marks: comparable between tokenizers. As `bitsPerByte` of `tinker-rx/chat`. */
  readonly bitsPerByte: number;
  /** The share of tokens that the model thinks likeliest; NaN if the service does not tell. */
  readonly accuracy: number;
}

/**
 * Sums records up, with confidence intervals and pass@k, when the source completes.
 *
 * ```
 * source    -a-b-c-|
 * result    -------(s|)
 * ```
 * Errors pass. Holds a few numbers per example.
 */
export function summarize({ passAt = 0.5, confidence = 0.95, k }: SummarizeOptions = {}): OperatorFunction<
  EvalRecord,
  EvalSummary
> {
  return (source) =>
    source.pipe(
      reduce((tally: Tally | undefined, record) => (tally ?? newTally()).take(record, passAt), undefined),
      map((tally) => (tally ?? newTally()).sum(confidence, k)),
    );
}

/** Sums up records that are all at hand. */
export function summaryOf(records: Iterable<EvalRecord>, options: SummarizeOptions = {}): EvalSummary {
  const { passAt = 0.5, confidence = 0.95, k } = options;
  const tally = newTally();
  for (const record of records) tally.take(record, passAt);
  return tally.sum(confidence, k);
}

interface Tally {
  take(record: EvalRecord, passAt: number): Tally;
  sum(confidence: number, k: readonly number[] | undefined): EvalSummary;
}

function newTally(): Tally {
  const means: number[] = [];
  const named = new Map<string, number[]>();
  const passes: { readonly samples: number; readonly passed: number }[] = [];
  const corpus = { nll: 0, tokens: 0, textNll: 0, bytes: 0, correct: 0 };
  const decided: Decided[] = [];
  const failures = { rollout: 0, scorer: 0 };
  let [examples, samples, cutOff, promptTokens, sampledTokens] = [0, 0, 0, 0, 0];
  const tally: Tally = {
    take(record, passAt) {
      examples++;
      for (const { stage } of record.failures) failures[stage]++;
      if (record.samples.length === 0) return tally;
      samples += record.samples.length;
      means.push(mean(record.samples.map(({ score }) => score)));
      passes.push({
        samples: record.samples.length,
        passed: record.samples.filter(({ score }) => score >= passAt).length,
      });
      const names = new Set(record.samples.flatMap(({ scores }) => Object.keys(scores)));
      for (const name of names) {
        const values = record.samples.flatMap(({ scores }) => scores[name] ?? []);
        const all = named.get(name) ?? [];
        all.push(mean(values));
        named.set(name, all);
      }
      for (const sample of record.samples) {
        if (sample.stopReason === 'length') cutOff++;
        promptTokens += sample.promptTokens;
        sampledTokens += sample.sampledTokens;
        const { metrics } = sample;
        if (sample.stopReason === 'decided' && metrics?.['confidence'] !== undefined)
          decided.push({ confidence: metrics['confidence'], correct: sample.score === 1 });
        if (metrics === undefined || !('nll' in metrics)) continue;
        for (const name of ['nll', 'tokens', 'bytes', 'correct'] as const) corpus[name] += metrics[name] ?? NaN;
        // Files of earlier releases do not tell end marks apart.
        corpus.textNll += metrics['textNll'] ?? metrics['nll'];
      }
      return tally;
    },
    sum(confidence, k) {
      const most = passes.reduce((largest, each) => Math.max(largest, each.samples), 0);
      const ks = k ?? powersUpTo(most);
      const likely = (wanted: number): Interval =>
        meanInterval(
          passes.filter((each) => each.samples >= wanted).map((each) => passAtK(each.samples, each.passed, wanted)),
          confidence,
        );
      return {
        ...{ examples, samples, unscored: examples - means.length, failures },
        score: meanInterval(means, confidence),
        scores: Object.fromEntries([...named].map(([name, values]) => [name, meanInterval(values, confidence)])),
        passAtK: Object.fromEntries(ks.map((wanted) => [wanted, likely(wanted)])),
        cutOff: samples === 0 ? 0 : cutOff / samples,
        ...{ promptTokens, sampledTokens },
        ...(corpus.tokens === 0 ? {} : { corpus: corpusOf(corpus) }),
        ...(decided.length === 0 ? {} : { decisions: calibrationOf(decided) }),
      };
    },
  };
  return tally;
}

function corpusOf({
  nll,
  tokens,
  textNll,
  bytes,
  correct,
}: Readonly<Record<'nll' | 'tokens' | 'textNll' | 'bytes' | 'correct', number>>): CorpusSummary {
  const perToken = nll / tokens;
  return {
    ...{ tokens, bytes, nll: perToken, perplexity: Math.exp(perToken) },
    ...{ bitsPerByte: textNll / Math.LN2 / bytes, accuracy: correct / tokens },
  };
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** 1, 2, 4, … and the number itself. */
function powersUpTo(most: number): readonly number[] {
  const powers = Array.from({ length: 32 }, (_, power) => 2 ** power).filter((power) => power < most);
  return most === 0 ? [] : [...powers, most];
}
