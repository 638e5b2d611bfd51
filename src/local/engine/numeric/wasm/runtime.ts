/** The few names of WebAssembly used here: neither the ES library nor Node's types declare them. */
interface WebAssemblyApi {
  readonly Memory: new (limits: {
    readonly initial: number;
    readonly maximum: number;
    readonly shared: true;
  }) => WasmMemory;
  readonly Module: new (bytes: Uint8Array) => object;
  readonly validate: (bytes: Uint8Array) => boolean;
  readonly Instance: new (module: object, imports: object) => { readonly exports: Readonly<Record<string, unknown>> };
}

export interface WasmMemory {
  readonly buffer: SharedArrayBuffer;
  grow(pages: number): number;
}

const { Memory, Module, Instance, validate } = (globalThis as unknown as { readonly WebAssembly: WebAssemblyApi })
  .WebAssembly;

/** A memory of 64 KiB pages that threads can share. */
export const createMemory = (initial: number, maximum: number): WasmMemory =>
  new Memory({ initial, maximum, shared: true });

/** Whether this Node compiles the module. */
export const compiles = (bytes: Uint8Array): boolean => validate(bytes);

/** Compiles and instantiates a module that imports the memory as `env.memory`; returns what it exports. */
export function instantiate(bytes: Uint8Array, memory: WasmMemory): Readonly<Record<string, unknown>> {
  return new Instance(new Module(bytes), { env: { memory } }).exports;
}
