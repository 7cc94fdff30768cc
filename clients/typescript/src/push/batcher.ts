import { type Pauses, pauseAfter, RETRY } from "../backoff.js";
import { BufferFull } from "../errors.js";
import { type Batch, type Call, NOTHING, type Own, type Push, partsOf, payloadBytes } from "./batch.js";

/** Header keys of the pushes in one call together: each key is a column with a value for every push. */
export const HEADER_KEYS_MAX = 32;

/** Limits of a `PushBatcher`. */
export interface BatchLimits {
  /** Pushes that wait or fly, in all. */
  readonly jobs: number;
  /** Bytes of their payloads. */
  readonly payloadBytes: number;
  /** Pushes of one call. */
  readonly batchJobs: number;
  /** Bytes of one call; one push always fits. */
  readonly batchBytes: number;
  /** Calls in flight, over all keys. */
  readonly flights: number;
  /** Milliseconds from the first push of a batch to its last try. */
  readonly giveUpAfter: number;
}

interface Pending<K, W> {
  readonly key: K;
  /** In their order; any of them may be withdrawn. */
  pushes: Set<Push<W>>;
  payloadBytes: number;
  since: number;
  next: Batch<K, W>[];
  inFlight: boolean;
  notBefore: number;
}

/** What a batcher asks of its client: numbers for calls, and chance. */
export interface CallNumbers {
  begin(): Call;
  over(call: Call | undefined, isKnown: boolean): void;
}

/**
 * Concurrent pushes share one call. Pure: no clock, no timer, no wire.
 *
 * Pushes of the same key (queue and options) form batches, and each key has at most one batch in flight. The
 * first push is sent at once; those that come meanwhile gather and are sent together when its answer is there.
 * So pushes of one key keep their order, and a busy client makes few, large calls. When the buffer is full, new
 * pushes are refused.
 *
 * A batch whose outcome is unknown is sent again as the same call, so nothing is stored twice. One that was
 * refused for something in it is split, until the push at fault is alone and the others are stored.
 */
export class PushBatcher<K extends { readonly key: string }, W> {
  private readonly pending = new Map<string, Pending<K, W>>();
  /** Keys with something to send and no call in flight, in order. */
  private readonly idle = new Set<string>();
  private flights = 0;
  /** Pushes that wait or fly. */
  jobs = 0;
  /** Bytes of their payloads. */
  payloadBytes = 0;

  /** Makes an empty batcher. */
  constructor(
    private readonly limits: BatchLimits,
    private readonly calls: CallNumbers,
    private readonly chance: () => number,
    private readonly pauses: Pauses = RETRY,
  ) {}

  /** Adds a push; returns whether there is something to send now. Throws BufferFull, and changes nothing. */
  add(now: number, key: K, push: Push<W>): boolean {
    const size = push.payload.length;
    const { jobs, payloadBytes: bytes } = this.limits;
    if (this.jobs >= jobs || (this.jobs > 0 && this.payloadBytes + size > bytes)) {
      throw new BufferFull(
        `${this.jobs} pushes of ${this.payloadBytes} bytes wait for the server already: push more slowly, or ` +
          "give the client a larger buffer",
      );
    }
    let pending = this.pending.get(key.key);
    if (!pending) {
      pending = {
        key,
        pushes: new Set(),
        payloadBytes: 0,
        since: 0,
        next: [],
        inFlight: false,
        notBefore: 0,
      };
      this.pending.set(key.key, pending);
      this.idle.add(key.key);
    }
    if (pending.pushes.size === 0) pending.since = now;
    pending.pushes.add(push);
    pending.payloadBytes += size;
    this.jobs += 1;
    this.payloadBytes += size;
    return !pending.inFlight;
  }

  /** Removes a push; returns false if it was sent already and may be stored. */
  withdraw(key: K, push: Push<W>): boolean {
    const pending = this.pending.get(key.key);
    if (!pending?.pushes.delete(push)) return false;
    pending.payloadBytes -= push.payload.length;
    this.jobs -= 1;
    this.payloadBytes -= push.payload.length;
    this.queueOrForget(pending);
    return true;
  }

  /** Returns the batches to send now. Report the result of each to one of the `handle…` methods. */
  batchesToSend(now: number): Batch<K, W>[] {
    const batches: Batch<K, W>[] = [];
    for (const key of this.idle) {
      if (this.flights >= this.limits.flights) break;
      const pending = this.pending.get(key);
      if (!pending || pending.notBefore > now) continue;
      this.idle.delete(key);
      const batch = pending.next.shift() ?? this.cut(pending);
      batch.tries += 1;
      pending.inFlight = true;
      this.flights += 1;
      batches.push(batch);
    }
    return batches;
  }

  /** Returns when there is something to send, if nothing else happens. */
  nextDeadline(): number | undefined {
    if (this.flights >= this.limits.flights || this.idle.size === 0) return undefined;
    // No spread into Math.min, which has a limit: there may be 100,000 keys.
    let first = Number.POSITIVE_INFINITY;
    for (const key of this.idle) {
      first = Math.min(first, this.pending.get(key)?.notBefore ?? 0);
      if (first === 0) break;
    }
    return first;
  }

  /** Ends a batch that was answered, or (not `isKnown`) given up and may be stored. */
  handleDone(batch: Batch<K, W>, isKnown = true): void {
    this.calls.over(batch.call, isKnown);
    this.jobs -= batch.pushes.length;
    this.payloadBytes -= batch.payloadBytes;
    this.queueOrForget(this.endCall(batch));
  }

  /**
   * Handles a call without a definite answer. True: it is made again after a pause, `retryAfter` ms at least;
   * false: it is given up.
   */
  handleUnknown(now: number, batch: Batch<K, W>, retryAfter = 0): boolean {
    const pause = Math.max(retryAfter, pauseAfter(this.pauses, batch.tries, this.chance));
    if (now + pause > batch.giveUpAt) {
      this.handleDone(batch, false);
      return false;
    }
    const pending = this.endCall(batch);
    pending.next.unshift(batch);
    pending.notBefore = now + pause;
    this.queueOrForget(pending);
    return true;
  }

  /** Handles a refusal of something in the batch. True: it is split; false: it was one push, and is done. */
  handleRefused(batch: Batch<K, W>): boolean {
    if (batch.pushes.length === 1) {
      this.handleDone(batch);
      return false;
    }
    this.calls.over(batch.call, true);
    const pending = this.endCall(batch);
    const parts = partsOf(batch.pushes).map((pushes) =>
      this.batch(batch.key, pushes, payloadBytes(pushes), batch.giveUpAt),
    );
    pending.next.unshift(...parts);
    this.queueOrForget(pending);
    return true;
  }

  private endCall(batch: Batch<K, W>): Pending<K, W> {
    const pending = this.pending.get(batch.key.key);
    if (!pending) throw new Error(`no pushes of ${batch.key.key} are pending`);
    pending.inFlight = false;
    pending.notBefore = 0;
    this.flights -= 1;
    return pending;
  }

  private queueOrForget(pending: Pending<K, W>): void {
    if (pending.inFlight) return;
    const { key } = pending.key;
    if (pending.next.length > 0 || pending.pushes.size > 0) {
      this.idle.add(key);
    } else {
      this.idle.delete(key);
      this.pending.delete(key);
    }
  }

  /** Removes and returns the first pushes, as many as one call may carry. */
  private cut(pending: Pending<K, W>): Batch<K, W> {
    const pushes = this.thoseThatFit(pending);
    if (pushes.length === pending.pushes.size) pending.pushes = new Set();
    else for (const push of pushes) pending.pushes.delete(push);
    const size = payloadBytes(pushes);
    pending.payloadBytes -= size;
    return this.batch(pending.key, pushes, size, pending.since + this.limits.giveUpAfter);
  }

  private thoseThatFit(pending: Pending<K, W>): Push<W>[] {
    const pushes: Push<W>[] = [];
    const keys = new Set<string>();
    let total = 0;
    for (const push of pending.pushes) {
      total += push.payload.length;
      for (const key of Object.keys(push.own.headers ?? {})) keys.add(key);
      const isFull = total > this.limits.batchBytes || keys.size > HEADER_KEYS_MAX;
      if (pushes.length > 0 && (isFull || pushes.length === this.limits.batchJobs)) break;
      pushes.push(push);
    }
    return pushes;
  }

  /** Returns a batch. Job keys make a retry safe by themselves; other calls get a number. */
  private batch(key: K, pushes: readonly Push<W>[], size: number, giveUpAt: number): Batch<K, W> {
    const call = pushes.every((push) => push.own.jobKey) ? undefined : this.calls.begin();
    return { key, pushes, payloadBytes: size, giveUpAt, call, tries: 0 };
  }
}

/** Returns whether all pushes have nothing but payloads. */
export function havePayloadsAlone(owns: readonly Own[]): boolean {
  return owns.every((own) => own === NOTHING);
}
