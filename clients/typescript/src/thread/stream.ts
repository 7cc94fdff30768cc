import { toBinary } from "@bufbuild/protobuf";
import { type ClientDuplexStream, Client as GrpcClient } from "@grpc/grpc-js";
import { pauseAfter, RECONNECT } from "../backoff.js";
import { ownConnection } from "../channel.js";
import { messageMilliseconds } from "../duration.js";
import * as errors from "../errors.js";
import type { Identity } from "../identity.js";
import { pathOf } from "../services.js";
import { errorOf } from "../status.js";
import { readFrame } from "../stream/frames.js";
import { goawayPatience, type Received } from "../stream/received.js";
import { ASKED_MAX } from "../timers.js";
import {
  JobService,
  type StreamGoaway,
  StreamRequestSchema,
  type StreamResponse,
} from "../v1/job_service_pb.js";
import { Access } from "./access.js";
import type { StreamAddress } from "./messages.js";
import type { SharedSession } from "./shared_session.js";

type Call = ClientDuplexStream<Uint8Array, Buffer>;

/** Refusals of a stream that no second try changes. */
const FATAL = [
  ...[errors.InvalidArgument, errors.TooLarge, errors.NotServed],
  ...[errors.PermissionDenied, errors.Unauthenticated],
];
/** Refusals of something on an open stream: sent again, it would be refused again. */
const MISTAKES = [errors.InvalidArgument, errors.NotServed, errors.ProtocolMistake, errors.TooLarge];
/** A stream that ends within this many milliseconds is followed by a pause, even if the server asks for none. */
const SHORT_LIFE = 1_000;
/** Streams in a row that are refused for a token that has ended, where another may follow. */
const RENEWALS_MAX = 5;
/** The reason of a refusal: another stream has this worker's session. */
const SESSION_TAKEN = "SESSION_TAKEN";

/** What a stream tells its worker. */
export interface StreamEvents {
  received(received: Received): void;
  log(level: "info" | "warn" | "error", text: string): void;
}

/** Keeps one stream open at a time, and opens another when it breaks. Each has a channel of its own. */
export class Stream {
  private readonly target: string;
  private readonly access: Access;
  private readonly stopping = new AbortController();
  private call: Call | undefined;
  private isWritable = true;
  private isHalfClosed = false;
  private isOpened = false;
  private goaway: StreamGoaway | undefined;
  private leaveAt = 0;
  private timer: NodeJS.Timeout | undefined;
  private isStepDue = false;
  private broken: unknown;
  private wake: () => void = () => undefined;
  private lostAt: number | undefined;
  private downSince: number | undefined = performance.now();
  /** Streams that were opened after a break. */
  reconnects = 0;

  /** Makes a stream; `run` opens it. */
  constructor(
    private readonly address: StreamAddress,
    identity: Identity,
    private readonly session: SharedSession,
    private readonly events: StreamEvents,
  ) {
    this.target = address.target;
    this.access = new Access(address, identity);
  }

  /** Keeps a stream open until the session is over or `stop`. Throws what no second try changes. */
  async run(): Promise<void> {
    let tries = 0;
    let renewals = 0;
    while (!this.stopping.signal.aborted && !this.session.session.isOver) {
      this.isOpened = false;
      this.goaway = undefined;
      const began = performance.now();
      const error = await this.oneCall();
      // A stream that opens and breaks at once is no sign that the next will do better.
      const lived = performance.now() - began;
      const wasGood = this.isOpened && lived > RECONNECT.longest;
      tries = wasGood ? 0 : tries + 1;
      const mayRenew = !this.isOpened && error !== undefined && this.access.identity.renews(error);
      renewals = mayRenew ? renewals + 1 : 0;
      this.handleEnd(error, mayRenew && renewals < RENEWALS_MAX);
      await this.pause(error, tries, lived);
    }
    if (this.broken !== undefined) throw this.broken;
  }

  /** Ends the stream for a mistake in this package: other workers share this thread, and go on. */
  fail(mistake: unknown): void {
    this.broken ??= mistake;
    this.stop();
  }

  /** Milliseconds without a stream; 0 with one. */
  get downFor(): number {
    return this.downSince === undefined ? 0 : Math.max(1, performance.now() - this.downSince);
  }

  /** Ends the call and opens no other. */
  stop(): void {
    this.stopping.abort();
    this.call?.cancel();
    this.wake();
  }

  /** Sends what is due soon, after all that is ready to run. */
  stepSoon(): void {
    if (this.isStepDue) return;
    this.isStepDue = true;
    setImmediate(() => {
      this.isStepDue = false;
      this.step();
    });
  }

  private handleEnd(error: errors.JoblineError | undefined, mayRenew: boolean): void {
    if (!error) return;
    if (!this.isOpened && !mayRenew && FATAL.some((Kind) => error instanceof Kind)) throw error;
    if (this.isOpened && MISTAKES.some((Kind) => error instanceof Kind)) {
      this.events.log("error", `the server refused what was said; it is not said again: ${error.message}`);
      this.session.session.handleRefusal();
    }
    if (error.reason === SESSION_TAKEN) this.session.session.handleTaken();
  }

  /** Waits before the next stream, as the server or the number of tries demands. */
  private async pause(error: errors.JoblineError | undefined, tries: number, lived: number): Promise<void> {
    if (this.stopping.signal.aborted || this.session.session.isOver) return;
    let pause = pauseAfter(RECONNECT, Math.max(tries, 1), Math.random);
    if (this.goaway) {
      const wanted = Math.min(messageMilliseconds(this.goaway.retryDelay), ASKED_MAX);
      const asked = wanted * (0.5 + Math.random());
      pause = lived < SHORT_LIFE ? Math.max(asked, pause) : asked;
    } else if (error) {
      pause = Math.max(pause, error.retryAfter ?? 0);
      const what = this.isOpened ? `the stream to ${this.target} broke` : "no stream yet";
      this.events.log("warn", `${what}, trying again in ${(pause / 1_000).toFixed(1)} s: ${error.message}`);
    }
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, pause);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Opens a stream and reads it to its end; returns the error that ended it, if any. */
  private async oneCall(): Promise<errors.JoblineError | undefined> {
    const { signal } = this.stopping;
    const shown = await this.access.now(signal).catch((error: unknown) => errorOf(error));
    if (signal.aborted) return undefined;
    if (shown instanceof errors.JoblineError) return shown;
    const { metadata, credentials } = shown;
    const grpc = new GrpcClient(this.target, credentials, ownConnection(this.target));
    this.session.session.connect(performance.now());
    this.isHalfClosed = false;
    this.isWritable = true;
    const call: Call = grpc.makeBidiStreamRequest(
      pathOf(JobService, "Stream"),
      (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
      (bytes: Buffer) => bytes,
      metadata,
    );
    this.call = call;
    try {
      return await this.read(call);
    } finally {
      clearTimeout(this.timer);
      this.call = undefined;
      this.session.session.disconnect();
      this.session.updateCounters();
      if (this.isOpened) this.lostAt ??= performance.now();
      this.downSince ??= performance.now();
      grpc.close();
    }
  }

  private read(call: Call): Promise<errors.JoblineError | undefined> {
    return new Promise((resolve, reject) => {
      const onData = (bytes: Buffer) => {
        try {
          this.handleFrame(readFrame(bytes));
        } catch (error) {
          call.off("data", onData);
          call.cancel();
          // A mistake of the server: the next stream may do better.
          if (error instanceof errors.Internal) resolve(error);
          else reject(error);
        }
      };
      call.on("data", onData);
      call.on("drain", () => {
        this.isWritable = true;
        this.stepSoon();
      });
      // A cancel of our own is no error; both events may come, the first counts.
      call.on("error", (error) => resolve(errorOf(error, this.target, this.address.tls !== false)));
      call.on("end", () => resolve(undefined));
      call.on("status", (status) => {
        if (status.code === 0) resolve(undefined);
      });
      this.step();
    });
  }

  private handleFrame(frame: StreamResponse): void {
    const received = this.session.handleFrame(frame);
    if (received.opened) this.handleOpened(received.opened.resumed);
    for (const report of received.reports) {
      if (report.isDead)
        this.events.log("error", `job ${report.id} is dead: ${report.error || "no error given"}`);
    }
    this.events.received(received);
    if (received.goaway) {
      this.goaway = received.goaway;
      this.leaveAt = performance.now() + goawayPatience(received.goaway, Date.now());
      this.events.log("info", `the server asks to move: ${received.goaway.reason}`);
    }
    if (this.goaway && this.mayMove(this.goaway)) this.call?.cancel();
    this.stepSoon();
  }

  private handleOpened(isResumed: boolean): void {
    this.isOpened = true;
    this.downSince = undefined;
    if (this.lostAt === undefined) {
      this.events.log("info", `connected to ${this.target}`);
    } else {
      this.reconnects += 1;
      const away = ((performance.now() - this.lostAt) / 1_000).toFixed(1);
      const kept = isResumed ? "its leases are kept" : "as a new session";
      this.events.log("info", `connected again to ${this.target} after ${away} s, ${kept}`);
    }
    this.lostAt = undefined;
  }

  /**
   * Returns whether to leave before the server ends the stream. A worker that stays (no delay) resumes the
   * session at once, leases and all; one that leaves waits for its confirms first.
   */
  private mayMove(goaway: StreamGoaway): boolean {
    if (messageMilliseconds(goaway.retryDelay) === 0 || this.session.session.isConfirmed) return true;
    return performance.now() >= this.leaveAt;
  }

  private step(): void {
    try {
      if (this.call) this.sendDue(this.call);
    } catch (error) {
      this.fail(error);
    }
  }

  /** Sends the frames that are due, and looks for a server that has fallen silent. */
  private sendDue(call: Call): void {
    const now = performance.now();
    this.session.measure(now);
    while (this.isWritable && !this.isHalfClosed) {
      const frame = this.session.nextFrame(now);
      if (!frame) break;
      this.isWritable = call.write(toBinary(StreamRequestSchema, frame));
    }
    if (!this.isHalfClosed && this.session.session.mayHalfClose) {
      this.isHalfClosed = true;
      call.end();
    }
    if (now >= this.session.session.nextSilenceCheck() && this.session.session.isSilent(now)) {
      this.events.log("warn", "the server has fallen silent: opening another stream");
      call.cancel();
      return;
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.step(), Math.min(60_000, Math.max(1, this.session.pause(now))));
  }
}
