/** Runs what writes a file. An error of the system (a full disk, for example) then says which file, which it does not name otherwise. */
export function namingFile<R>(path: string, write: () => R): R {
  try {
    return write();
  } catch (error) {
    if (error instanceof Error && !error.message.includes(path)) {
      error.message = `${path}: ${error.message}`;
      (error as NodeJS.ErrnoException).path ??= path;
    }
    throw error;
  }
}
