import { pathToFileURL } from 'node:url';
import type * as HuggingFace from '@huggingface/hub';
import { CliError } from '../../CliError.js';
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
  /** Told which part of a file is uploaded, from 0 to 1. */
  readonly onUpload?: (name: string, fraction: number) => void;
}

/** One model repository of the Hugging Face hub, as far as uploading an adapter needs it. The protocol is their own package's. */
export class HubRepository {
  readonly #http: Http;
  readonly #hub: typeof HuggingFace;
  readonly #call: { readonly accessToken: string; readonly hubUrl: string; readonly fetch: typeof fetch };

  private constructor(http: Http, hub: typeof HuggingFace, token: string, endpoint: string) {
    this.#http = http;
    this.#hub = hub;
    // undici's fetch goes through the usual proxy variables.
    const fetching = ((url: string, init) => http.fetch(url, init as never)) as typeof fetch;
    this.#call = { accessToken: token, hubUrl: endpoint, fetch: fetching };
  }

  /** @throws CliError if the package is not installed */
  static async open(http: Http, token: string, endpoint: string): Promise<HubRepository> {
    return new HubRepository(http, await loadHub(), token, endpoint);
  }

  /** The user's name. @throws CliError if the token is not good */
  async whoami(): Promise<string> {
    const user = await this.#hub.whoAmI(this.#call).catch((error: unknown) => {
      if (statusOf(error) !== 401) throw refusal(error);
      throw new CliError('Not logged in to Hugging Face', { details: 'Run: hf auth login, or set HF_TOKEN' });
    });
    return user.name;
  }

  /** Makes the repository and the branch; what exists already is fine. */
  async create(repo: string, revision: string, isPrivate: boolean): Promise<void> {
    await this.#hub
      .createRepo({ ...this.#call, repo, visibility: isPrivate ? 'private' : 'public' })
      .catch(unlessThere);
    if (revision !== 'main') await this.#hub.createBranch({ ...this.#call, repo, branch: revision }).catch(unlessThere);
  }

  /** A text file of the repository; undefined if it has none. */
  async readText(repo: string, name: string, revision: string): Promise<string | undefined> {
    const { hubUrl, accessToken } = this.#call;
    const headers = { authorization: `Bearer ${accessToken}` };
    const url = `${hubUrl}/${repo}/resolve/${encodeURIComponent(revision)}/${name}`;
    const response = await this.#http.fetch(url, { headers });
    return response.ok ? response.text() : undefined;
  }

  /** Uploads files as one commit; gives the address of the commit or of the pull request. */
  async commit(
    repo: string,
    files: readonly HubFile[],
    { revision, message, createPr, onUpload }: CommitOptions,
  ): Promise<string> {
    const committing = this.#hub.commitIter({
      ...this.#call,
      repo,
      branch: revision,
      title: message,
      isPullRequest: createPr,
      operations: files.map(({ path, name }) => ({
        operation: 'addOrUpdate',
        path: name,
        content: pathToFileURL(path),
      })),
    });
    try {
      for (;;) {
        const { value, done } = await committing.next();
        if (done === true) return value?.pullRequestUrl ?? value?.commit.url ?? `${this.#call.hubUrl}/${repo}`;
        if (value.event === 'fileProgress' && value.state === 'uploading') onUpload?.(value.path, value.progress);
      }
    } catch (error) {
      throw refusal(error);
    }
  }
}

/** It is 11 MB with what it needs, for one command, so those who push install it. */
async function loadHub(): Promise<typeof HuggingFace> {
  try {
    return await import('@huggingface/hub');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new CliError('This command needs the package @huggingface/hub', {
      details:
        'Install it beside tinker-rx: npm install @huggingface/hub\n' +
        'Or run both once: npx -p tinker-rx -p @huggingface/hub tinker-rx checkpoint push-hf',
    });
  }
}

const statusOf = (error: unknown): number | undefined => (error as { readonly statusCode?: number }).statusCode;

function unlessThere(error: unknown): void {
  if (statusOf(error) !== 409) throw refusal(error);
}

function refusal(error: unknown): unknown {
  const status = statusOf(error);
  if (status === undefined) return error;
  return new CliError(`Hugging Face answered HTTP ${status}`, { details: (error as Error).message });
}
