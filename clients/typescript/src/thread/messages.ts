/**
 * What the thread of the stream and the thread of the handlers say to each other. Everything here is cloned on
 * its way, so these are plain values.
 */
import type { MessagePort } from "node:worker_threads";
import type { ErrorFacts } from "../errors.js";
import type { ResolvedAddress } from "../identity.js";
import type { LogEntry } from "../stream/log_lines.js";
import type { LostLease } from "../stream/received.js";
import type { Report } from "../stream/reports.js";
import type { SettleItem } from "../stream/settles.js";
import type { LeasedJob, LeasedRun } from "../v1/job_pb.js";
import type { HealthSettings } from "./shared_health.js";

/** (id, delivery) of a lease. */
export type Lease = readonly [id: bigint, delivery: bigint];

/** Has the thread hold the stream of another worker. */
export interface Beginning {
  readonly settings: StreamSettings;
  /** The thread's end of the link to the worker's handlers. */
  readonly port: MessagePort;
}

/** Where a stream goes to. A token that is a function stays in the thread of the handlers, and is asked for there. */
export interface StreamAddress extends Pick<ResolvedAddress, "target" | "tls" | "metadata"> {
  readonly token: string | undefined;
  readonly asksForToken: boolean;
}

/** What a worker's function returned as the token of now, or why it did not. */
export interface TokenAnswer {
  readonly number: number;
  readonly token?: string;
  readonly error?: string;
}

/** What a stream starts with. */
export interface StreamSettings {
  readonly address: StreamAddress;
  /** The encoded `StreamOpen`. */
  readonly opening: Uint8Array;
  /** Jobs that can run at once. */
  readonly runners: number;
  /** A fixed window, or none to follow the work. */
  readonly window: number | undefined;
  readonly windowBytes: number;
  /** The shared counters; see `Counter`. */
  readonly counters: SharedArrayBuffer;
  /** The health port, if there is one. */
  readonly health: HealthSettings | undefined;
}

/** What handlers have done and said since the last message, in one go. */
export interface Outcomes {
  readonly kind: "outcomes";
  /** Reports come before the settles of the same jobs. */
  readonly reports: readonly [lease: Lease, report: Report][];
  readonly logs: readonly [lease: Lease, entry: LogEntry][];
  readonly ackIds: readonly bigint[];
  readonly ackDeliveries: readonly bigint[];
  readonly items: readonly SettleItem[];
}

/** From the handlers to the stream. */
export type ToStream =
  | Outcomes
  /** Take no more jobs, and release those that are not among these. */
  | { readonly kind: "drain"; readonly keep: readonly Lease[] }
  /** Take no jobs for a while, and release those that are not among these; or take jobs again. */
  | { readonly kind: "pause"; readonly keep: readonly Lease[] }
  | { readonly kind: "resume" }
  /** Release all that is held, but leave these to the server, which ends them. */
  | { readonly kind: "release"; readonly leave: readonly Lease[] }
  /** Drop a lease that another call has ended, or found to be lost. */
  | { readonly kind: "leave"; readonly lease: Lease; readonly isLost: boolean }
  /** Answer with the same number when the server has handled all that was said so far. */
  | { readonly kind: "fence"; readonly number: number }
  /** The answer to a question for a token. */
  | { readonly kind: "token"; readonly answer: TokenAnswer }
  /** End, whatever is under way. */
  | { readonly kind: "stop" };

/** What a frame of the server brought for the handlers. */
export interface Delivered {
  readonly kind: "delivered";
  readonly runs: readonly LeasedRun[];
  readonly jobs: readonly LeasedJob[];
  readonly lost: readonly LostLease[];
}

/** From the stream to the handlers. */
export type FromStream =
  | Delivered
  /** Jobs are taken again: those that came before this were released. */
  | { readonly kind: "resumed" }
  /** The health port is open. */
  | { readonly kind: "listening"; readonly port: number }
  | { readonly kind: "opened" }
  /** A token is needed: answer with the same number. */
  | { readonly kind: "token"; readonly number: number }
  | { readonly kind: "fence"; readonly number: number }
  | { readonly kind: "log"; readonly level: "info" | "warn" | "error"; readonly text: string }
  /** No stream is possible: an error that no second try changes. */
  | { readonly kind: "failed"; readonly name: string; readonly message: string; readonly facts: ErrorFacts }
  /** The session is drained and confirmed, or was stopped. */
  | { readonly kind: "ended" };

/** Indexes of the counters that both threads read, 64 bits each. */
export const Counter = { DONE: 0, FAILED: 1, RELEASED: 2, LOST: 3, HELD: 4, OPEN: 5, WINDOW: 6 } as const;

/** How many counters there are. */
export const COUNTERS = 7;
