import { InvalidArgumentError, type Command } from 'commander';
import type { Context, Format, Run, Surroundings } from './context.js';

/** A tree of commands being declared. Declaring must stay cheap: what a command does is loaded when it runs. */
export interface Declaration {
  readonly surroundings: Surroundings;
  /** Told the exit code of the command that ran. */
  readonly finish: (exitCode: number) => void;
}

/** The action of a command: loads its file and runs it. */
export function lazily<A extends readonly unknown[], O>(
  { surroundings, finish }: Declaration,
  load: () => Promise<{ readonly default: Run<A, O> }>,
): (...parameters: unknown[]) => Promise<void> {
  return async (...parameters) => {
    const command = parameters.at(-1) as Command;
    const options = command.optsWithGlobals<{ format: Format; baseUrl?: string }>();
    const { Observable } = await import('rxjs');
    const interrupted$ = new Observable<void>((subscriber) => surroundings.onInterrupt(() => subscriber.next()));
    const context: Context = { ...surroundings, interrupted$, format: options.format, baseUrl: options.baseUrl };
    const { default: run } = await load();
    finish((await run(context, options as O, ...(parameters.slice(0, -2) as unknown as A))) ?? 0);
  };
}

/** The action of a small command, which needs nothing but its surroundings. */
export function simply<A extends readonly unknown[]>(
  { surroundings }: Declaration,
  load: () => Promise<{ readonly default: (surroundings: Surroundings, ...args: A) => Promise<void> }>,
): (...parameters: unknown[]) => Promise<void> {
  return async (...parameters) => {
    const { default: run } = await load();
    await run(surroundings, ...(parameters.slice(0, -2) as unknown as A));
  };
}

/** A whole number, from `least` on, as the value of an option. */
export const integer =
  (least = 0) =>
  (text: string): number => {
    const value = Number(text);
    if (!/^[+-]?\d+$/.test(text) || value < least)
      throw new InvalidArgumentError(`Expected a whole number from ${least} on.`);
    return value;
  };

/** The port of an option whose value may be left out. */
export const port = (text: string): number => {
  if (!/^\d+$/.test(text) || Number(text) > 65_535)
    throw new InvalidArgumentError(
      'Expected a port, 0 to 65535. Where the value can be left out, nothing else may follow.',
    );
  return Number(text);
};

/** A number, from `least` on. */
export const number =
  (least = 0) =>
  (text: string): number => {
    const value = Number(text);
    if (text.trim() === '' || !Number.isFinite(value) || value < least)
      throw new InvalidArgumentError(`Expected a number from ${least} on.`);
    return value;
  };

/** Collects an option that may be given several times. */
export const several = (text: string, before: readonly string[] = []): readonly string[] => [...before, text];

/** `name=value`, possibly several times. */
export const pairs = (
  text: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> => {
  const place = text.indexOf('=');
  if (place < 1) throw new InvalidArgumentError('Expected name=value.');
  return { ...before, [text.slice(0, place)]: text.slice(place + 1) };
};
