/** Other names of the same operations. */
// prettier-ignore
export const ALIASES: ReadonlyMap<string, string> = new Map(Object.entries({
  absolute: 'abs', and_: 'logical_and', bitwise_and: 'logical_and', bitwise_not: 'invert', bitwise_or: 'logical_or',
  clip: 'clamp', concat: 'cat', concatenate: 'cat', divide: 'div', floor_divide: 'floordiv',
  greater: 'gt', greater_equal: 'ge', less: 'lt', less_equal: 'le', log_sigmoid: 'logsigmoid',
  multiply: 'mul', negative: 'neg', not_equal: 'ne', or_: 'logical_or', subtract: 'sub',
  true_divide: 'div', truediv: 'div', view: 'reshape', xor: 'logical_xor',
}));
