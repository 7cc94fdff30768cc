import { pauseAfter, RETRY } from "../backoff.js";
import type { Connection } from "../connection.js";
import { ClientClosed, type JoblineError } from "../errors.js";
import { twinOf } from "../status.js";
import { JobService, type WaitResponse } from "../v1/job_service_pb.js";
import { WaitCall } from "./wait_call.js";

/** The protocol's limit of a call. */
export const WAIT_IDS_MAX = 10_000;
/** Milliseconds between calls: jobs that are waited for meanwhile share the next one. */
const GATHER = 10;
/** Small calls that may be open at a time, before the next one takes in the smallest. */
const CALLS_MAX = 8;
/** A call that lived so long is followed by another one after the shortest pause, and has no trouble. */
const STEADY = 1_000;
/** Calls in a row that are refused for a token that has ended, where another may follow. */
const RENEWALS_MAX = 5;

/** Who waits for a job. */
export interface Waiter {
  /** The job has ended. */
  ended(response: WaitResponse): void;
  /** It cannot be waited for. */
  failed(error: JoblineError): void;
}

/** A job that is waited for. */
class Awaited {
  readonly waiters = new Set<Waiter>();
  /** The newest call that asks for it. */
  call: WaitCall | undefined;
  /** Whether an earlier call has asked for it. */
  isKnown = false;

  constructor(readonly id: bigint) {}
}

/**
 * The waits of one client, which share calls: the first goes at once, others gather for some milliseconds. So that
 * jobs that are waited for one after the other do not hold a call each, a new call takes in open ones that have no
 * more jobs than it; each job moves a few times only, as in a counter of binary digits.
 */
export class SharedWaits {
  readonly #connection: Connection;
  private readonly awaited = new Map<bigint, Awaited>();
  private readonly joining = new Set<Awaited>();
  private readonly calls = new Set<WaitCall>();
  private isOpenDue = false;
  private timer: NodeJS.Timeout | undefined;
  private notBefore = 0;
  private tries = 0;
  private renewals = 0;
  private isClosed = false;
  #trouble: JoblineError | undefined;

  /** Makes the waits of a connection. */
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Why nothing is heard of the server now, if it is known. */
  get trouble(): JoblineError | undefined {
    const isSteady = [...this.calls].some((call) => call.isHeard || call.age > STEADY);
    return isSteady || !this.#trouble ? undefined : twinOf(this.#trouble);
  }

  /** Waits for these jobs. Throws ClientClosed. */
  add(ids: Iterable<bigint>, waiter: Waiter): void {
    if (this.isClosed) throw new ClientClosed("the client is closed");
    for (const id of ids) {
      let one = this.awaited.get(id);
      if (!one) {
        one = new Awaited(id);
        this.awaited.set(id, one);
        this.joining.add(one);
      }
      one.waiters.add(waiter);
    }
    this.openSoon();
  }

  /** Waits for these jobs no longer. */
  remove(ids: Iterable<bigint>, waiter: Waiter): void {
    for (const id of ids) {
      const one = this.awaited.get(id);
      one?.waiters.delete(waiter);
      if (one?.waiters.size === 0) this.forget(one);
    }
  }

  /** Ends all calls; who waits gets ClientClosed. */
  close(): void {
    this.isClosed = true;
    for (const one of [...this.awaited.values()]) this.fail(one, new ClientClosed("the client is closed"));
  }

  private forget(one: Awaited): void {
    const { id, call } = one;
    this.awaited.delete(id);
    this.joining.delete(one);
    if (this.timer && this.joining.size === 0) {
      // The server may have asked for an hour, for which it would keep the program alive.
      clearTimeout(this.timer);
      this.timer = undefined;
      this.isOpenDue = false;
    }
    if (call?.ids.delete(id) && call.ids.size === 0) {
      this.calls.delete(call);
      call.end();
    }
  }

  private fail(one: Awaited, error: JoblineError): void {
    this.forget(one);
    for (const waiter of one.waiters) waiter.failed(twinOf(error));
  }

  private openSoon(): void {
    if (this.isOpenDue || this.joining.size === 0) return;
    this.isOpenDue = true;
    const open = () => {
      this.timer = undefined;
      this.isOpenDue = false;
      this.open();
      this.openSoon();
    };
    const pause = this.notBefore - performance.now();
    if (pause > 0) this.timer = setTimeout(open, pause);
    else setImmediate(open); // after all that is ready to run
  }

  private open(): void {
    const ids = new Set<bigint>();
    const members: Awaited[] = [];
    for (const one of this.joining) {
      if (ids.size === WAIT_IDS_MAX) break;
      this.joining.delete(one);
      members.push(one);
      ids.add(one.id);
    }
    if (ids.size === 0) return;
    const replaced = this.takeIn(ids);
    const connection = this.#connection;
    const call = new WaitCall(connection.stub(JobService), connection.timeout, ids, replaced, {
      ended: (response) => this.handleEnd(response),
      over: (over, error) => this.handleOver(over, error),
    });
    for (const id of ids) {
      const one = this.awaited.get(id);
      if (one) one.call = call;
    }
    this.calls.add(call);
    this.notBefore = performance.now() + GATHER;
  }

  /** Adds the jobs of open calls that the next one replaces; returns the calls. */
  private takeIn(ids: Set<bigint>): WaitCall[] {
    const replaced: WaitCall[] = [];
    const small = [...this.calls].filter((call) => call.ids.size <= WAIT_IDS_MAX / 2);
    small.sort((one, other) => one.ids.size - other.ids.size);
    for (const call of small) {
      const isMore = call.ids.size > ids.size && small.length - replaced.length < CALLS_MAX;
      if (isMore || call.ids.size + ids.size > WAIT_IDS_MAX) break;
      for (const id of call.ids) ids.add(id);
      this.calls.delete(call);
      replaced.push(call);
    }
    return replaced;
  }

  private handleEnd(response: WaitResponse): void {
    this.tries = 0;
    this.renewals = 0;
    const one = this.awaited.get(response.id);
    if (!one) return;
    this.forget(one);
    for (const waiter of one.waiters) waiter.ended(response);
  }

  private handleOver(call: WaitCall, error: JoblineError | undefined): void {
    // One that another has replaced, or that nobody needs any more.
    if (!this.calls.delete(call)) return;
    this.tries = call.age > STEADY ? 1 : this.tries + 1;
    this.renewals = !error || !this.#connection.renews(error) ? 0 : call.age > STEADY ? 1 : this.renewals + 1;
    this.#trouble = error;
    for (const id of call.ids) {
      const one = this.awaited.get(id);
      if (!one) continue;
      one.call = undefined;
      if (error && !this.mayGoOn(one, error)) this.fail(one, error);
      else this.joining.add(one);
      one.isKnown = true;
    }
    const pause = Math.max(error?.retryAfter ?? 0, pauseAfter(RETRY, this.tries, Math.random));
    this.notBefore = performance.now() + pause;
    this.openSoon();
  }

  private mayGoOn({ isKnown }: Awaited, error: JoblineError): boolean {
    if (this.#connection.renews(error)) return this.renewals < RENEWALS_MAX;
    return error.retryable && (isKnown || !error.definite);
  }
}
