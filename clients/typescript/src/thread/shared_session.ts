import { fromBinary } from "@bufbuild/protobuf";
import { interruptedRelease, type Received } from "../stream/received.js";
import { Session } from "../stream/session.js";
import type { SettleItem, SettleReport } from "../stream/settles.js";
import { MEASURE_EVERY, Window } from "../stream/window.js";
import {
  FailAction,
  ReleaseReason,
  StreamOpenSchema,
  type StreamRequest,
  type StreamResponse,
} from "../v1/job_service_pb.js";
import { Counter, type Lease, type Outcomes, type StreamSettings } from "./messages.js";

/** The outcomes that the health port counts. */
export const OUTCOMES = [
  ...(["completed", "failed", "retried", "snoozed"] as const),
  ...(["cancelled", "dead", "rate_limited", "released"] as const),
] as const;
/** One of them. */
type OutcomeName = (typeof OUTCOMES)[number];

const RELEASES: Partial<Record<ReleaseReason, OutcomeName>> = {
  [ReleaseReason.SNOOZE]: "snoozed",
  [ReleaseReason.LIMITED]: "rate_limited",
};
const FAILS: Partial<Record<FailAction, OutcomeName>> = {
  [FailAction.CANCEL]: "cancelled",
  [FailAction.DEAD]: "dead",
};

function outcomeOf(item: SettleItem): OutcomeName {
  if (item.kind === "ack") return "completed";
  if (item.kind === "release") return RELEASES[item.item.why] ?? "released";
  return FAILS[item.item.then] ?? (item.isAsked ? "retried" : "failed");
}

/** The session with its window and its counters, as the thread of the stream uses it. */
export class SharedSession {
  /** The state machine. */
  readonly session: Session;
  private readonly window: Window;
  private readonly counters: BigInt64Array;
  private finished = 0;
  /** Whether it takes no more jobs. */
  isDraining = false;
  private isPaused = false;
  /** Jobs by outcome, for the health port. */
  readonly settled = Object.fromEntries(OUTCOMES.map((name) => [name, 0])) as Record<OutcomeName, number>;

  /** Makes the session of a worker. */
  constructor(settings: StreamSettings) {
    this.window = new Window(performance.now(), settings.runners, settings.window);
    const opening = fromBinary(StreamOpenSchema, settings.opening);
    this.session = new Session(opening, this.window.size, settings.windowBytes);
    this.counters = new BigInt64Array(settings.counters);
    this.updateCounters();
  }

  /** Takes what handlers have done and said. */
  take({ reports, logs, ackIds, ackDeliveries, items }: Outcomes): void {
    for (const [[id, delivery], report] of reports) this.session.report(id, delivery, report);
    for (const [[id, delivery], entry] of logs) this.session.log(id, delivery, entry);
    ackIds.forEach((id, index) => {
      const isHeld = this.session.ack(id, ackDeliveries[index] ?? 0n);
      if (isHeld) this.settled.completed += 1;
      this.count(isHeld ? Counter.DONE : Counter.LOST);
    });
    for (const item of items) this.takeItem(item);
    this.measure(performance.now());
  }

  private takeItem(item: SettleItem): void {
    const counter = { ack: Counter.DONE, fail: Counter.FAILED, release: Counter.RELEASED }[item.kind];
    const isHeld = this.session.settle(item);
    if (isHeld) this.settled[outcomeOf(item)] += 1;
    this.count(isHeld ? counter : Counter.LOST);
  }

  /** Handles a frame of the server and returns what it brought. Throws Internal for a wrong one. */
  handleFrame(frame: StreamResponse): Received {
    const now = performance.now();
    const received = this.session.handleFrame(now, frame);
    if (this.isDraining || this.isPaused) this.releaseReceived(received);
    for (const report of received.reports) this.countLate(report);
    this.measure(now);
    return received;
  }

  /** Jobs that were leased before the server knew that this worker stops or pauses. */
  private releaseReceived(received: Received): void {
    for (const { id, delivery } of received.jobs) this.session.settle(interruptedRelease(id, delivery));
    for (const { firstId, delivery, payloads } of received.runs) {
      payloads.forEach((_, index) => {
        this.session.settle(interruptedRelease(firstId + BigInt(index), delivery));
      });
    }
    received.jobs = [];
    received.runs = [];
  }

  private countLate({ isLost, kind }: SettleReport): void {
    if (!isLost) return;
    Atomics.add(this.counters, Counter.LOST, 1n);
    if (kind === "ack") Atomics.sub(this.counters, Counter.DONE, 1n);
  }

  /** Takes no more jobs, and releases all but those to keep. */
  drain(keep: readonly Lease[]): void {
    this.isDraining = true;
    this.session.drain();
    this.releaseOthers(keep);
  }

  /** Takes no jobs for a while, and releases all but those to keep. */
  pauseWork(keep: readonly Lease[]): void {
    this.isPaused = true;
    this.session.setWindow(0);
    this.releaseOthers(keep);
  }

  /** Takes jobs again. */
  resumeWork(): void {
    this.isPaused = false;
    this.session.setWindow(this.window.size);
  }

  private releaseOthers(keep: readonly Lease[]): void {
    const kept = new Map(keep);
    for (const [id, delivery] of [...this.session.held]) {
      if (kept.get(id) !== delivery) this.takeItem(interruptedRelease(id, delivery));
    }
    this.updateCounters();
  }

  /** Releases all that is held; what to leave is the server's to end. */
  release(leave: readonly Lease[]): void {
    for (const [id, delivery] of leave) this.session.leave(id, delivery);
    this.drain([]);
  }

  /** Drops a lease that another call has ended, or found to be lost. */
  leave([id, delivery]: Lease, isLost: boolean): void {
    this.session.leave(id, delivery);
    this.count(isLost ? Counter.LOST : Counter.RELEASED);
  }

  /** Returns the frames that are due, up to a bound. */
  nextFrame(now: number): StreamRequest | undefined {
    return this.session.nextFrame(now);
  }

  /** Milliseconds until a frame, a check for silence or a measurement is due. */
  pause(now: number): number {
    const due = Math.min(this.session.nextDeadline(), this.session.nextSilenceCheck()) - now;
    return Math.max(0, this.window.isAtRest ? due : Math.min(due, 2 * MEASURE_EVERY));
  }

  /** Adapts the window to the work. */
  measure(now: number): void {
    if (this.window.measure(now, this.finished) && !this.isPaused) this.session.setWindow(this.window.size);
    this.updateCounters();
  }

  private count(counter: number): void {
    this.finished += 1;
    Atomics.add(this.counters, counter, 1n);
  }

  /** Shows what the other thread may read at any time. */
  updateCounters(): void {
    Atomics.store(this.counters, Counter.HELD, BigInt(this.session.held.size));
    Atomics.store(this.counters, Counter.OPEN, this.session.isOpen ? 1n : 0n);
    Atomics.store(this.counters, Counter.WINDOW, BigInt(this.window.size));
  }
}
