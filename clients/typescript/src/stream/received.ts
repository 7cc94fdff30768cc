import { create } from "@bufbuild/protobuf";
import { Internal } from "../errors.js";
import type { LeasedJob, LeasedRun } from "../v1/job_pb.js";
import {
  ReleaseItemSchema,
  ReleaseReason,
  RevokeReason,
  type StreamGoaway,
  type StreamOpened,
  type StreamResponse,
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

/**
 * Throws Internal if a frame brings more jobs than the window allows beside those that are held: a server that goes
 * on so would fill the memory. Nothing of such a frame counts.
 */
export function refuseTooMany(
  { opened, jobs, runs, revokes }: StreamResponse,
  held: ReadonlyMap<bigint, bigint>,
  window: number,
): void {
  const brought = runs.reduce((count, { payloads }) => count + payloads.length, jobs.length);
  if ((opened ? opened.heldIds.length : held.size) + brought <= window) return;
  // More closely: some may be known, and others leave with this very frame.
  const after = opened ? heldOf(opened) : new Map(held);
  for (const { id, delivery } of jobs) after.set(id, delivery);
  for (const { firstId, delivery, payloads } of runs) {
    for (const index of payloads.keys()) after.set(firstId + BigInt(index), delivery);
  }
  for (const { id, delivery, reason } of revokes) {
    if (reason !== RevokeReason.CANCELLED && after.get(id) === delivery) after.delete(id);
  }
  if (after.size <= window) return;
  throw new Internal(
    `the server sent more jobs than the window allows: ${after.size} at hand, of ${window}`,
    {
      reason: "WINDOW_EXCEEDED",
    },
  );
}

/** Returns the leases that a resumed session still has, by id. */
export function heldOf({ heldIds, heldDeliveries }: StreamOpened): Map<bigint, bigint> {
  return new Map(heldIds.map((id, index) => [id, heldDeliveries[index] ?? 0n]));
}
