import { Help, type Command } from 'commander';

/** The groups of the first help page, in the order in which people need them. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  'Try it:': ['demo', 'local'],
  'Train:': ['train', 'grpo', 'dpo', 'distill'],
  'Use a model:': ['sample', 'chat', 'serve', 'traffic', 'eval'],
  'See what happened:': ['dashboard', 'run', 'session', 'checkpoint', 'model', 'billing', 'prices'],
  'Set up:': ['auth', 'doctor', 'completion', 'version', 'help'],
};

const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  'tinker-rx': [
    'tinker-rx demo',
    'tinker-rx train chats.jsonl --model Qwen/Qwen3-8B --dashboard',
    'tinker-rx chat --model Qwen/Qwen3-8B',
  ],
  train: [
    'tinker-rx train chats.jsonl --model Qwen/Qwen3-8B --log runs/first --validation held-out.jsonl',
    'tinker-rx train --resume runs/first',
  ],
  grpo: [
    'tinker-rx grpo tasks.jsonl --reward ./reward.mjs --model Qwen/Qwen3-8B --calibrate',
    'tinker-rx grpo tasks.jsonl --reward ./reward.mjs --model Qwen/Qwen3-8B',
  ],
  dpo: ['tinker-rx dpo pairs.jsonl --model Qwen/Qwen3-8B --beta 0.1'],
  distill: ['tinker-rx distill prompts.jsonl --teacher Qwen/Qwen3-32B --model Qwen/Qwen3-8B'],
  sample: [
    'tinker-rx sample --model Qwen/Qwen3-8B "What is LoRA?"',
    'tinker-rx sample --model Qwen/Qwen3-8B --file prompts.jsonl --out answers.jsonl --resume',
  ],
  chat: ['tinker-rx chat --model tinker://run-id/sampler_weights/final'],
  serve: ['tinker-rx serve --model Qwen/Qwen3-8B --port 8080'],
  dashboard: ['tinker-rx dashboard --log runs'],
  local: ['tinker-rx local --port 8000 --data ./tinker-data'],
};

const ENVIRONMENT = `
Environment:
  TINKER_API_KEY       the key (default: the one that 'tinker-rx auth login' stored)
  TINKER_BASE_URL      the server (default: the hosted service)
  TINKER_LOG           what is logged on stderr: silent, error, warning, info, debug (default: warning)
  All variables and options: docs/configuration.md and docs/cli.md in the package.`;

/** How every help page looks: required options are marked, and the options of all commands are on each page. */
export const HELP_PAGES: Partial<Help> = {
  minWidthToWrap: 20,
  showGlobalOptions: true,
  // Those of the program only: what a command above takes, this one may not.
  visibleGlobalOptions(command) {
    let program = command;
    while (program.parent !== null) program = program.parent;
    return program === command ? [] : program.options.filter(({ hidden }) => !hidden);
  },
  optionDescription(option) {
    const text = Help.prototype.optionDescription.call(this, option);
    return option.mandatory && option.defaultValue === undefined ? `${text} (required)` : text;
  },
};

/** Groups the commands of the first page, and adds examples and variables. Call it when all commands are declared. */
export function arrangeHelp(program: Command): void {
  const places = Object.entries(GROUPS).flatMap(([group, names]) => names.map((name) => ({ group, name })));
  for (const command of program.commands) {
    const place = places.find(({ name }) => name === command.name());
    if (place !== undefined) command.helpGroup(place.group);
  }
  for (const command of [program, ...program.commands]) {
    const examples = EXAMPLES[command.name()] ?? [];
    if (examples.length > 0)
      command.addHelpText('after', `\nExamples:\n${examples.map((line) => `  $ ${line}`).join('\n')}`);
  }
  program.addHelpText('after', ENVIRONMENT);
}
