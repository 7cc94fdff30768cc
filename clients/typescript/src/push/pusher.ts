import { onAbort } from "../aborts.js";
import { ClientClosed, type JoblineError } from "../errors.js";
import { refuseNoSignal } from "../given.js";
import { errorOf, outcomeUnknown, twinOf } from "../status.js";
import type { PushRequest, PushResponse } from "../v1/job_service_pb.js";
import { type Pushed, pushedOf, refusalOf } from "./answers.js";
import type { Batch, Push } from "./batch.js";
import { type BatchLimits, type CallNumbers, PushBatcher } from "./batcher.js";
import { type BatchKey, fitting, requestOfBatch, type SinglePush } from "./messages.js";
import { handleError } from "./refusals.js";

interface Waiter {
  resolve(pushed: Pushed): void;
  reject(error: unknown): void;
}

/** Sends the single pushes of one client: promises and timers around the pure `PushBatcher`. */
export class Pusher {
  private readonly batcher: PushBatcher<BatchKey, Waiter>;
  private isFlushDue = false;
  private timer: NodeJS.Timeout | undefined;
  private others = 0;
  private isClosed = false;
  private closing: Promise<void> | undefined;
  private whenEmpty: (() => void) | undefined;

  /** Makes a pusher whose calls are made by `call`. */
  constructor(
    private readonly call: (request: PushRequest) => Promise<PushResponse>,
    limits: BatchLimits,
    calls: CallNumbers,
  ) {
    this.batcher = new PushBatcher(limits, calls, Math.random);
  }

  /** Pushes one job. An abort before it left withdraws it; afterwards it may be stored. */
  push({ key, payload, own }: SinglePush, signal?: AbortSignal): Promise<Pushed> {
    return new Promise<Pushed>((resolve, reject) => {
      this.refuseClosed();
      refuseNoSignal(signal);
      signal?.throwIfAborted();
      const push: Push<Waiter> = { payload, own, waiter: { resolve, reject } };
      if (this.batcher.add(performance.now(), key, push)) this.flushSoon();
      if (signal) this.withdrawOnAbort(signal, key, push);
    });
  }

  /** Makes a call of many pushes, which `close` waits for. Throws ClientClosed. */
  async together<T>(call: () => Promise<T>): Promise<T> {
    this.refuseClosed();
    this.others += 1;
    try {
      return await call();
    } finally {
      this.others -= 1;
      this.notifyIfEmpty();
    }
  }

  /** Refuses new pushes, and returns when the others have been answered. */
  close(): Promise<void> {
    this.isClosed = true;
    this.closing ??= new Promise<void>((resolve) => {
      this.whenEmpty = resolve;
      this.notifyIfEmpty();
    });
    return this.closing;
  }

  private refuseClosed(): void {
    if (this.isClosed) throw new ClientClosed("the client is closed");
  }

  private withdrawOnAbort(signal: AbortSignal, key: BatchKey, push: Push<Waiter>): void {
    const { waiter } = push;
    const { resolve, reject } = waiter;
    const forget = onAbort(signal, () => {
      this.batcher.withdraw(key, push);
      waiter.reject(signal.reason);
      this.notifyIfEmpty();
    });
    waiter.resolve = (pushed) => {
      forget();
      resolve(pushed);
    };
    waiter.reject = (error) => {
      forget();
      reject(error);
    };
  }

  /** After all that is ready to run, so that pushes made at the same time share a call. */
  private flushSoon(): void {
    if (this.isFlushDue) return;
    this.isFlushDue = true;
    setImmediate(() => this.flush());
  }

  private flush(): void {
    this.isFlushDue = false;
    clearTimeout(this.timer);
    for (const batch of this.batcher.batchesToSend(performance.now())) void this.send(batch);
    const deadline = this.batcher.nextDeadline();
    if (deadline !== undefined) {
      this.timer = setTimeout(() => this.flush(), Math.max(1, deadline - performance.now()));
    }
  }

  private async send(batch: Batch<BatchKey, Waiter>): Promise<void> {
    let error: JoblineError | undefined;
    try {
      const response = await this.call(fitting(() => requestOfBatch(batch)));
      const pushed = pushedOf(response, batch.pushes.length);
      this.batcher.handleDone(batch);
      this.answer(batch, pushed);
    } catch (caught) {
      error = errorOf(caught);
    }
    if (error) this.handleError(batch, error);
    // The waiters run before the flush, so what they push next shares a call.
    this.flushSoon();
    this.notifyIfEmpty();
  }

  private answer(batch: Batch<BatchKey, Waiter>, pushed: readonly Pushed[]): void {
    batch.pushes.forEach(({ waiter, own }, index) => {
      const one = pushed[index] as Pushed;
      if (one.outcome === "refused") waiter.reject(refusalOf(batch.key.queue, own, one.reason ?? ""));
      else waiter.resolve(one);
    });
  }

  private handleError(batch: Batch<BatchKey, Waiter>, error: JoblineError): void {
    if (!handleError(this.batcher, performance.now(), batch, error)) return;
    const unknown = outcomeUnknown(error, batch.tries);
    for (const { waiter } of batch.pushes) waiter.reject(twinOf(unknown));
  }

  private notifyIfEmpty(): void {
    if (this.batcher.jobs === 0 && this.others === 0) this.whenEmpty?.();
  }
}
