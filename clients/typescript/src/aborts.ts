/** What to call when a signal fires. */
const listening = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls `listener` when a signal fires; returns what ends that. One signal may be that of ten thousand calls: it has
 * one listener for all of them, as Node looks through all that there are for each one, and warns of a leak.
 */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (!signal) return () => undefined;
  const known = listening.get(signal);
  const listeners = known ?? begun(signal);
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function begun(signal: AbortSignal): Set<() => void> {
  const listeners = new Set<() => void>();
  listening.set(signal, listeners);
  signal.addEventListener(
    "abort",
    () => {
      for (const listener of listeners) listener();
    },
    { once: true },
  );
  return listeners;
}
