import { create } from "@bufbuild/protobuf";
import {
  type FailItem,
  type ReleaseItem,
  SettleOutcome,
  type StreamConfirm,
  type StreamSettle,
  StreamSettleSchema,
} from "../v1/job_service_pb.js";

/** The protocol's limit for one settle. */
const ITEMS_MAX = 10_000;
/** Results and errors of one settle; far below what a server takes in one message, and one always fits. */
const ITEM_BYTES_MAX = 2 << 20;
/** Settles sent and not confirmed, above which new ones gather. */
export const UNCONFIRMED_MAX = 16;

/** An ack with a result, a fail, or a release. */
export type SettleItem =
  | { readonly kind: "ack"; readonly id: bigint; readonly delivery: bigint; readonly result: Uint8Array }
  /** `isAsked`: the handler asked for the retry. */
  | { readonly kind: "fail"; readonly item: FailItem; readonly isAsked?: boolean }
  | { readonly kind: "release"; readonly item: ReleaseItem };

/** The server's reply to one settled lease that was not simply DONE, or whose job is dead now. */
export interface SettleReport {
  readonly id: bigint;
  readonly kind: SettleItem["kind"];
  readonly isLost: boolean;
  readonly isDead: boolean;
  readonly error: string;
}

/**
 * The settles of one session that the server has not confirmed. Pure.
 *
 * Acks without a result go as packed columns, everything else as items. After a broken connection all that is
 * unconfirmed is sent again, which is safe because a lease is settled once. While many are unconfirmed the next
 * ones gather, so that a fast worker sends few, large settles.
 */
export class Settles {
  private ackIds: bigint[] = [];
  private ackDeliveries: bigint[] = [];
  private items: SettleItem[] = [];
  private seq = 0;
  private readonly unconfirmed = new Map<bigint, StreamSettle>();
  private unconfirmedJobs = 0;
  private fences: (() => void)[] = [];
  private readonly fenced = new Map<bigint, (() => void)[]>();

  /** Adds a job that is done, without a result. */
  ack(id: bigint, delivery: bigint): void {
    this.ackIds.push(id);
    this.ackDeliveries.push(delivery);
  }

  /** Adds a job with a result, one that failed, or one that is released. */
  add(item: SettleItem): void {
    this.items.push(item);
  }

  /**
   * Calls `passed` when the server has confirmed the next settle, which may be empty: it has handled all that was sent
   * before.
   */
  fence(passed: () => void): void {
    this.fences.push(passed);
  }

  /** How many jobs are settled and not confirmed, sent or not. */
  get jobs(): number {
    return this.ackIds.length + this.items.length + this.unconfirmedJobs;
  }

  /** Whether a settle waits to be sent. */
  get hasWaiting(): boolean {
    return this.ackIds.length > 0 || this.items.length > 0 || this.fences.length > 0;
  }

  /** Whether a sent settle is unconfirmed. */
  get hasUnconfirmed(): boolean {
    return this.unconfirmed.size > 0;
  }

  /** Returns the next settle to send, if one is due. Call until there is none. */
  take(): StreamSettle | undefined {
    if (this.unconfirmed.size >= UNCONFIRMED_MAX || !this.hasWaiting) return undefined;
    this.seq += 1;
    const seq = BigInt(this.seq);
    const settle = create(StreamSettleSchema, { seq });
    const count = Math.min(this.ackIds.length, ITEMS_MAX);
    settle.ackIds = this.ackIds.slice(0, count);
    settle.ackDeliveries = this.ackDeliveries.slice(0, count);
    this.ackIds = this.ackIds.slice(count);
    this.ackDeliveries = this.ackDeliveries.slice(count);
    this.takeItems(settle, ITEMS_MAX - count);
    keepNewest(settle);
    this.unconfirmed.set(seq, settle);
    this.unconfirmedJobs += jobsIn(settle);
    if (this.fences.length > 0) {
      this.fenced.set(seq, this.fences);
      this.fences = [];
    }
    return settle;
  }

  private takeItems(settle: StreamSettle, room: number): void {
    let total = 0;
    let count = 0;
    for (const item of this.items) {
      if (count >= room) break;
      total += sizeOf(item);
      if (total > ITEM_BYTES_MAX && count > 0) break;
      count += 1;
      if (item.kind === "ack") {
        const { id, delivery, result } = item;
        settle.acks.push({ $typeName: "jobline.v1.AckItem", id, delivery, result });
      } else if (item.kind === "fail") settle.fails.push(item.item);
      else settle.releases.push(item.item);
    }
    this.items = this.items.slice(count);
  }

  /** Returns all unconfirmed settles, oldest first, for a new stream. */
  resend(): StreamSettle[] {
    return [...this.unconfirmed.values()];
  }

  /** Returns id → delivery of all leases that were settled and not confirmed, sent or not. */
  unconfirmedLeases(): Map<bigint, bigint> {
    const leases = new Map(this.ackIds.map((id, index) => [id, this.ackDeliveries[index] ?? 0n]));
    for (const item of this.items) {
      const { id, delivery } = item.kind === "ack" ? item : item.item;
      leases.set(id, delivery);
    }
    for (const settle of this.unconfirmed.values()) {
      for (const [id, delivery] of leasesOf(settle)) leases.set(id, delivery);
    }
    return leases;
  }

  /** Forgets a confirmed settle; returns a report for each lease that was not DONE. */
  handleConfirm(confirm: StreamConfirm): SettleReport[] {
    const settle = this.unconfirmed.get(confirm.seq);
    if (!settle) return []; // one that was sent twice may be confirmed twice
    this.unconfirmed.delete(confirm.seq);
    this.unconfirmedJobs -= jobsIn(settle);
    for (const passed of this.fenced.get(confirm.seq) ?? []) passed();
    this.fenced.delete(confirm.seq);
    // Once for each lease, however often a server says it.
    const reports: (SettleReport | undefined)[] = [];
    for (const [index, outcome] of new Map(confirm.exceptions.map((one) => [one.index, one.outcome]))) {
      const isLost = outcome === SettleOutcome.LEASE_LOST || outcome === SettleOutcome.NOT_FOUND;
      reports.push(reportOf(settle, index, { isLost, isDead: false }));
    }
    for (const index of new Set(confirm.dead)) {
      reports.push(reportOf(settle, index, { isLost: false, isDead: true }));
    }
    return reports.filter((report) => report !== undefined);
  }
}

function sizeOf(item: SettleItem): number {
  if (item.kind === "ack") return item.result.length;
  if (item.kind === "release") return 32;
  const { error } = item.item;
  return (error?.message.length ?? 0) + (error?.stack.length ?? 0) + (error?.details.length ?? 0);
}

function jobsIn({ ackIds, acks, fails, releases }: StreamSettle): number {
  return ackIds.length + acks.length + fails.length + releases.length;
}

function leasesOf(settle: StreamSettle): [bigint, bigint][] {
  const leases = settle.ackIds.map((id, index): [bigint, bigint] => [id, settle.ackDeliveries[index] ?? 0n]);
  for (const items of [settle.acks, settle.fails, settle.releases]) {
    for (const { id, delivery } of items) leases.push([id, delivery]);
  }
  return leases;
}

/**
 * Keeps only the newest lease of each job. A job that was lost, leased again and settled again while nothing
 * could be sent is in the settle twice, which the server refuses.
 */
function keepNewest(settle: StreamSettle): void {
  const leases = leasesOf(settle);
  const newest = new Map<bigint, bigint>();
  for (const [id, delivery] of leases) {
    if (delivery >= (newest.get(id) ?? 0n)) newest.set(id, delivery);
  }
  if (newest.size === leases.length) return;
  const isNewest = ({ id, delivery }: { id: bigint; delivery: bigint }) => newest.get(id) === delivery;
  const kept = settle.ackIds
    .map((id, index) => ({ id, delivery: settle.ackDeliveries[index] ?? 0n }))
    .filter(isNewest);
  settle.ackIds = kept.map(({ id }) => id);
  settle.ackDeliveries = kept.map(({ delivery }) => delivery);
  settle.acks = settle.acks.filter(isNewest);
  settle.fails = settle.fails.filter(isNewest);
  settle.releases = settle.releases.filter(isNewest);
}

/** Returns the report for an index into a settle: packed ids first, then each kind of item. */
function reportOf(
  settle: StreamSettle,
  index: number,
  how: Pick<SettleReport, "isLost" | "isDead">,
): SettleReport | undefined {
  const ackId = settle.ackIds[index];
  if (ackId !== undefined) return { id: ackId, kind: "ack", error: "", ...how };
  let left = index - settle.ackIds.length;
  const ack = settle.acks[left];
  if (ack) return { id: ack.id, kind: "ack", error: "", ...how };
  left -= settle.acks.length;
  const fail = settle.fails[left];
  if (fail) {
    const error = [fail.error?.type, fail.error?.message].filter(Boolean).join(": ");
    return { id: fail.id, kind: "fail", error, ...how };
  }
  const release = settle.releases[left - settle.fails.length];
  return release && { id: release.id, kind: "release", error: "", ...how };
}
