import { InvalidArgumentError, Option, type Command } from 'commander';
import type { Context, Format, Run, Surroundings } from './context.js';

/** A tree of commands being declared. Declaring must stay cheap: what a command does is loaded when it runs. */
export interface Declaration {
  readonly surroundings: Surroundings;
  /** Told the exit code of the command that ran. */
  readonly finish: (exitCode: number) => void;
}

/** Adds a command to another one. Its file is loaded when it runs. */
export type Add = (
  parent: Command,
  name: string,
  load: () => Promise<{ readonly default: Run }>,
  options?: CommandOptions,
) => Command;

export const adding =
  ({ surroundings, finish }: Declaration): Add =>
  (parent, name, load, options = {}) =>
    addOptions(parent.command(name), options).action(async (...parameters: unknown[]) => {
      const command = parameters.at(-1) as Command;
      const given = command.optsWithGlobals<{ format: Format; baseUrl?: string }>();
      const { Observable } = await import('rxjs');
      const interrupted$ = new Observable<void>((subscriber) => surroundings.onInterrupt(() => subscriber.next()));
      const context: Context = { ...surroundings, interrupted$, format: given.format, baseUrl: given.baseUrl };
      const { default: run } = await load();
      finish((await run(context, given as never, ...(parameters.slice(0, -2) as never[]))) ?? 0);
    });

/** One option of a command. Flags of the command line, help, defaults and the type of what the command is given follow from tables of these. */
export interface CommandOption {
  /** As Commander reads it: `--rank <n>`. A name without a value is a switch. */
  readonly flag: string;
  readonly help: string;
  readonly parse?: (text: string, before?: never) => unknown;
  readonly choices?: readonly string[];
  readonly default?: number | string | boolean;
  /** The value where the flag is given without one. */
  readonly preset?: string;
  /** The command does not run without it. */
  readonly isRequired?: true;
}
/** Options by the names that Commander gives them. */
export type CommandOptions = Readonly<Record<string, CommandOption>>;

type Value<O extends CommandOption> = O extends { readonly parse: (text: string) => infer T }
  ? O['flag'] extends `${string}[${string}`
    ? T | true
    : T
  : O extends { readonly choices: readonly (infer C)[] }
    ? C
    : O['flag'] extends `${string}<${string}`
      ? string
      : boolean;

/** What a command line gives. */
export type Given<O extends CommandOptions> = { readonly [K in keyof O]?: Value<O[K]> };

type Sure = { readonly default: unknown } | { readonly isRequired: true };
/** What a command gets: options with a default, and those that are required, have a value. */
export type Chosen<O extends CommandOptions> = {
  readonly [K in keyof O as O[K] extends Sure ? K : never]: Value<O[K]>;
} & { readonly [K in keyof O as O[K] extends Sure ? never : K]?: Value<O[K]> };

function addOptions(command: Command, options: CommandOptions): Command {
  for (const { flag, help, parse, choices, default: value, preset, isRequired = false } of Object.values(options)) {
    const option = new Option(flag, help).makeOptionMandatory(isRequired);
    if (parse !== undefined) option.argParser<unknown>((text, before) => parse(text, before as never));
    if (choices !== undefined) option.choices(choices);
    // A switch that is absent says so itself.
    if (value !== undefined && typeof value !== 'boolean') option.default(value);
    if (preset !== undefined) option.preset(preset);
    command.addOption(option);
  }
  return command;
}

/** Help for every argument and flag that names a model. */
export const MODEL_HELP =
  'base model, tinker:// path of a checkpoint, or folder of a run (its newest checkpoint, or runs/first@40)';

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
