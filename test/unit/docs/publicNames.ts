import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { root } from './snippets.js';

/** One public name: an export of an entry point, or a member of one. Named once, where it is declared. */
export interface PublicName {
  /** `Interface.field`, as a reader would write it. */
  readonly name: string;
  /** `src/file.ts:line` of its first declaration. */
  readonly at: string;
  /** What an editor shows on hover; '' if nothing. */
  readonly text: string;
}

/** The source of every entry point that package.json exports. */
export function entryPoints(): string[] {
  const { exports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { exports: Record<string, object> };
  return Object.keys(exports)
    .filter((path) => !/\.json$|\*/.test(path))
    .map((path) => `${root}src/${path.replace(/^\.\/?/, '')}/index.ts`.replace('//', '/'));
}

/** A program of the given files with the package's own settings. */
export function programOf(
  rootNames: readonly string[],
  host?: (options: ts.CompilerOptions) => ts.CompilerHost,
  more: ts.CompilerOptions = {},
) {
  const { config } = ts.readConfigFile(`${root}tsconfig.json`, (path) => ts.sys.readFile(path)) as { config: object };
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: [] }, ts.sys, root);
  const { tsBuildInfoFile: _, ...rest } = { ...options, ...more, incremental: false, noEmit: true };
  return ts.createProgram({ rootNames, options: rest, ...(host && { host: host(rest) }) });
}

const isHidden = (symbol: ts.Symbol): boolean =>
  symbol.name.startsWith('__') ||
  symbol.name.startsWith('#') ||
  (symbol.declarations ?? []).some(
    (declaration) =>
      (ts.getCombinedModifierFlags(declaration) & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) !== 0 ||
      ts.getJSDocTags(declaration).some((tag) => tag.tagName.text === 'internal'),
  ) ||
  symbol.getJsDocTags().some((tag) => tag.name === 'internal');

/**
 * Every public name of the entry points, with their members, down through object literals written in place. What an editor
 * shows on hover counts as documentation, so a class inherits that of its base. Private and protected members are left out.
 */
export function publicNames(
  program: ts.Program,
  entries: readonly string[],
  ours: string = `${root}src/`,
): PublicName[] {
  const checker = program.getTypeChecker();
  const found = new Map<ts.Declaration, PublicName>();
  const computed = new Map<string, PublicName>();
  const seen = new Set<ts.Symbol | ts.Type>();

  const ourDeclaration = (symbol: ts.Symbol) =>
    symbol.declarations?.find((one) => one.getSourceFile().fileName.startsWith(ours));
  const note = (symbol: ts.Symbol, name: string, owner?: string): boolean => {
    const declaration = ourDeclaration(symbol);
    if (isHidden(symbol)) return false;
    // A type computed from another one (a codec's, say) has lost the declaration, and the comment with it.
    if (symbol.declarations === undefined && owner !== undefined) {
      computed.set(name, { name, at: owner, text: '' });
      return false;
    }
    if (declaration === undefined) return false;
    if (!found.has(declaration)) {
      const file = declaration.getSourceFile();
      const line = file.getLineAndCharacterOfPosition(declaration.getStart()).line + 1;
      const text = ts.displayPartsToString(symbol.getDocumentationComment(checker)).trim();
      found.set(declaration, { name, at: `src/${file.fileName.slice(ours.length)}:${line}`, text });
    }
    return true;
  };
  const members = (type: ts.Type, owner: string, at: string): void => {
    if (seen.has(type)) return;
    seen.add(type);
    if (type.isUnion()) {
      for (const part of type.types)
        if (part.flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection)) members(part, owner, at);
      return;
    }
    if (checker.isArrayType(type) || checker.isTupleType(type)) return;
    // The keys of `Record<Path, …>` are documented where they are listed.
    if (type.aliasSymbol?.name === 'Readonly' && (type as ts.ObjectType).objectFlags & ts.ObjectFlags.Mapped) return;
    for (const property of checker.getPropertiesOfType(type)) {
      if (!note(property, `${owner}.${property.name}`, at)) continue;
      const nested = checker.getNonNullableType(checker.getTypeOfSymbol(property));
      const literal = nested.symbol?.declarations?.some((one) => ts.isTypeLiteralNode(one));
      if (literal === true && nested.getCallSignatures().length === 0) members(nested, `${owner}.${property.name}`, at);
    }
  };
  const visit = (exported: ts.Symbol, within: string): void => {
    const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
    if (seen.has(symbol)) return;
    seen.add(symbol);
    const name = within + exported.name;
    if (!note(symbol, name)) return;
    const at = found.get(ourDeclaration(symbol)!)!.at;
    if (symbol.flags & ts.SymbolFlags.Class) {
      members(checker.getDeclaredTypeOfSymbol(symbol), name, at);
      for (const property of checker.getPropertiesOfType(checker.getTypeOfSymbol(symbol))) {
        if (property.name !== 'prototype') note(property, `${name}.${property.name}`);
      }
    } else if (symbol.flags & (ts.SymbolFlags.Interface | ts.SymbolFlags.TypeAlias)) {
      const type = checker.getDeclaredTypeOfSymbol(symbol);
      if (type.flags & (ts.TypeFlags.Object | ts.TypeFlags.UnionOrIntersection)) members(type, name, at);
    }
    if (symbol.flags & ts.SymbolFlags.ValueModule) {
      for (const inner of checker.getExportsOfModule(symbol)) visit(inner, `${name}.`);
    }
  };
  for (const entry of entries) {
    const module = checker.getSymbolAtLocation(program.getSourceFile(entry)!)!;
    for (const exported of checker.getExportsOfModule(module)) visit(exported, '');
  }
  return [...found.values(), ...computed.values()];
}
