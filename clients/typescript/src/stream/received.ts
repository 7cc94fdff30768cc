import { create } from "@bufbuild/protobuf";
import { messageMilliseconds } from "../duration.js";
import type { LeasedJob, LeasedRun } from "../v1/job_pb.js";
import {
  ReleaseItemSchema,
  ReleaseReason,
  type RevokeReason,
  type StreamGoaway,
  type StreamOpened,
  type UnhandledName,
} from "../v1/job_service_pb.js";
import type { SettleItem, SettleReport } from "./settles.js";

/** A lease to stop working on. With CANCELLED it is still held, and must be settled. */
export interface LostLease {
  readonly id: bigint;
  readonly delivery: bigint;
  readonly reason: RevokeReason;
}

/** What one frame brought. */
export interface Received {
  opened?: StreamOpened;
  jobs: LeasedJob[];
  runs: LeasedRun[];
  lost: LostLease[];
  reports: SettleReport[];
  fences: number[];
  goaway?: StreamGoaway;
  unhandled: UnhandledName[];
}

/** Returns the release of a lease that this worker does not run. */
export function interruptedRelease(id: bigint, delivery: bigint): SettleItem {
  const item = create(ReleaseItemSchema, { id, delivery, why: ReleaseReason.INTERRUPTED });
  return { kind: "release", item };
}

/** Returns one job of a run as a run of its own. */
export function partOfRun(run: LeasedRun, index: number): LeasedRun {
  return {
    ...run,
    firstId: run.firstId + BigInt(index),
    payloads: run.payloads.slice(index, index + 1),
    jobKeys: run.jobKeys.slice(index, index + 1),
    headerColumns: run.headerColumns.map((column) => ({
      ...column,
      values: column.values.slice(index, index + 1),
    })),
  };
}

/** Milliseconds that a worker stays on a stream that is to end, until its settles are confirmed. */
const PATIENCE_MIN = 30_000;
const PATIENCE_MAX = 3_600_000;

/**
 * Returns for how many milliseconds from now on, `wall`, to wait for the end by the server. It ends the stream at its
 * close time by its own clock; where one of the two clocks is wrong, the worker leaves neither at once nor never.
 */
export function goawayPatience({ closeTime }: StreamGoaway, wall: number): number {
  return Math.min(Math.max(messageMilliseconds(closeTime) - wall, PATIENCE_MIN), PATIENCE_MAX);
}

/** Returns the leases that a resumed session still has, by id. */
export function heldOf({ heldIds, heldDeliveries }: StreamOpened): Map<bigint, bigint> {
  return new Map(heldIds.map((id, index) => [id, heldDeliveries[index] ?? 0n]));
}
