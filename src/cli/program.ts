import { Command, CommanderError, Option } from 'commander';
import { CliError } from './CliError.js';
import type { Surroundings } from './context.js';
import { note } from './context.js';
import { adding, type Declaration } from './declare.js';
import { explain } from './explain.js';
import { declareAuth } from './auth/command.js';
import { declareBilling } from './billing/command.js';
import { declareCheckpoint } from './checkpoint/command.js';
import { declareDoctor } from './doctor/command.js';
import { declareEval } from './eval/command.js';
import { declareLocal } from './local/command.js';
import { declareModel } from './model/command.js';
import { declarePrices } from './prices/command.js';
import { declareTraffic } from './traffic/command.js';
import { declareRun, declareTraining } from './run/command.js';
import { declareSample } from './sample/command.js';
import { declareServe } from './serve/command.js';
import { declareSession } from './session/command.js';

import { HELP_PAGES, arrangeHelp } from './helpPages.js';
import { withSynonym } from './synonyms.js';
import { styleFor } from './terminal/style.js';

/** The whole tree of commands, with nothing of what they do. */
export function buildProgram(declaration: Declaration): Command {
  const { stdout, stderr } = declaration.surroundings;
  const program = new Command('tinker-rx')
    .description('Train and sample language models through the Tinker API.')
    .helpOption('-h, --help', 'show help')
    .helpCommand('help [command]', 'show help for a command')
    .addOption(new Option('-f, --format <format>', 'output format').choices(['table', 'json']).default('table'))
    .option('--base-url <url>', 'the service to talk to (default: TINKER_BASE_URL, or the hosted service)')
    .option('-V, --version', 'show version information')
    .showSuggestionAfterError()
    .configureHelp(HELP_PAGES)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void stdout.write(text),
      writeErr: (text) => void stderr.write(text),
      getOutHelpWidth: () => stdout.columns ?? 100,
      getErrHelpWidth: () => stderr.columns ?? 100,
      outputError: (text, write) =>
        write(`${styleFor(stderr).red('Error:')} ${withSynonym(text.replace(/^error: /, ''), program)}`),
    });
  const add = adding(declaration);
  for (const declare of [
    declareLocal,
    declareTraining,
    declareSample,
    declareServe,
    declareTraffic,
    declareEval,
    declareAuth,
    declareModel,
    declareRun,
    declareCheckpoint,
    declareSession,
    declareBilling,
    declarePrices,
    declareDoctor,
  ])
    declare(program, add, declaration.surroundings);
  arrangeHelp(program);
  return program;
}

/** Runs one command line; gives the exit code. Never throws: failures are told on standard error. */
export async function runCli(args: readonly string[], surroundings: Surroundings): Promise<number> {
  let exitCode = 0;
  const program = buildProgram({ surroundings, finish: (code) => (exitCode = code) });
  try {
    const asked = args.length === 1 && ['--version', '-V'].includes(args[0]!) ? ['version'] : args;
    await program.parseAsync(asked, { from: 'user' });
    return exitCode;
  } catch (error) {
    // Commander has told the user already; a command that was written wrongly ends with 2, as elsewhere.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    return tell(error, surroundings);
  }
}

function tell(error: unknown, surroundings: Surroundings): number {
  const { message, details, exitCode } = explain(error);
  note(surroundings, message, `${styleFor(surroundings.stderr).red('Error:')} `);
  if (details !== undefined) note(surroundings, details);
  if (process.env['TINKER_LOG'] === 'debug' && error instanceof Error && !(error instanceof CliError))
    note(surroundings, error.stack ?? '');
  return exitCode;
}
