import { checkpointConsoleUrl, playgroundUrl } from '../rest/consoleUrls.js';

/** Where weights were saved. */
export class SavedWeights {
  constructor(
    /** The `tinker://` path of the saved weights. */
    readonly path: string,
  ) {}

  /** The page of this checkpoint in the hosted service's console. */
  get consoleUrl(): string {
    return checkpointConsoleUrl(this.path);
  }
  /** The console's playground with this checkpoint. */
  get playgroundUrl(): string {
    return playgroundUrl(this.path);
  }
}
