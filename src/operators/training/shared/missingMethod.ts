/** Error for a trainer without a required method. Typed callers cannot meet it. */
export function missingMethod(method: string, feature: string): TypeError {
  return new TypeError(`the trainer has no ${method}, which ${feature} needs`);
}
