/** The error of a trainer that has not what a feature needs: types tell first, where there are types. */
export function lacks(method: string, feature: string): TypeError {
  return new TypeError(`the trainer has no ${method}, which ${feature} needs`);
}
