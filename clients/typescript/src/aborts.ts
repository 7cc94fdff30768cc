/** What to call when a signal fires, and what ends that. */
interface Listening {
  readonly listeners: Set<() => void>;
  readonly end: () => void;
}

const listening = new WeakMap<AbortSignal, Listening>();

/**
 * Calls `listener` when a signal fires; returns what ends that. One signal may be that of ten thousand calls: it has
 * one listener for all of them, as Node looks through all that there are for each one, and warns of a leak. It has none
 * without a call: Node keeps a signal of `AbortSignal.any` or `timeout` in memory while it has one.
 */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (!signal) return () => undefined;
  const { listeners, end } = listening.get(signal) ?? begun(signal);
  listeners.add(listener);
  return () => {
    if (listeners.delete(listener) && listeners.size === 0) end();
  };
}

function begun(signal: AbortSignal): Listening {
  const listeners = new Set<() => void>();
  const handle = () => {
    for (const listener of listeners) listener();
  };
  const end = () => {
    signal.removeEventListener("abort", handle);
    listening.delete(signal);
  };
  const found = { listeners, end };
  listening.set(signal, found);
  signal.addEventListener("abort", handle, { once: true });
  return found;
}
