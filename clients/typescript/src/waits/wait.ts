import { onAbort } from "../aborts.js";
import type { Connection } from "../connection.js";
import { durationMessage } from "../duration.js";
import { type JoblineError, WaitTimeout } from "../errors.js";
import { onSkip } from "../skipped_time.js";
import { JobService, type WaitResponse } from "../v1/job_service_pb.js";
import type { SharedWaits, Waiter } from "./shared_waits.js";
import { refuseNoEnd } from "./wait_call.js";

/** A wait for less than this many milliseconds may be over before the server has answered, and asks once more. */
const SHORT = 1_000;

/** What one caller waits for: some jobs, for a time by the client's own clock. */
export class Wait implements Waiter {
  private readonly remaining: Set<bigint>;
  private readonly responses: WaitResponse[] = [];
  private readonly listening: (() => void)[] = [];
  private failure: unknown;
  private until: number;
  private isSkipped = false;
  private isOver = false;
  private timer: NodeJS.Timeout | undefined;
  private wake: () => void = () => undefined;

  /** Begins to wait. Throws ClientClosed, and the reason of a signal that has fired. */
  constructor(
    private readonly connection: Connection,
    private readonly waits: SharedWaits,
    ids: Iterable<bigint>,
    private readonly timeout: number,
    private readonly signal: AbortSignal | undefined,
  ) {
    signal?.throwIfAborted();
    this.remaining = new Set(ids);
    this.until = performance.now() + timeout;
    waits.add(this.remaining, this);
    this.listening.push(
      onAbort(signal, () => this.failed(signal?.reason)),
      onSkip(connection.target, (skipped) => this.skip(skipped)),
    );
    this.watch();
  }

  /** Returns how the next job has ended; undefined after the last. Throws WaitTimeout, and what ended the wait. */
  async next(): Promise<WaitResponse | undefined> {
    for (;;) {
      const response = this.responses.shift();
      if (response) return response;
      if (this.failure !== undefined) throw this.failure;
      if (this.remaining.size === 0) return undefined;
      if (this.isOver) await this.lookOnce();
      else {
        await new Promise<void>((resolve) => {
          this.wake = resolve;
        });
      }
    }
  }

  /** Takes how a job has ended. */
  ended(response: WaitResponse): void {
    if (this.remaining.delete(response.id)) this.responses.push(response);
    this.wake();
  }

  /** Ends the wait with an error, after what has come before. */
  failed(error: unknown): void {
    this.failure ??= error;
    this.wake();
  }

  /** Waits no longer. */
  forget(): void {
    clearTimeout(this.timer);
    for (const end of this.listening) end();
    this.waits.remove(this.remaining, this);
  }

  private skip(milliseconds: number): void {
    this.isSkipped = true;
    this.until -= milliseconds;
    this.watch();
  }

  private watch(): void {
    clearTimeout(this.timer);
    const left = Math.max(0, Math.ceil(this.until - performance.now()));
    // Not at once: a loop that was blocked has not read yet what has come meanwhile.
    this.timer = setTimeout(() => setImmediate(() => this.end()), left);
  }

  private end(): void {
    this.isOver = true;
    this.wake();
  }

  /** Looks a last time where the answer of a server that is there may be missing; else throws that the time is over. */
  private async lookOnce(): Promise<void> {
    const { trouble } = this.waits;
    const mayBeMissing = this.timeout < SHORT || this.isSkipped || !this.connection.isReached;
    if (trouble && !mayBeMissing) throw trouble;
    if (mayBeMissing) {
      const request = { ids: [...this.remaining], timeout: durationMessage(0, "timeout") };
      const { timeout } = this.connection;
      const options = { timeout, ...(this.signal && { signal: this.signal }) };
      for await (const response of this.connection.stub(JobService).wait(request, options)) {
        refuseNoEnd(response, new Set(request.ids));
        this.ended(response);
      }
    }
    if (this.remaining.size > 0) this.failed(timedOut(this.remaining, this.timeout));
  }
}

function timedOut(remaining: ReadonlySet<bigint>, waitMs: number): JoblineError {
  const [id] = remaining;
  return new WaitTimeout(`job ${id} has not ended within ${waitMs / 1_000} s`, {
    reason: "WAIT_TIMEOUT",
    metadata: { id: String(id) },
  });
}
