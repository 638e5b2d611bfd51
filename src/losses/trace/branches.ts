import {
  type AnyNode,
  type ArrowFunctionExpression,
  type Expression,
  type FunctionExpression,
  parse,
  type Pattern,
} from 'acorn';

type FunctionNode = ArrowFunctionExpression | FunctionExpression;

/** What an expression in the function of a loss gives, as far as its source tells. */
type Kind = 'tensor' | 'operation' | 'ops' | 'inputs' | 'sides';

/** A branch that the recording would not see: both ways of it lead on, and one is taken for ever. */
export interface Branch {
  /** The expression that is tested. */
  readonly test: string;
  /** In the function's own source, from 1. */
  readonly line: number;
}

/**
 * The first place in a function's source where JavaScript decides by a tensor: `if`, `?:`, `&&`, `||`, `??`, `!`, `===`, `while`, `switch`.
 *
 * A tensor is an object, so it counts as true whatever its values are, and no program can tell at run time that it was asked. So
 * this reads the source. It follows names within the function, and is silent where it is not sure: about functions from outside, and names that also
 * stand for something else.
 */
export function findBranch(define: (...given: never[]) => unknown, given: 'inputs' | 'sides'): Branch | undefined {
  const source = String(define);
  const found = functionIn(source) ?? functionIn(`function ${source}`) ?? functionIn(`async function ${source}`);
  if (found === undefined) return undefined;
  const { root, text } = found;
  const kindOf = kindsIn(root, given);
  for (const node of nodesOf(root)) {
    const tested = testedBy(node).find((each) => kindOf(each) === 'tensor');
    if (tested === undefined) continue;
    return { test: quoted(text.slice(tested.start - 1, tested.end - 1)), line: tested.loc!.start.line };
  }
  return undefined;
}

/** Undefined where the source is none: a native or bound function, or a method, which is written without `function`. */
function functionIn(text: string): { readonly root: FunctionNode; readonly text: string } | undefined {
  try {
    const [statement] = parse(`(${text})`, { ecmaVersion: 'latest', locations: true }).body;
    const root = statement?.type === 'ExpressionStatement' ? statement.expression : undefined;
    const isFunction = root?.type === 'ArrowFunctionExpression' || root?.type === 'FunctionExpression';
    return isFunction ? { root, text } : undefined;
  } catch {
    return undefined;
  }
}

/** What a node looks at to decide something. */
function testedBy(node: AnyNode): readonly AnyNode[] {
  switch (node.type) {
    case 'IfStatement':
    case 'ConditionalExpression':
    case 'WhileStatement':
    case 'DoWhileStatement':
      return [node.test];
    case 'ForStatement':
      return node.test == null ? [] : [node.test];
    case 'LogicalExpression':
      return [node.left];
    case 'UnaryExpression':
      return node.operator === '!' ? [node.argument] : [];
    case 'SwitchStatement':
      return [node.discriminant];
    case 'BinaryExpression':
      return node.operator === '===' || node.operator === '!==' ? [node.left, node.right] : [];
    default:
      return [];
  }
}

/** Tells the kind of an expression. A name has one if everything that is ever bound to it has. */
function kindsIn(root: FunctionNode, given: 'inputs' | 'sides'): (node: AnyNode) => Kind | undefined {
  const bound = new Map<string, (() => Kind | undefined)[]>();
  const bind = (pattern: Pattern | null, kind: () => Kind | undefined): void => {
    if (pattern?.type === 'Identifier') bound.set(pattern.name, [...(bound.get(pattern.name) ?? []), kind]);
    else if (pattern?.type === 'AssignmentPattern') bind(pattern.left, kind);
    else if (pattern?.type === 'RestElement') bind(pattern.argument, () => undefined);
    else if (pattern?.type === 'ArrayPattern') pattern.elements.forEach((each) => bind(each, () => undefined));
    else if (pattern?.type === 'ObjectPattern') {
      for (const property of pattern.properties) {
        if (property.type === 'RestElement') bind(property.argument, kind);
        else bind(property.value, () => partOf(kind()));
      }
    }
  };
  const open = new Set<string>();
  const named = (name: string): Kind | undefined => {
    // A name that is made of itself, as in `sum = sum.add(x)`, is what the rest of it is.
    if (open.has(name)) return 'tensor';
    open.add(name);
    const kinds = new Set((bound.get(name) ?? []).map((kind) => kind()));
    open.delete(name);
    return kinds.size === 1 ? [...kinds][0] : undefined;
  };
  const kindOf = (node: AnyNode): Kind | undefined => {
    switch (node.type) {
      case 'Identifier':
        return named(node.name);
      case 'MemberExpression':
        return node.computed ? undefined : partOf(kindOf(node.object));
      case 'CallExpression':
        return kindOf(node.callee) === 'operation' ? 'tensor' : undefined;
      case 'ConditionalExpression':
        return kindOf(node.consequent) === kindOf(node.alternate) ? kindOf(node.consequent) : undefined;
      case 'AssignmentExpression':
        return kindOf(node.right);
      default:
        return undefined;
    }
  };
  const [first, second] = root.params;
  bind(first ?? null, () => given);
  bind(second ?? null, () => 'ops');
  for (const node of nodesOf(root)) {
    if (node.type === 'VariableDeclarator') bindAll(node.id, node.init ?? null);
    else if (node.type === 'AssignmentExpression') bindAll(node.left, node.operator === '=' ? node.right : null);
    else if (node.type === 'CatchClause') bind(node.param ?? null, () => undefined);
    else if (node !== root && 'params' in node) node.params.forEach((each) => bind(each, () => undefined));
    if (node !== root && 'id' in node && node.type !== 'VariableDeclarator') bind(node.id ?? null, () => undefined);
  }
  return kindOf;

  function bindAll(pattern: Pattern, init: Expression | null): void {
    if (pattern.type === 'ArrayPattern' && init?.type === 'ArrayExpression')
      pattern.elements.forEach((each, place) => {
        const value = init.elements[place];
        bind(each, () => (value == null ? undefined : kindOf(value)));
      });
    else bind(pattern, () => (init === null ? undefined : kindOf(init)));
  }
}

/** What a property of something is: an input by its name, a method, one of the operations. */
function partOf(kind: Kind | undefined): Kind | undefined {
  if (kind === 'sides') return 'inputs';
  if (kind === 'inputs') return 'tensor';
  return kind === 'tensor' || kind === 'ops' ? 'operation' : undefined;
}

function* nodesOf(node: AnyNode): Generator<AnyNode> {
  yield node;
  for (const part of Object.values(node) as unknown[]) {
    for (const each of Array.isArray(part) ? (part as unknown[]) : [part]) {
      if (typeof (each as Partial<AnyNode> | null)?.type === 'string') yield* nodesOf(each as AnyNode);
    }
  }
}

/** On one line, and not too long for a message. */
function quoted(code: string): string {
  const line = code.replace(/\s+/g, ' ');
  return line.length > 60 ? `${line.slice(0, 59)}…` : line;
}
