import { CliError } from '../CliError.js';
import { openService } from '../clients.js';
import type { Context } from '../context.js';
import { orMissing, yesNo } from '../output/format.js';
import { modelJson } from '../output/jsonForm.js';
import { printTable } from '../output/print.js';
import { waitFor } from '../terminal/waitFor.js';

export default async function modelList(context: Context, _: object, substring?: string): Promise<void> {
  const service = await openService(context);
  const answer = await waitFor(context, 'asking for models', service.getServerCapabilities(), service.events$);
  await service.close();
  const wanted = substring?.toLowerCase() ?? '';
  const models = answer.supportedModels.filter(({ modelName = '' }) => modelName.toLowerCase().includes(wanted));
  if (models.length === 0 && wanted !== '')
    throw new CliError(`No model name contains '${substring}'`, {
      details: "Run 'tinker-rx model list' to see every model you can use.",
    });
  const flag = (value: boolean | undefined) => (value === undefined ? 'N/A' : yesNo(value));
  printTable(
    context,
    {
      columns: ['Model', 'Max Context', 'Trainable', 'Sampleable'],
      rows: models.map(({ modelName, maxContextLength, trainable, sampleable }) => [
        orMissing(modelName),
        orMissing(maxContextLength),
        flag(trainable),
        flag(sampleable),
      ]),
    },
    () => ({ models: models.map(modelJson) }),
  );
}
