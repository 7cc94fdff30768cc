import { Internal } from "../errors.js";
import type { StreamRequest, StreamResponse } from "../v1/job_service_pb.js";
import { UNCONFIRMED_MAX } from "./settles.js";

/**
 * Windows of jobs that are settled and not confirmed: then no more jobs are asked for. A server counts a job no more as
 * soon as it has decided its settle, and confirms it after the commit, which may take minutes: a disk may be full. It
 * gets up to UNCONFIRMED_MAX settles before a confirm, each with at most a window of jobs, and one window more is
 * settled here; three more are for leases that were lost meanwhile.
 */
const PAUSE_WINDOWS = UNCONFIRMED_MAX + 4;
/**
 * Windows of those with which a server is left that sends jobs: a window of them was on its way when no more were asked
 * for, and another one at hand.
 */
const LEAVE_WINDOWS = PAUSE_WINDOWS + 2;
/** Jobs beyond the windows that are taken: two sides never agree to the job. */
const SURPLUS_JOBS = 100;
/**
 * Jobs that a server may say are held, twice the largest window: those that are unknown here, for they were not taken
 * or never came, are given back.
 */
const TOLD_MAX = 200_000;

/** How much may be unfinished here at any time, and what the current stream knows of that. Pure. */
export class AskedWindow {
  private sent: number | undefined;
  /** The largest window so far: jobs of that time may still be at hand. */
  private largest: number;

  /** Makes the window of a session. */
  constructor(
    private jobs: number,
    private readonly payloadBytes: number,
  ) {
    this.largest = jobs;
  }

  /** Sets how many jobs; 0 pauses. */
  set(jobs: number): void {
    this.jobs = jobs;
    this.largest = Math.max(this.largest, jobs);
  }

  /** Has the next frame say it again. */
  repeat(): void {
    this.sent = undefined;
  }

  /** Adds it to a frame if the server does not know it, and returns whether it did. */
  put(frame: StreamRequest, unconfirmed: number): boolean {
    const jobs = unconfirmed >= PAUSE_WINDOWS * this.largest ? 0 : this.jobs;
    if (jobs === this.sent) return false;
    frame.window = {
      $typeName: "jobline.v1.StreamWindow",
      maxInFlight: jobs,
      maxInFlightBytes: BigInt(this.payloadBytes),
    };
    this.sent = jobs;
    return true;
  }

  /**
   * Throws Internal if a frame brings far more jobs than were asked for beside those that are held or `unconfirmed`: a
   * server that goes on so would fill the memory. Nothing of such a frame counts. A correct server may send the window
   * again beside jobs that are held: it counts a lease no more that a handler has ended by a call of its own, and the
   * worker holds it until that handler returns.
   */
  refuseSurplus({ opened, jobs, runs }: StreamResponse, held: number, unconfirmed: number): void {
    const told = opened?.heldIds.length ?? 0;
    const brought = runs.reduce((sum, { payloads }) => sum + payloads.length, jobs.length);
    const atHand = held + brought;
    if (atHand > 2 * this.largest + SURPLUS_JOBS) {
      const message = `the server sent more jobs than were asked for: ${atHand} at hand, of ${this.largest}`;
      throw new Internal(message, { reason: "WINDOW_EXCEEDED" });
    }
    if (told > TOLD_MAX) {
      const message = `the server says that ${told} jobs are held, more than any window`;
      throw new Internal(message, { reason: "WINDOW_EXCEEDED" });
    }
    if (brought + told > 0 && unconfirmed > LEAVE_WINDOWS * this.largest + SURPLUS_JOBS) {
      const message = `the server sends jobs and has not confirmed ${unconfirmed} that are settled`;
      throw new Internal(message, { reason: "UNCONFIRMED" });
    }
  }
}
