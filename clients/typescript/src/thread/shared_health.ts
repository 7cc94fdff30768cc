/**
 * What the thread of the handlers shows to the health port, which is served by the thread of the stream: so it is
 * answered while a handler blocks the event loop. One writes, the other reads.
 */

/** Upper bounds of the histogram of handlers, in seconds; one more bucket has the rest. */
export const BUCKETS = [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30, 60, 300] as const;
/** Names that have a histogram of their own. */
const NAMES_MAX = 100;
/** The name of all others. */
const OTHER = "other";
/** Milliseconds between two signs of life of the event loop. */
const BEAT_EVERY = 1_000;

/** Before the histograms: when the loop ran last, jobs whose handlers run, handlers that ignored their end. */
const Cell = { BEAT: 0, RUNNING: 1, ABANDONED: 2 } as const;
const CELLS = 3;
/** Of one histogram: the buckets, the rest, and the sum in seconds. */
const COLUMNS = BUCKETS.length + 2;

/** The health port of a worker, as its thread needs it. */
export interface HealthSettings {
  readonly host: string;
  readonly port: number;
  /** How many handlers may run at once. */
  readonly slots: number;
  /** The labels of the histograms. */
  readonly names: readonly string[];
  readonly cells: SharedArrayBuffer;
}

/** Milliseconds of a clock that all threads of the process share. */
export function sharedNow(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

/** Returns the labels for the names of handlers. */
export function labelsOf(names: readonly string[]): string[] {
  const distinct = [...new Set(names)];
  return distinct.length <= NAMES_MAX ? distinct : [...distinct.slice(0, NAMES_MAX), OTHER];
}

/** Returns the memory for so many histograms. */
export function cellsFor(labels: number): SharedArrayBuffer {
  return new SharedArrayBuffer(8 * (CELLS + labels * COLUMNS));
}

/** The writer's side. */
export class HealthWriter {
  private readonly cells: Float64Array;
  private readonly offsets: ReadonlyMap<string, number>;
  private readonly timer: NodeJS.Timeout;

  /** Begins to give signs of life. */
  constructor({ cells, names }: HealthSettings) {
    this.cells = new Float64Array(cells);
    this.offsets = new Map(names.map((name, index) => [name, CELLS + index * COLUMNS]));
    this.beat();
    this.timer = setInterval(() => this.beat(), BEAT_EVERY).unref();
  }

  /** Notes a call of a handler that has ended, and how many jobs run now. */
  ended(name: string, milliseconds: number, running: number): void {
    const seconds = milliseconds / 1_000;
    const offset = this.offsets.get(name) ?? CELLS + (this.offsets.size - 1) * COLUMNS;
    const bucket = BUCKETS.findIndex((bound) => seconds <= bound);
    this.add(offset + (bucket < 0 ? BUCKETS.length : bucket), 1);
    this.add(offset + BUCKETS.length + 1, seconds);
    this.running(running);
  }

  /** Notes how many jobs run now. */
  running(jobs: number): void {
    this.cells[Cell.RUNNING] = jobs;
  }

  /** Notes a handler that ignored its end, and how many jobs run now. */
  abandoned(running: number): void {
    this.add(Cell.ABANDONED, 1);
    this.running(running);
  }

  /** Ends the signs of life. */
  close(): void {
    clearInterval(this.timer);
  }

  private beat(): void {
    this.cells[Cell.BEAT] = sharedNow();
  }

  private add(cell: number, value: number): void {
    this.cells[cell] = (this.cells[cell] ?? 0) + value;
  }
}

/** The reader's side. */
export class HealthReader {
  private readonly cells: Float64Array;

  /** Reads what the other thread writes. */
  constructor(private readonly settings: HealthSettings) {
    this.cells = new Float64Array(settings.cells);
  }

  /** Milliseconds since the event loop of the handlers ran last. */
  get blockedFor(): number {
    return sharedNow() - this.at(Cell.BEAT);
  }

  /** Jobs whose handlers run. */
  get running(): number {
    return this.at(Cell.RUNNING);
  }

  /** Handlers that ignored their end. */
  get abandoned(): number {
    return this.at(Cell.ABANDONED);
  }

  /** The histograms: how many calls took as long or less, for each bound and in all, and their sum. */
  get histograms(): { name: string; counts: number[]; sum: number }[] {
    return this.settings.names.map((name, index) => {
      const offset = CELLS + index * COLUMNS;
      let total = 0;
      const counts = Array.from({ length: BUCKETS.length + 1 }, (_, bucket) => {
        total += this.at(offset + bucket);
        return total;
      });
      return { name, counts, sum: this.at(offset + BUCKETS.length + 1) };
    });
  }

  private at(cell: number): number {
    return this.cells[cell] ?? 0;
  }
}
