import { create } from "@bufbuild/protobuf";
import { messageMilliseconds } from "../duration.js";
import { Internal } from "../errors.js";
import { type LeasedJob, type LeasedRun, LeaseReason } from "../v1/job_pb.js";
import {
  RevokeReason,
  type StreamOpen,
  type StreamOpened,
  type StreamRequest,
  StreamRequestSchema,
  type StreamResponse,
  type StreamRevoke,
  type StreamSettle,
} from "../v1/job_service_pb.js";
import { AskedWindow } from "./asked_window.js";
import { Draining } from "./draining.js";
import { Heartbeat } from "./heartbeat.js";
import { type LogEntry, LogLines } from "./log_lines.js";
import { heldOf, interruptedRelease, partOfRun, type Received } from "./received.js";
import { type Report, Reports } from "./reports.js";
import { type SettleItem, Settles } from "./settles.js";

/**
 * The worker's side of the stream, as a state machine. Pure: no socket, no clock.
 *
 * A session outlives its streams. It returns the frames to send (`open` first, then settles, reports, window,
 * drain, and a heartbeat after a silence), handles those of the server, and keeps what must survive a broken
 * connection: the held leases and the unconfirmed settles. It knows nothing of handlers.
 */
export class Session {
  private settles = new Settles();
  private readonly reports = new Reports();
  private readonly logLines = new LogLines();
  private readonly heartbeat = new Heartbeat();
  private readonly window: AskedWindow;
  private resent: StreamSettle[] = [];
  private settledBefore = new Map<bigint, bigint>();
  /** id → delivery of the leases that are not settled. */
  readonly held = new Map<bigint, bigint>();
  /** The id of the session at the server. */
  private session = "";
  private readonly draining = new Draining();
  /** Fences that the frame at hand has passed. */
  private passed: number[] = [];
  // State of the current stream, if there is one.
  private hasStream = false;
  /** Whether the server has answered on the current stream. */
  isOpen = false;
  private mustOpen = false;

  /** Begins a session with its opening frame. */
  constructor(
    private readonly opening: StreamOpen,
    window: number,
    windowBytes: number,
  ) {
    this.window = new AskedWindow(window, windowBytes);
  }

  /** Begins a stream: `nextFrame` returns its first frame. */
  connect(now: number): void {
    this.hasStream = true;
    this.isOpen = false;
    this.mustOpen = true;
    this.window.repeat();
    this.draining.connect();
    this.resent = [];
    this.heartbeat.connect(now);
  }

  /** Ends the stream. Leases and settles are kept for the next one. */
  disconnect(): void {
    this.hasStream = false;
    this.isOpen = false;
    this.mustOpen = false;
  }

  /** Starts a new session with the next stream: another stream has taken this one and its leases. */
  handleTaken(): void {
    this.session = "";
  }

  /** Drops all that is unconfirmed: the server refused some of it, and would refuse it again. */
  handleRefusal(): void {
    this.settles = new Settles();
    this.reports.clear();
    this.logLines.clear();
  }

  /**
   * Handles a frame of the server; ask for `nextFrame` next. Throws Internal for a second answer to `open`, and for far
   * too many jobs: nothing of the frame counts then.
   */
  handleFrame(now: number, frame: StreamResponse): Received {
    if (frame.opened && this.isOpen) {
      throw new Internal("the server opened a stream twice", { reason: "UNEXPECTED_ANSWER" });
    }
    this.window.refuseSurplus(frame, this.held.size, this.settles.jobs);
    const { jobs, runs, unhandled } = frame;
    const received: Received = { jobs: [], runs: [], lost: [], reports: [], fences: [], unhandled };
    this.passed = received.fences;
    this.heartbeat.frameReceived(now);
    if (frame.opened) this.handleOpened(now, frame.opened, received);
    for (const confirm of frame.confirms) {
      for (const report of this.settles.handleConfirm(confirm)) received.reports.push(report);
    }
    if (this.settledBefore.size > 0 && !this.settles.hasUnconfirmed) this.settledBefore.clear();
    for (const run of runs) this.takeRun(run, received);
    for (const job of jobs) this.takeJob(job, received);
    // After the jobs: a job may be leased and revoked before its frame is sent.
    for (const revoke of frame.revokes) this.handleRevoke(revoke, received);
    if (frame.goaway) received.goaway = frame.goaway;
    return received;
  }

  private handleOpened(now: number, opened: StreamOpened, received: Received): void {
    received.opened = opened;
    this.session = opened.session;
    this.isOpen = true;
    this.heartbeat.opened(now, messageMilliseconds(opened.heartbeatInterval));
    this.resent = this.settles.resend();
    this.settledBefore = this.settles.unconfirmedLeases();
    const held = heldOf(opened);
    for (const [id, delivery] of [...this.held]) {
      if (held.get(id) !== delivery) this.lose(id, delivery, RevokeReason.LEASE_LOST, received);
    }
    for (const [id, delivery] of held) {
      if (this.held.get(id) !== delivery && this.settledBefore.get(id) !== delivery) {
        // Leased in a frame that never arrived. Every frame of this stream would keep it leased.
        this.settles.add(interruptedRelease(id, delivery));
      }
    }
    this.reports.repeat();
  }

  private handleRevoke({ id, delivery, reason }: StreamRevoke, received: Received): void {
    if (this.held.get(id) !== delivery) return; // settled meanwhile, or lost already
    if (reason === RevokeReason.CANCELLED) received.lost.push({ id, delivery, reason });
    else this.lose(id, delivery, reason, received);
  }

  private takeRun(run: LeasedRun, received: Received): void {
    this.heartbeat.leased(Number(run.leaseMs), this.held.size > 0);
    const isNew: boolean[] = run.payloads.map((_, index) => {
      const id = run.firstId + BigInt(index);
      const isNewJob = this.isNew(id, run.delivery, false, received);
      this.held.set(id, run.delivery);
      return isNewJob;
    });
    if (isNew.every(Boolean)) {
      received.runs.push(run);
      return;
    }
    isNew.forEach((isNewJob, index) => {
      if (isNewJob) received.runs.push(partOfRun(run, index));
    });
  }

  private takeJob(job: LeasedJob, received: Received): void {
    this.heartbeat.leased(Number(job.leaseMs), this.held.size > 0);
    const isResumed = job.reason === LeaseReason.RESUMED;
    const isNew = this.isNew(job.id, job.delivery, isResumed, received);
    this.held.set(job.id, job.delivery);
    if (isNew) received.jobs.push(job);
  }

  /** Returns whether to run a leased job: not one whose lease runs already. A newer lease ends an older one. */
  private isNew(id: bigint, delivery: bigint, isResumed: boolean, received: Received): boolean {
    if (isResumed && this.settledBefore.get(id) === delivery) return false;
    const known = this.held.get(id);
    if (known === delivery) return false;
    if (known !== undefined) this.lose(id, known, RevokeReason.LEASE_LOST, received);
    return true;
  }

  private lose(id: bigint, delivery: bigint, reason: RevokeReason, received: Received): void {
    this.held.delete(id);
    this.reports.lose(id);
    this.logLines.forget(id, delivery);
    received.lost.push({ id, delivery, reason });
  }

  /** Settles a job as done. Returns false if its lease was lost meanwhile; nothing is sent then. */
  ack(id: bigint, delivery: bigint): boolean {
    if (this.held.get(id) !== delivery) return false;
    this.held.delete(id);
    this.reports.forget(id);
    this.settles.ack(id, delivery);
    return true;
  }

  /** Settles a job in another way. Returns false if its lease was lost meanwhile. */
  settle(item: SettleItem): boolean {
    const { id, delivery } = item.kind === "ack" ? item : item.item;
    if (this.held.get(id) !== delivery) return false;
    this.held.delete(id);
    if (item.kind === "ack") this.reports.forget(id);
    else this.reports.keepUntilSent(id);
    this.settles.add(item);
    return true;
  }

  /** Drops a lease without a settle: the server ends it, or has ended it by another call. */
  leave(id: bigint, delivery: bigint): void {
    if (this.held.get(id) !== delivery) return;
    this.held.delete(id);
    this.reports.forget(id);
    this.window.repeat(); // any frame has the server look for other jobs
  }

  /** Has a frame of the server bring this number when it has handled all that was said so far. */
  fence(number: number): void {
    this.settles.fence(() => this.passed.push(number));
  }

  /** Reports something of a job, unless its lease was lost. */
  report(id: bigint, delivery: bigint, report: Report): void {
    if (this.held.get(id) === delivery) this.reports.add(id, delivery, report);
  }

  /** Adds a line to the log of a job, unless its lease was lost. */
  log(id: bigint, delivery: bigint, entry: LogEntry): void {
    if (this.held.get(id) === delivery) this.logLines.add(id, delivery, entry);
  }

  /** Sets how many jobs may be unfinished here at any time; 0 pauses. */
  setWindow(window: number): void {
    this.window.set(window);
  }

  /** Asks for no more jobs. */
  drain(): void {
    this.draining.isWanted = true;
  }

  /** Whether the drain is confirmed, so that nothing is on its way here, and everything settled was sent. */
  get mayHalfClose(): boolean {
    const isUnsent = this.resent.length > 0 || this.reports.hasWaiting || this.logLines.hasWaiting;
    return this.draining.isConfirmed && this.held.size === 0 && !isUnsent && !this.settles.hasWaiting;
  }

  /** Whether nothing is held and the server has confirmed every settle. */
  get isConfirmed(): boolean {
    return this.held.size === 0 && !this.settles.hasWaiting && !this.settles.hasUnconfirmed;
  }

  /** Whether the session drains and everything is confirmed. */
  get isOver(): boolean {
    return this.draining.isWanted && this.isConfirmed;
  }

  /** Returns the next frame that is due, if there is one. Call until there is none. */
  nextFrame(now: number): StreamRequest | undefined {
    const frame = this.mustOpen ? this.openFrame() : this.isOpen ? this.dueFrame(now) : undefined;
    if (frame) this.heartbeat.frameSent(now);
    return frame;
  }

  /** When to ask for `nextFrame` again, if nothing happens before. */
  nextDeadline(): number {
    return this.isOpen ? this.heartbeat.nextFrame(this.held.size > 0) : Number.POSITIVE_INFINITY;
  }

  /** Returns when to call `isSilent` again. */
  nextSilenceCheck(): number {
    return this.hasStream ? this.heartbeat.nextSilenceCheck() : Number.POSITIVE_INFINITY;
  }

  /** Returns whether the server was silent for too long: end the stream and open another. */
  isSilent(now: number): boolean {
    return this.heartbeat.isSilent(now) && this.hasStream;
  }

  private openFrame(): StreamRequest {
    this.mustOpen = false;
    const frame = create(StreamRequestSchema, { open: { ...this.opening, session: this.session } });
    this.window.put(frame, this.settles.jobs);
    return frame;
  }

  private dueFrame(now: number): StreamRequest | undefined {
    const frame = create(StreamRequestSchema);
    if (this.reports.hasWaiting || this.logLines.hasWaiting) {
      // In a frame of their own: within one, settles are handled first, and end the lease.
      frame.extends = this.reports.take();
      frame.logs = this.logLines.take();
      return frame;
    }
    this.draining.ask(this.settles);
    const settle = this.resent.shift() ?? this.settles.take();
    if (settle) frame.settles.push(settle);
    const isWindowPut = this.window.put(frame, this.settles.jobs);
    const isDrainPut = this.draining.put(frame);
    const isDue = settle || isWindowPut || isDrainPut || now >= this.nextDeadline();
    return isDue ? frame : undefined;
  }
}
