import { randomUUID } from 'node:crypto';
import type { LoraConfig } from '../../wire/index.js';

/** The files of an adapter, as `save_weights_external` writes them. */
export const ADAPTER_FILES = ['adapter_model.safetensors', 'adapter_config.json'] as const;

export interface Upload {
  readonly id: string;
  readonly baseModel: string;
  readonly loraConfig: LoraConfig;
  readonly projectId: string | undefined;
  readonly expiresAt: number;
  readonly files: Map<string, Uint8Array>;
}

/** Uploads that were begun and not finished: in memory, a few at a time, forgotten when their addresses expire. */
export class Uploads {
  readonly #byId = new Map<string, Upload>();

  constructor(
    private readonly most: number,
    private readonly now: () => number,
  ) {}

  begin(start: Omit<Upload, 'id' | 'files'>): Upload {
    const upload: Upload = { ...start, id: `upload-${randomUUID()}`, files: new Map() };
    this.#byId.set(upload.id, upload);
    for (const id of this.#byId.keys()) {
      if (this.#byId.size <= this.most && this.find(id) !== undefined) break;
      this.#byId.delete(id);
    }
    return upload;
  }

  find(id: string): Upload | undefined {
    const upload = this.#byId.get(id);
    return upload !== undefined && upload.expiresAt > this.now() ? upload : undefined;
  }

  end(id: string): void {
    this.#byId.delete(id);
  }
}
