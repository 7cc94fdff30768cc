/** Time that a test has skipped at a server, by its target: whoever waits there is earlier at the end of their time. */
const listeners = new Map<string, Set<(milliseconds: number) => void>>();

/** Calls `listener` whenever time is skipped at a server; returns what ends that. */
export function onSkip(target: string, listener: (milliseconds: number) => void): () => void {
  const there = listeners.get(target) ?? new Set();
  listeners.set(target, there.add(listener));
  return () => {
    there.delete(listener);
    if (there.size === 0 && listeners.get(target) === there) listeners.delete(target);
  };
}

/** Tells all who wait at a server that so much of its time has gone by. */
export function skip(target: string, milliseconds: number): void {
  for (const listener of [...(listeners.get(target) ?? [])]) listener(milliseconds);
}
