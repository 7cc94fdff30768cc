/** Milliseconds of work to have at hand: several round trips. */
const LOOKAHEAD = 100;
/** Milliseconds between measurements. */
export const MEASURE_EVERY = 50;
/** A measurement below the last estimate brings it down by this share only: rates are noisy. */
const DECAY = 0.8;
/** The protocol's limit. */
export const WINDOW_MAX = 100_000;
/** What a handler that returns at once may have at hand; more buys nothing. */
const ADAPTIVE_MAX = 10_000;
/** A change smaller than this share is not worth a frame. */
const STEP = 0.25;

/**
 * How many jobs a worker asks for: its runners, plus what was finished in the last moments. A worker with slow
 * handlers holds what it runs and nothing else; one with fast handlers as many as it finishes during a round
 * trip. Pure: the time is an argument, in milliseconds.
 */
export class Window {
  private finished = 0;
  private rate = 0;
  /** How many jobs to ask for. */
  size: number;

  /** Makes a window; a `fixed` one never changes. */
  constructor(
    private measuredAt: number,
    private readonly runners: number,
    private readonly fixed?: number,
  ) {
    this.size = Math.min(fixed ?? runners, WINDOW_MAX);
  }

  /** Whether there is nothing to measure until jobs are finished again. */
  get isAtRest(): boolean {
    return this.fixed !== undefined || (this.rate === 0 && this.size === this.runners);
  }

  /** Takes in how many jobs were finished since the start; returns whether `size` changed. */
  measure(now: number, finished: number): boolean {
    const elapsed = now - this.measuredAt;
    if (this.fixed !== undefined || elapsed < MEASURE_EVERY) return false;
    this.measuredAt = now;
    const rate = (finished - this.finished) / elapsed;
    this.finished = finished;
    this.rate = Math.max(rate, this.rate * DECAY);
    if (this.rate < 0.001) this.rate = 0;
    const most = Math.max(this.runners, ADAPTIVE_MAX);
    const wanted = Math.min(this.runners + Math.floor(this.rate * LOOKAHEAD), most);
    if (Math.abs(wanted - this.size) <= this.size * STEP && wanted !== this.runners) return false;
    const changed = wanted !== this.size;
    this.size = wanted;
    return changed;
  }
}
