import { createReadStream } from 'node:fs';
import { open, readFile, stat } from 'node:fs/promises';
import type { RequestInit, Response } from 'undici';
import { CliError } from '../../CliError.js';
import { fileDigest } from '../../fileDigest.js';
import type { Http } from '../../http.js';

/** A file to upload: where it is, and its name in the repository. */
export interface HubFile {
  readonly path: string;
  readonly name: string;
}

export interface CommitOptions {
  readonly revision: string;
  readonly message: string;
  readonly createPr: boolean;
  readonly onUpload?: (name: string, bytes: number, totalBytes: number) => void;
}

const SAMPLE_BYTES = 512;

/** One model repository of the Hugging Face hub, as far as uploading an adapter needs it. */
export class HubRepository {
  readonly #http: Http;
  readonly #token: string;

  constructor(
    http: Http,
    token: string,
    readonly endpoint: string,
    readonly id: string,
  ) {
    this.#http = http;
    this.#token = token;
  }

  /** The user's name. @throws CliError where the token is not good. */
  static async whoami(http: Http, token: string, endpoint: string): Promise<string> {
    const response = await http.fetch(`${endpoint}/api/whoami-v2`, { headers: { authorization: `Bearer ${token}` } });
    const { name } = (await response.json().catch(() => ({}))) as { readonly name?: string };
    if (!response.ok || name === undefined)
      throw new CliError('Not logged in to Hugging Face', { details: 'Run: hf auth login, or set HF_TOKEN' });
    return name;
  }

  /** Makes the repository; one that is there already is fine. */
  async create(isPrivate: boolean): Promise<void> {
    const [organization, name] = this.id.split('/');
    await this.#call('api/repos/create', { name, organization, private: isPrivate, type: 'model' }, [409]);
  }

  async createBranch(revision: string): Promise<void> {
    await this.#call(`api/models/${this.id}/branch/${encodeURIComponent(revision)}`, {}, [409]);
  }

  /** A text file of the repository; undefined where it has none. */
  async readText(name: string, revision: string): Promise<string | undefined> {
    const response = await this.#fetch(`${this.id}/resolve/${encodeURIComponent(revision)}/${name}`, {});
    return response.ok ? response.text() : undefined;
  }

  /** Uploads files as one commit; gives the address of the commit or of the pull request. */
  async commit(files: readonly HubFile[], { revision, message, createPr, onUpload }: CommitOptions): Promise<string> {
    const at = encodeURIComponent(revision);
    const large = await this.#largeFiles(files, at);
    const lines: object[] = [{ key: 'header', value: { summary: message, description: '' } }];
    for (const file of files) {
      if (large.has(file.name)) lines.push({ key: 'lfsFile', value: await this.#uploadLarge(file, onUpload) });
      else
        lines.push({
          key: 'file',
          value: { path: file.name, content: (await readFile(file.path)).toString('base64'), encoding: 'base64' },
        });
    }
    const response = await this.#fetch(`api/models/${this.id}/commit/${at}${createPr ? '?create_pr=1' : ''}`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-ndjson' },
      body: lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
    });
    const answer = (await checked(response)) as { readonly commitUrl?: string; readonly pullRequestUrl?: string };
    return answer.pullRequestUrl ?? answer.commitUrl ?? `${this.endpoint}/${this.id}`;
  }

  /** The hub decides which files go to its large-file store. */
  async #largeFiles(files: readonly HubFile[], at: string): Promise<ReadonlySet<string>> {
    const described = await Promise.all(
      files.map(async ({ path, name }) => ({
        path: name,
        size: (await stat(path)).size,
        sample: await sampleOf(path),
      })),
    );
    const answer = (await this.#call(`api/models/${this.id}/preupload/${at}`, { files: described })) as {
      readonly files: readonly { readonly path: string; readonly uploadMode: string }[];
    };
    return new Set(answer.files.filter(({ uploadMode }) => uploadMode === 'lfs').map(({ path }) => path));
  }

  async #uploadLarge({ path, name }: HubFile, onUpload: CommitOptions['onUpload']): Promise<object> {
    const { size } = await stat(path);
    const oid = await fileDigest(path, 'sha256', 'hex');
    const batch = { operation: 'upload', transfers: ['basic'], hash_algo: 'sha256', objects: [{ oid, size }] };
    const { objects } = (await this.#call(
      `${this.id}.git/info/lfs/objects/batch`,
      batch,
      [],
      'application/vnd.git-lfs+json',
    )) as LfsBatch;
    const { actions, error } = objects[0] ?? {};
    if (error !== undefined) throw new CliError(`The hub refused ${name}: ${error.message}`);
    // No action: the hub has these bytes already.
    if (actions?.upload !== undefined) {
      const body = progressStream(path, (bytes) => onUpload?.(name, bytes, size));
      const headers = { ...actions.upload.header, 'content-length': String(size) };
      const sent = await this.#http.fetch(actions.upload.href, { method: 'PUT', headers, body, duplex: 'half' });
      if (!sent.ok) throw new CliError(`Uploading ${name} failed: HTTP ${sent.status}`);
    }
    if (actions?.verify !== undefined)
      await checked(
        await this.#http.fetch(actions.verify.href, {
          method: 'POST',
          headers: {
            ...actions.verify.header,
            authorization: `Bearer ${this.#token}`,
            'content-type': 'application/vnd.git-lfs+json',
          },
          body: JSON.stringify({ oid, size }),
        }),
      );
    return { path: name, algo: 'sha256', oid, size };
  }

  #fetch(path: string, init: RequestInit): Promise<Response> {
    const headers = { authorization: `Bearer ${this.#token}`, ...(init.headers as Record<string, string> | undefined) };
    return this.#http.fetch(`${this.endpoint}/${path}`, { ...init, headers });
  }

  async #call(path: string, json: object, fine: readonly number[] = [], type = 'application/json'): Promise<unknown> {
    const headers = { 'content-type': type, accept: type };
    return checked(await this.#fetch(path, { method: 'POST', headers, body: JSON.stringify(json) }), fine);
  }
}

interface LfsAction {
  readonly href: string;
  readonly header?: Readonly<Record<string, string>>;
}
interface LfsBatch {
  readonly objects: readonly {
    readonly actions?: { readonly upload?: LfsAction; readonly verify?: LfsAction };
    readonly error?: { readonly message: string };
  }[];
}

async function checked(response: Response, fine: readonly number[] = []): Promise<unknown> {
  const text = await response.text();
  if (response.ok || fine.includes(response.status)) return /^\s*[{[]/.test(text) ? JSON.parse(text) : {};
  const reason = /"error"\s*:\s*"([^"]*)"/.exec(text)?.[1] ?? text.slice(0, 200);
  throw new CliError(`Hugging Face answered HTTP ${response.status}`, { details: reason });
}

async function sampleOf(path: string): Promise<string> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(SAMPLE_BYTES), 0, SAMPLE_BYTES, 0);
    return buffer.subarray(0, bytesRead).toString('base64');
  } finally {
    await file.close();
  }
}

async function* progressStream(path: string, onBytes: (bytes: number) => void): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of createReadStream(path)) {
    yield chunk as Buffer;
    bytes += (chunk as Buffer).length;
    onBytes(bytes);
  }
}
