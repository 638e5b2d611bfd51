import type { Command } from 'commander';

/** Names that other tools have for our flags, and that no spelling leads to. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  '--lr': ['--learning-rate'],
  '--batch-size': ['--groups-per-batch'],
  '--bs': ['--batch-size', '--groups-per-batch'],
  '--group-size': ['--group'],
  '--groups-per-batch': ['--batch-size'],
  '--base-model': ['--model'],
  '--model-name': ['--model'],
  '--model-path': ['--model', '--from'],
  '--lora-rank': ['--rank'],
  '--num-epochs': ['--epochs'],
  '--max-steps': ['--steps'],
  '--save-every': ['--checkpoint-every'],
  '--log-path': ['--log'],
};

/** What Commander says of an unknown flag, with the flag that the command has for it. */
export function withSynonym(text: string, program: Command): string {
  const flag = /^unknown option '(--[\w-]+)/.exec(text)?.[1];
  if (flag === undefined || text.includes('Did you mean')) return text;
  const options = program.commands.find((command) => command.name() === program.args[0])?.options ?? [];
  const meant = SYNONYMS[flag]?.find((name) => options.some(({ long }) => long === name));
  return meant === undefined ? text : `${text.trimEnd()}\n(Did you mean ${meant}?)\n`;
}
