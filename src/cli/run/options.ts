import { integer, MODEL_HELP, number, port, several, type Chosen, type CommandOption } from '../declare.js';

/** One option of a command that trains. The type of a run's configuration, and what a resumed run may change, follow from it too. */
export interface RunOption extends CommandOption {
  /** A resumed run may be given another value, because the option does not decide what the steps are. */
  readonly mayChange?: true;
  /** The value is a path: it is saved as an absolute one, and the file must exist. */
  readonly isFile?: true;
  /** The value names a model, which may be the folder of a run: the path of its checkpoint is saved. Which path: to sample from, or to train. */
  readonly isModel?: 'samplerPath' | 'statePath';
  /** It is about this process only, and is not saved with the run. */
  readonly isTransient?: true;
}
export type RunOptions = Readonly<Record<string, RunOption>>;

/** Keys of the options that are saved with a run. */
type Saved<O extends RunOptions> = { [K in keyof O]: O[K] extends { readonly isTransient: true } ? never : K }[keyof O];

/** What decides a run. It is saved as `config.json`, so that the run can be resumed. */
export type Config<O extends RunOptions> = { readonly data: string } & Chosen<Pick<O, Saved<O>>>;

/** What every command has that trains. */
// prettier-ignore
const COMMON = {
  rank: { flag: '--rank <n>', parse: integer(1), default: 32, help: 'LoRA rank' },
  trainMlp: { flag: '--no-train-mlp', default: true, help: 'leave the MLP layers as they are' },
  trainAttn: { flag: '--no-train-attn', default: true, help: 'leave the attention layers as they are' },
  trainUnembed: { flag: '--no-train-unembed', default: true, help: 'leave the output matrix as it is: older servers of adapters refuse one' },
  epochs: { flag: '--epochs <n>', parse: integer(1), default: 1, mayChange: true, help: 'number of passes over the data; more of them continue a run with --resume' },
  steps: { flag: '--steps <n>', parse: integer(1), mayChange: true, help: 'train for n steps in all, repeating the data if needed; --epochs does not count then. More of them continue a run with --resume' },
  renderer: { flag: '--renderer <name>', help: "chat format (default: the model's renderer)" },
  seed: { flag: '--seed <n>', parse: integer(0), default: 0, help: 'seed for data order, samples and LoRA initialization' },
  checkpointEvery: { flag: '--checkpoint-every <steps>', parse: integer(1), default: 20, mayChange: true, help: 'save a checkpoint every n steps, and at the end' },
  budgetUsd: { flag: '--budget-usd <dollars>', parse: number(0), mayChange: true, help: 'stop and save once the run has cost this much, also over several resumes' },
  budgetTokens: { flag: '--budget-tokens <n>', parse: integer(1), mayChange: true, help: 'stop and save once the run has used this many tokens, also over several resumes' },
  prices: { flag: '--prices <file>', mayChange: true, isFile: true, help: 'prices of models (default: the dated list of this release)' },
  log: { flag: '--log <folder>', isTransient: true, help: 'folder for metrics and checkpoints (default: runs/<data>-<time>)' },
  resume: { flag: '--resume <folder>', isTransient: true, help: 'resume the run in this folder (uses its saved options)' },
  dashboard: { flag: '--dashboard [port]', parse: port, isTransient: true, help: 'show the run in the browser while it trains' },
} as const satisfies RunOptions;

// prettier-ignore
const START = {
  model: { flag: '-m, --model <model>', help: 'base model to train (required without --from or --resume)' },
  from: { flag: '--from <path>', isModel: 'statePath', help: 'start from the weights of a tinker:// checkpoint, or of a run by its folder, instead of a base model' },
} as const satisfies RunOptions;

// prettier-ignore
const skipBadRows = { flag: '--skip-bad-rows', default: false, mayChange: true, help: 'skip invalid rows, and those the renderer cannot write, instead of failing' } as const;
// prettier-ignore
const maxLength = { flag: '--max-length <tokens>', parse: integer(2), help: 'truncate conversations to this many tokens' } as const;
// prettier-ignore
const maxTokens = { flag: '--max-tokens <n>', parse: integer(1), default: 512, help: 'maximum tokens per answer' } as const;
// prettier-ignore
const ahead = { flag: '--ahead <n>', parse: integer(0), mayChange: true, help: 'steps to submit ahead of results' } as const;

// prettier-ignore
export const TRAIN = {
  ...START,
  learningRate: { flag: '--learning-rate <rate>', parse: number(0), help: 'peak learning rate (default: the one fitted for the model, or 1e-4)' },
  schedule: { flag: '--schedule <name>', choices: ['constant', 'linear', 'cosine'], default: 'linear', help: 'learning rate over the run' },
  warmUp: { flag: '--warm-up <steps>', parse: integer(0), default: 0, help: 'number of warm-up steps' },
  batchSize: { flag: '--batch-size <n>', parse: integer(1), default: 128, help: 'conversations per step' },
  maxLength,
  trainOn: {
    flag: '--train-on <what>',
    choices: ['last_assistant_message', 'last_assistant_turn', 'all_assistant_messages', 'all_messages', 'all_tokens', 'all_user_and_system_messages', 'customized'],
    help: 'which tokens are trained (default: last_assistant_turn)',
  },
  ...COMMON,
  checkpointTtl: { flag: '--checkpoint-ttl <seconds>', parse: integer(3600), mayChange: true, help: 'delete checkpoints after this many seconds' },
  ahead: { ...ahead, default: 1 },
  validation: { flag: '--validation <file>', isFile: true, help: 'held-out conversations, to show the loss on them beside that of training' },
  validateEvery: { flag: '--validate-every <steps>', parse: integer(1), mayChange: true, help: 'steps between two validations (default: as for checkpoints)' },
  earlyStop: { flag: '--early-stop [n]', parse: integer(1), mayChange: true, help: 'stop and save when the validation loss has not improved n times in a row (n is 3 if not given)' },
  skipBadRows,
  dryRun: { flag: '--dry-run', isTransient: true, help: 'estimate tokens and cost, and send nothing' },
} as const satisfies RunOptions;

// prettier-ignore
export const DPO = {
  ...START,
  loss: { flag: '--loss <name>', choices: ['dpo', 'ipo', 'simpo', 'orpo'], default: 'dpo', help: 'which loss' },
  beta: { flag: '--beta <beta>', parse: number(0), help: "the loss's beta, or lambda for orpo (default: 0.1, 2 for simpo)" },
  reference: { flag: '--reference <model>', isModel: 'samplerPath', help: `what to compare with: ${MODEL_HELP} (default: what training starts from)` },
  learningRate: { flag: '--learning-rate <rate>', parse: number(0), default: 1e-5, help: 'peak learning rate, falling linearly' },
  batchSize: { flag: '--batch-size <n>', parse: integer(1), default: 64, help: 'pairs per step' },
  maxLength,
  ...COMMON,
  ahead: { ...ahead, default: 2 },
  skipBadRows,
} as const satisfies RunOptions;

// prettier-ignore
export const DISTILL = {
  teacher: { flag: '--teacher <model>', isModel: 'samplerPath', parse: several, help: `who teaches: ${MODEL_HELP} (may be repeated; default: the model as it starts)` },
  teacherSystem: { flag: '--teacher-system <text>', help: 'system message that only the teacher reads' },
  ...START,
  coefficient: { flag: '--coefficient <c>', parse: number(0), default: 1, help: 'weight of the difference to the teacher' },
  learningRate: { flag: '--learning-rate <rate>', parse: number(0), help: 'learning rate (default: the one fitted for the model, or 1e-4)' },
  groupsPerBatch: { flag: '--groups-per-batch <n>', parse: integer(1), default: 64, help: 'prompts per step' },
  group: { flag: '--group <n>', parse: integer(1), default: 4, help: 'answers to each prompt' },
  maxTokens,
  ...COMMON,
} as const satisfies RunOptions;

// prettier-ignore
export const GRPO = {
  reward: { flag: '--reward <module>', isFile: true, help: 'exports (answer, task) => number as its default; may export prompt(task)' },
  ...START,
  calibrate: { flag: '--calibrate [groups]', parse: integer(1), isTransient: true, help: 'sample a few groups, train nothing, and report rewards, lengths, tokens and some answers' },
  group: { flag: '--group <n>', parse: integer(2), default: 16, help: 'answers per task' },
  groupsPerBatch: { flag: '--groups-per-batch <n>', parse: integer(1), default: 32, help: 'tasks per step' },
  maxStepsOffPolicy: { flag: '--max-steps-off-policy <n>', parse: integer(0), default: 0, help: 'how far sampling may run ahead of training' },
  minibatches: { flag: '--minibatches <n>', parse: integer(1), default: 1, help: 'parts of a batch that are trained on while the rest is sampled' },
  loss: { flag: '--loss <name>', choices: ['importance_sampling', 'ppo', 'cispo', 'dro', 'gspo'], default: 'importance_sampling', help: 'loss of the service' },
  klPenalty: { flag: '--kl-penalty <c>', parse: number(0), help: 'penalty for leaving the base model (default: none)' },
  learningRate: { flag: '--learning-rate <rate>', parse: number(0), help: 'constant learning rate (default: a tenth of the one fitted for the model)' },
  maxTokens,
  temperature: { flag: '--temperature <t>', parse: number(0), help: 'other than 1 changes the distribution that is trained on (default: 1)' },
  ...COMMON,
} as const satisfies RunOptions;
