/** What to stop at a signal of the process. There is one listener, of however many workers: Node warns of a leak. */
const stops = new Map<NodeJS.Signals, Set<() => void>>();

function handle(signal: NodeJS.Signals): void {
  for (const stop of [...(stops.get(signal) ?? [])]) stop();
}

/** Calls `stop` at each of these signals; returns what ends that. */
export function onSignals(signals: readonly NodeJS.Signals[], stop: () => void): () => void {
  for (const signal of signals) {
    const there = stops.get(signal);
    if (!there) process.on(signal, handle);
    stops.set(signal, (there ?? new Set()).add(stop));
  }
  return () => {
    for (const signal of signals) {
      const there = stops.get(signal);
      if (!there?.delete(stop) || there.size > 0) continue;
      stops.delete(signal);
      process.off(signal, handle);
    }
  };
}
