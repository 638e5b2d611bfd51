const HERE = decodeURIComponent(new URL('.', import.meta.url).pathname);
const PLACE = /\(?((?:file:\/\/|https?:\/\/|[a-zA-Z]:[\\/]|\/)[^()]*:\d+:\d+)\)?$/;

/** Where the caller's code stands that led here, as `file:line:column`; undefined where the engine does not tell. */
export function callerLine(): string | undefined {
  const frames = new Error().stack?.split('\n').slice(1) ?? [];
  for (const frame of frames) {
    const place = PLACE.exec(frame.trim())?.[1];
    if (place === undefined || frame.includes(HERE)) continue;
    return place.replace(/^file:\/\//, '').replace(/\?[^:]*/, '');
  }
  return undefined;
}
