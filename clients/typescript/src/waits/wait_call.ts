import { durationMessage } from "../duration.js";
import { Internal, type JoblineError } from "../errors.js";
import type { Stub } from "../services.js";
import { errorOf } from "../status.js";
import { JobState } from "../v1/job_pb.js";
import type { JobService, WaitResponse } from "../v1/job_service_pb.js";

/** The protocol's limit of a call. */
export const WAIT_MAX = 3_600_000;
/** Milliseconds after which a call that another one has replaced is cancelled: by then the server knows the other. */
const REPLACED_MAX = 2_000;
/** The states in which jobs end. */
const ENDS = new Set([JobState.COMPLETED, JobState.DEAD, JobState.CANCELLED, JobState.EXPIRED]);

/** Throws Internal for an answer that says of none of these jobs how it ended. */
export function refuseNoEnd({ id, state, notFound }: WaitResponse, ids: ReadonlySet<bigint>): void {
  const isEnd = notFound || ENDS.has(state);
  if (ids.has(id) && isEnd) return;
  const what = isEnd ? `an end of job ${id}, which is not waited for` : `job ${id}, but not with its end`;
  throw new Internal(`the server answered a wait with ${what}`, { reason: "UNEXPECTED_ANSWER" });
}

/** What a call tells of. */
export interface WaitEvents {
  /** A job has ended. */
  ended(response: WaitResponse): void;
  /** The call is over: by an error, or because the server has ended it. */
  over(call: WaitCall, error: JoblineError | undefined): void;
}

/** One open call of Wait, for many jobs. */
export class WaitCall {
  /** The jobs that somebody still waits for by this call. */
  readonly ids: Set<bigint>;
  private readonly ending = new AbortController();
  private readonly asked: ReadonlySet<bigint>;
  private readonly openedAt = performance.now();
  private replaced: readonly WaitCall[];
  private timer: NodeJS.Timeout | undefined;
  /** Whether the server has told of an end. */
  isHeard = false;

  /** Opens the call, in the place of others: they go on until the server knows this one, so that no end is missed. */
  constructor(
    service: Stub<typeof JobService>,
    timeout: number,
    ids: ReadonlySet<bigint>,
    replaced: readonly WaitCall[],
    private readonly events: WaitEvents,
  ) {
    this.asked = ids;
    this.ids = new Set(ids);
    this.replaced = replaced;
    if (replaced.length > 0) this.timer = setTimeout(() => this.endReplaced(), REPLACED_MAX);
    void this.run(service, WAIT_MAX + timeout);
  }

  /** Milliseconds since it was opened. */
  get age(): number {
    return performance.now() - this.openedAt;
  }

  /** Cancels the call, and what it replaces. */
  end(): void {
    this.endReplaced();
    this.ending.abort();
  }

  private endReplaced(): void {
    clearTimeout(this.timer);
    for (const call of this.replaced) call.end();
    this.replaced = [];
  }

  private async run(service: Stub<typeof JobService>, timeout: number): Promise<void> {
    const { signal } = this.ending;
    let error: JoblineError | undefined;
    try {
      const request = { ids: [...this.asked], timeout: durationMessage(WAIT_MAX, "timeout") };
      for await (const response of service.wait(request, { timeout, signal })) {
        refuseNoEnd(response, this.asked);
        this.isHeard = true;
        this.endReplaced();
        this.events.ended(response);
      }
    } catch (caught) {
      if (!signal.aborted) error = errorOf(caught);
    }
    // What it has replaced is over, too: if this one broke, all are asked for again.
    this.endReplaced();
    this.events.over(this, error);
  }
}
