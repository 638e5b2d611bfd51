/** A learning rate to start from: the one fitted for the model's family, the embedded models' own, or 1e-4. */
export async function learningRateFor(model: string): Promise<number> {
  if (model.startsWith('tinker-rx/')) return 0.01;
  const { getLr } = await import('../../chat/models/index.js');
  try {
    return getLr(model);
  } catch (error) {
    if (error instanceof RangeError) return 1e-4;
    throw error;
  }
}
