import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { words } from './parityTable.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * Looks up names of the second column of docs/parity.md in the types of this library. Written so:
 * `Name` an export · `Name { a, b }` an export with these fields · `Name = a, b` an export of these literals or members ·
 * `new Name(a, b)` a constructor · `Name.method(a, b)` a method with these parameters or options · `Name.field`.
 * `env NAME` a variable that our source reads.
 * `wire/Name` is looked up in src/wire, which is not exported; `chat/Name` and the like in that subpath.
 */
export class PublicApi {
  readonly #checker: ts.TypeChecker;
  readonly #program: ts.Program;

  constructor(entryPoints: readonly string[]) {
    const config = ts.readConfigFile(`${ROOT}tsconfig.json`, (path) => ts.sys.readFile(path));
    const { options } = ts.parseJsonConfigFileContent(config.config, ts.sys, ROOT);
    this.#program = ts.createProgram(
      entryPoints.map((path) => ROOT + path),
      { ...options, noEmit: true },
    );
    this.#checker = this.#program.getTypeChecker();
  }

  /** What is wrong with the name, or undefined where it is there with everything it lists. */
  problem(reference: string): string | undefined {
    const [, variable] = /^env (\w+)$/.exec(reference) ?? [];
    if (variable !== undefined) return this.#isRead(variable) ? undefined : `${reference}: not read anywhere`;
    const match = /^(?:(new) )?(?:([a-z]+)\/)?(\w+)(?:\.([\w$]+))?\s*(?:([({=])(.*))?$/.exec(reference);
    if (match === null) return `${reference}: not a name`;
    const [, isNew, subpath, name = '', member, separator, rest = ''] = match;
    const symbol = this.#exported(subpath, name);
    if (symbol === undefined) return `${reference}: ${name} is not exported`;
    const owners = this.#types(symbol);
    const listed = words(rest);
    if (separator === '=') return this.#missing(reference, listed, this.#members(owners));
    if (isNew)
      return this.#missing(
        reference,
        listed,
        this.#parameters(owners.flatMap((type) => [...type.getConstructSignatures()])),
      );
    if (member === undefined) {
      if (separator === '(')
        return this.#missing(
          reference,
          listed,
          this.#parameters(owners.flatMap((type) => [...type.getCallSignatures()])),
        );
      return this.#missing(reference, listed, this.#fields(owners));
    }
    const property = owners.map((type) => type.getProperty(member)).find((found) => found !== undefined);
    if (property === undefined) return `${reference}: no ${member}`;
    const type = this.#checker.getTypeOfSymbol(property);
    if (separator === '(') return this.#missing(reference, listed, this.#parameters(type.getCallSignatures()));
    return this.#missing(reference, listed, this.#fields([type]));
  }

  /** Whether the name stands in our code, comments aside. */
  #isRead(variable: string): boolean {
    const ours = this.#program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(`${ROOT}src/`));
    const code = ours.map(({ text }) => text.replace(/\/\*[^]*?\*\/|\/\/.*/g, ''));
    return code.some((text) => new RegExp(`\\b${variable}\\b`).test(text));
  }

  #missing(reference: string, listed: readonly string[], there: ReadonlySet<string>): string | undefined {
    const missing = listed.filter((name) => !there.has(name));
    return missing.length > 0 ? `${reference}: no ${missing.join(', ')}` : undefined;
  }

  #exported(subpath: string | undefined, name: string): ts.Symbol | undefined {
    const file = this.#program.getSourceFile(`${ROOT}src/${subpath === undefined ? '' : `${subpath}/`}index.ts`);
    const module = file && this.#checker.getSymbolAtLocation(file);
    const symbol = module && this.#checker.getExportsOfModule(module).find((entry) => entry.name === name);
    return symbol && symbol.flags & ts.SymbolFlags.Alias ? this.#checker.getAliasedSymbol(symbol) : symbol;
  }

  /** Both sides of a name: the type, the value, and the value that an io-ts codec decodes to. */
  #types(symbol: ts.Symbol): ts.Type[] {
    const types: ts.Type[] = [];
    if (symbol.flags & ts.SymbolFlags.Type) types.push(this.#checker.getDeclaredTypeOfSymbol(symbol));
    if (symbol.flags & ts.SymbolFlags.Value) {
      const value = this.#checker.getTypeOfSymbol(symbol);
      types.push(value);
      const decoded = value.getProperty('_A');
      if (decoded !== undefined) types.push(this.#checker.getTypeOfSymbol(decoded));
    }
    return types;
  }

  #fields(types: readonly ts.Type[]): Set<string> {
    const parts = types.flatMap((type) => (type.isUnion() ? type.types : [type]));
    return new Set(parts.flatMap((type) => this.#checker.getPropertiesOfType(type)).map((property) => property.name));
  }

  /** Literals of a union, the tags of a tagged one, and the names of its members. */
  #members(types: readonly ts.Type[]): Set<string> {
    const parts = types.flatMap((type) => (type.isUnion() ? type.types : [type]));
    const names = parts.flatMap((type) => {
      const tag = type.getProperty('type') ?? type.getProperty('state');
      const tagType = tag && this.#checker.getTypeOfSymbol(tag);
      const tags = tagType === undefined ? [] : tagType.isUnion() ? tagType.types : [tagType];
      return [type, ...tags].map((part) =>
        part.isStringLiteral() || part.isNumberLiteral() ? String(part.value) : '',
      );
    });
    return new Set([...names, ...parts.map((type) => (type.aliasSymbol ?? type.symbol)?.name ?? '')]);
  }

  /** Names of parameters, and of the fields of parameters that are options. */
  #parameters(signatures: readonly ts.Signature[]): Set<string> {
    const names = signatures.flatMap((signature) =>
      signature.parameters.flatMap((parameter) => {
        const type = this.#checker.getNonNullableType(this.#checker.getTypeOfSymbol(parameter));
        return [parameter.name, ...this.#fields([type])];
      }),
    );
    return new Set(names);
  }
}
