const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]', '::1']);

const isLoopback = (host: string): boolean => LOOPBACK.has(host) || /^127(\.\d{1,3}){3}$/.test(host);

/**
 * Whether a Host header may address a service bound to `boundHost`. On loopback only loopback names may: a web page
 * that rebinds its own name to 127.0.0.1 sends that name, and is refused.
 */
export function allowsHost(boundHost: string, header: string | undefined): boolean {
  if (!isLoopback(boundHost)) return true;
  if (header === undefined) return false;
  const name = header.replace(/:\d+$/, '').toLowerCase();
  return isLoopback(name);
}
