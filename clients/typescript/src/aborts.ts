import { setMaxListeners } from "node:events";

/**
 * Calls `listener` when a signal fires; returns what ends that. One signal may be that of ten thousand calls, which
 * Node would warn of as a leak.
 */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (!signal) return () => undefined;
  setMaxListeners(0, signal);
  signal.addEventListener("abort", listener, { once: true });
  return () => signal.removeEventListener("abort", listener);
}
