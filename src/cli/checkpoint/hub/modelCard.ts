import type { WeightsInfoResponse } from '../../../wire/weights.js';

/** A README for an adapter: what it is made of and how to load it. */
export function modelCard(path: string, repository: string, info: WeightsInfoResponse | undefined): string {
  const base = info?.baseModel;
  const modules = (['trainAttn', 'trainMlp', 'trainUnembed'] as const)
    .filter((name) => info?.[name] === true)
    .map((name) => name.slice('train'.length).toLowerCase());
  return [
    '---',
    ...(base === undefined ? [] : [`base_model: ${base}`]),
    'library_name: peft',
    'tags:',
    ...['tinker', 'peft', 'lora', ...(base === undefined ? [] : [`base_model:adapter:${base}`])].map(
      (tag) => `- ${tag}`,
    ),
    `tinker_path: ${path}`,
    '---',
    '',
    `# ${repository.split('/').at(-1)}`,
    '',
    `LoRA weights${base === undefined ? '' : ` for ${base}`}, trained with Tinker and saved as \`${path}\`.`,
    '',
    '```python',
    'from peft import AutoPeftModelForCausalLM',
    '',
    `model = AutoPeftModelForCausalLM.from_pretrained("${repository}", device_map="auto")`,
    '```',
    ...(info?.loraRank === undefined ? [] : ['', `- rank: ${info.loraRank}`]),
    ...(modules.length === 0 ? [] : [`- trained: ${modules.join(', ')}`]),
    '',
  ].join('\n');
}
