import type { MessagePort } from "node:worker_threads";
import type { LogEntry } from "../stream/log_lines.js";
import type { Report } from "../stream/reports.js";
import type { SettleItem } from "../stream/settles.js";
import {
  Counter,
  type FromStream,
  type Lease,
  type Outcomes,
  type StreamSettings,
  type ToStream,
} from "../thread/messages.js";
import type { LeasedJob } from "./leased.js";
import { openStream } from "./stream_thread.js";

/** Milliseconds that outcomes may gather before the next handler begins, which might block the loop. */
const GATHER_MAX = 1;

type Gathered = {
  -readonly [K in keyof Outcomes]: Outcomes[K] extends readonly (infer T)[] ? T[] : Outcomes[K];
};

/** The handlers' end of the link to the thread of the stream: outcomes gather, and go in one message. */
export class Link {
  private readonly port: MessagePort;
  /** Ends the stream, if it has not ended by itself. */
  readonly close: () => void;
  private gathered = nothing();
  private gatheredAt = 0;
  private isEmpty = true;
  private isEnded = false;

  /** Opens the stream. `receive` gets what its thread says; an error of the thread's own comes as "failed". */
  constructor(settings: StreamSettings, receive: (message: FromStream) => void) {
    const { port, close } = openStream(settings, (error) => {
      if (error) {
        const message = `the stream's thread broke: ${error.message}`;
        receive({ kind: "failed", name: "Internal", message, facts: { reason: "WORKER_BROKE" } });
      }
      if (!this.isEnded) receive({ kind: "ended" });
      this.isEnded = true;
    });
    this.port = port;
    this.close = close;
    port.on("message", (message: FromStream) => {
      if (message.kind === "ended") this.isEnded = true;
      receive(message);
    });
  }

  /** Settles a job as done, without a result. */
  ack(job: LeasedJob): void {
    this.begin();
    this.gathered.ackIds.push(job.id);
    this.gathered.ackDeliveries.push(job.delivery);
  }

  /** Settles a job in another way. */
  settle(item: SettleItem): void {
    this.begin();
    this.gathered.items.push(item);
  }

  /** Reports something of a job. Reports go before the settles of the same jobs. */
  report(job: LeasedJob, report: Report): void {
    this.begin();
    this.gathered.reports.push([[job.id, job.delivery], report]);
    // What a later attempt begins with must not wait for a handler that blocks the loop from now on.
    if (report.checkpoint || report.phase) this.flush();
  }

  /** Adds a line to the log of a job. */
  log(job: LeasedJob, entry: LogEntry): void {
    this.begin();
    this.gathered.logs.push([[job.id, job.delivery], entry]);
  }

  /** Sends what is gathered if it has waited: the next handler may block the loop. */
  flushOld(now: number): void {
    if (!this.isEmpty && now - this.gatheredAt > GATHER_MAX) this.flush();
  }

  /** Sends another message, after all that was gathered. */
  say(message: ToStream): void {
    this.flush();
    if (!this.isEnded) this.port.postMessage(message);
  }

  private begin(): void {
    if (!this.isEmpty) return;
    this.isEmpty = false;
    this.gatheredAt = performance.now();
    setImmediate(() => this.flush());
  }

  private flush(): void {
    if (this.isEmpty) return;
    const { gathered } = this;
    this.gathered = nothing();
    this.isEmpty = true;
    if (!this.isEnded) this.port.postMessage(gathered);
  }
}

function nothing(): Gathered {
  return { kind: "outcomes", reports: [], logs: [], ackIds: [], ackDeliveries: [], items: [] };
}

/** What a worker has done since it started, and what it is doing. */
export interface WorkerStats {
  /** Jobs that were acked. */
  readonly done: number;
  /** Jobs that failed; those that were cancelled count here. */
  readonly failed: number;
  /** Jobs that were given back; those that are snoozed or wait for children count here. */
  readonly released: number;
  /** Outcomes that came too late, because the lease was lost. */
  readonly lost: number;
  /** Jobs whose handlers run. */
  readonly running: number;
  /** Handlers that run on after their end; others have their places. */
  readonly stuck: number;
  /** Jobs at hand that have not started. */
  readonly waiting: number;
  /** How many jobs it asks to have at hand. */
  readonly window: number;
  /** Whether it takes no jobs, after failures in a row. */
  readonly paused: boolean;
  /** Whether there is a stream. */
  readonly connected: boolean;
}

/** Returns the counters that both threads share. */
export function statsOf(
  counters: BigInt64Array,
  running: number,
  stuck: number,
  paused: boolean,
): WorkerStats {
  const at = (index: number) => Number(Atomics.load(counters, index));
  return {
    done: at(Counter.DONE),
    failed: at(Counter.FAILED),
    released: at(Counter.RELEASED),
    lost: at(Counter.LOST),
    running,
    stuck,
    waiting: Math.max(0, at(Counter.HELD) - running),
    window: paused ? 0 : at(Counter.WINDOW),
    paused,
    connected: at(Counter.OPEN) === 1,
  };
}

/** Returns the lease of a job. */
export function leaseOf(job: LeasedJob): Lease {
  return [job.id, job.delivery];
}
