import { randomUUID } from "node:crypto";
import type { Client } from "../client.js";
import { type JoblineError, LeaseLost, ResourceExhausted, Unavailable } from "../errors.js";
import { pushFlow } from "../flows.js";
import { opened } from "../sealing/payload_codec.js";
import { errorOf } from "../status.js";
import type { FlowNode } from "../v1/flow_service_pb.js";
import type { Context } from "./context.js";
import type { Logger } from "./logger.js";
import type { WaitFor } from "./outcomes.js";
import type { Runner } from "./runner.js";

/** Milliseconds between two tries of a call, at least and at most. */
const PAUSE = 1_000;
const PAUSE_MAX = 30_000;
/** Milliseconds for which the children of a job wait for room; then its attempt has failed. */
const FULL_MAX = 300_000;
/** Milliseconds after which a fence is taken for lost, as the server refused what was said before. */
const FENCE_MAX = 5_000;

/** Returns the children of a job, in order, with their results. */
export async function childrenOf(client: Client, id: bigint): Promise<FlowNode[]> {
  const request = { id, maxDepth: 1, includeResults: true, maxJobs: 10_000 };
  const { jobs } = await client.admin.flows.getFlow(request);
  const byId = new Map(jobs.map((job) => [job.id, job]));
  const [parent] = jobs;
  const children = (parent?.children ?? []).flatMap((child) => byId.get(child) ?? []);
  return children.map((child) => ({ ...child, result: opened(client.codec, child.result).data }));
}

/**
 * Pushes the children that handlers wait for, by calls beside the stream. A handler that threw `WaitFor` is
 * over, and its place is given to another; its job is held until its children are stored, which ends the lease
 * in the same transaction. A call may overtake the stream, so what the handler reported before is confirmed
 * first: the checkpoint above all.
 */
export class Children {
  private readonly fences = new Map<number, () => void>();
  private number = 0;
  private isClosed = false;
  /** Jobs whose children are to be pushed. */
  readonly pending = new Set<Context>();

  /** Makes what pushes children; `fence` asks the stream to answer with `handleFence`. */
  constructor(
    private readonly client: () => Client,
    private readonly fence: (number: number) => void,
    private readonly logger: Logger,
  ) {}

  /** Handles that the server has handled all that was said before this fence. */
  handleFence(number: number): void {
    this.fences.get(number)?.();
  }

  /** Gives up what is pending: the server ends the leases. */
  close(): void {
    this.isClosed = true;
    for (const passed of this.fences.values()) passed();
  }

  /** Pushes the children of a job, until the server has taken them or refused them for good. */
  async push(runner: Runner, context: Context, outcome: WaitFor): Promise<void> {
    this.pending.add(context);
    try {
      await this.pushUntilTaken(runner, context, outcome);
    } catch (error) {
      if (runner.holds(context.job)) runner.fail(context, error);
    } finally {
      this.pending.delete(context);
    }
  }

  private async pushUntilTaken(runner: Runner, context: Context, outcome: WaitFor): Promise<void> {
    const { job } = context;
    const requestId = randomUUID();
    const giveUpAt = performance.now() + FULL_MAX;
    while (await this.isReported(() => runner.holds(job))) {
      try {
        await pushFlow(this.client(), outcome.children, { id: job.id, delivery: job.delivery }, requestId);
        runner.leave(job, false);
        return;
      } catch (caught) {
        const error = errorOf(caught);
        if (error instanceof LeaseLost) {
          runner.leave(job, true);
          return;
        }
        if (error.definite && !passes(error, performance.now() > giveUpAt)) throw error;
        this.logger.warn(`the children of ${job}: ${error.message}; trying again`);
        const pause = Math.min(Math.max(error.retryAfter ?? 0, PAUSE), PAUSE_MAX);
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }

  /** Waits until the server has handled what was reported; returns false if the job is not held any more. */
  private async isReported(holds: () => boolean): Promise<boolean> {
    while (holds() && !this.isClosed) {
      this.number += 1;
      const { number } = this;
      const isPassed = await new Promise<boolean>((resolve) => {
        const timer = setTimeout(() => resolve(false), FENCE_MAX);
        this.fences.set(number, () => {
          clearTimeout(timer);
          resolve(true);
        });
        this.fence(number);
      });
      this.fences.delete(number);
      if (isPassed) return holds() && !this.isClosed;
    }
    return false;
  }
}

/** Returns whether the same call may do better later. */
function passes(error: JoblineError, isLate: boolean): boolean {
  if (error instanceof ResourceExhausted) return error.retryable && !isLate;
  return error instanceof Unavailable;
}
