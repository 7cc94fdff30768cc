/** Growing pauses with jitter, in milliseconds. */
export interface Pauses {
  /** The first pause; each following one is twice as long. */
  readonly first: number;
  /** The longest pause. */
  readonly longest: number;
}

/** Between tries of a call whose outcome is unknown. */
export const RETRY: Pauses = { first: 50, longest: 2_000 };

/** Between tries to open the stream of a worker. */
export const RECONNECT: Pauses = { first: 100, longest: 5_000 };

/**
 * Returns the pause after this many tries, 1 …. It is drawn from its upper half, so that many clients that
 * lost the same server do not return together.
 */
export function pauseAfter(pauses: Pauses, tries: number, chance: () => number): number {
  const whole = Math.min(pauses.longest, pauses.first * 2 ** Math.min(Math.max(tries - 1, 0), 30));
  return whole * (0.5 + 0.5 * chance());
}
