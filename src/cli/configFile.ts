import { readFileSync } from 'node:fs';
import { Option, type Command } from 'commander';
import { isRecord } from '../support/isRecord.js';
import { messageOf } from '../support/messageOf.js';
import { CliError } from './CliError.js';

/**
 * Gives a command `--config <file>`: a JSON file of its options by their names in camelCase, such as the `config.json` of a run. What is
 * on the command line counts more. `argument` is the name in the file of what else is given as the argument.
 */
export function addConfigFile(command: Command, argument?: string): Command {
  const option = new Option(
    '--config <file>',
    'read options from a JSON file, such as the config.json of a run; flags count more',
  );
  return command.addOption(
    option.argParser((file: string) => {
      for (const [key, value] of Object.entries(readConfig(file, command))) {
        const isGiven = command.getOptionValueSource(key) === 'cli';
        // The model to start from is one thing under two names.
        const isReplaced =
          ['model', 'from'].includes(key) &&
          ['model', 'from'].some((name) => command.getOptionValueSource(name) === 'cli');
        if (isGiven || isReplaced || value === null) continue;
        const found = command.options.find((each) => each.attributeName() === key);
        if (found === undefined && key !== argument) throw unknown(file, key, command, argument);
        command.setOptionValueWithSource(key, found === undefined ? value : parsed(file, key, value, found), 'config');
      }
      return file;
    }),
  );
}

function readConfig(file: string, command: Command): Readonly<Record<string, unknown>> {
  let found: unknown;
  try {
    found = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new CliError(`--config: ${file} cannot be read: ${messageOf(error)}`);
  }
  if (!isRecord(found)) throw new CliError(`--config: ${file} must be an object of options`);
  const { command: made = command.name(), ...options } = found;
  if (made !== command.name())
    throw new CliError(`--config: ${file} is of tinker-rx ${String(made)}, not of ${command.name()}`);
  return options;
}

/** A value as the command line would have given it. */
function parsed(file: string, key: string, value: unknown, option: Option): unknown {
  const isSwitch = option.isBoolean() || option.negate;
  if (isSwitch ? typeof value !== 'boolean' : typeof value === 'boolean' || isRecord(value))
    throw new CliError(
      `--config: ${file}: ${key} must be ${isSwitch ? 'true or false' : 'a number, a text or a list'}`,
    );
  const { parseArg } = option;
  if (isSwitch || parseArg === undefined) return isSwitch ? value : String(value);
  const texts: readonly string[] = Array.isArray(value) ? value.map(String) : [String(value)];
  try {
    return texts.reduce<unknown>((before, text) => parseArg(text, before as never), undefined);
  } catch (error) {
    throw new CliError(`--config: ${file}: ${key}: ${messageOf(error)}`);
  }
}

function unknown(file: string, key: string, command: Command, argument: string | undefined): CliError {
  const names = [...(argument === undefined ? [] : [argument]), ...command.options.map((each) => each.attributeName())];
  return new CliError(`--config: ${file}: ${command.name()} has no option ${key}`, {
    details: `It has ${names.filter((name) => name !== 'config').join(', ')}.`,
  });
}
