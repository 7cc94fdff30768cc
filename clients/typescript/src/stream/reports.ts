import { create } from "@bufbuild/protobuf";
import { type ExtendItem, ExtendItemSchema } from "../v1/job_service_pb.js";
import { Pieces } from "./pieces.js";

/** Reports of one frame; the rest follow in the next. */
const ITEMS_MAX = 10_000;
/** Checkpoints and results of one frame, in bytes; the one that goes over it still goes. */
const BYTES_MAX = 2 << 20;

/** What a handler says of its job. A `partial` never replaces another one. */
export interface Report {
  readonly progress?: number;
  readonly message?: string;
  readonly checkpoint?: Uint8Array;
  readonly partial?: Uint8Array;
  readonly phase?: { readonly name: string; readonly result: Uint8Array };
}

/**
 * Reports to send: progress, messages, checkpoints, phases of jobs that run. Pure.
 *
 * Those that come faster than they can be sent are merged. The server does not confirm them, so finished phases
 * and the newest checkpoint of each held lease are kept, and sent again on a new stream.
 */
export class Reports {
  private readonly waiting = new Map<bigint, ExtendItem>();
  private readonly checkpoints = new Map<bigint, { delivery: bigint; checkpoint: Uint8Array }>();
  private phases: ExtendItem[] = [];
  private readonly finished = new Map<bigint, ExtendItem[]>();
  private readonly pieces = new Pieces();

  /** Whether a report waits to be sent. */
  get hasWaiting(): boolean {
    return this.waiting.size > 0 || this.phases.length > 0 || this.pieces.hasWaiting;
  }

  /** Adds a report; it replaces what was not sent yet, field by field. */
  add(id: bigint, delivery: bigint, report: Report): void {
    if (report.partial) this.pieces.add(id, delivery, report.partial);
    if (report.phase) this.finishPhase(id, delivery, report.phase);
    const { progress, message, checkpoint } = report;
    if (progress === undefined && message === undefined && checkpoint === undefined) return;
    let item = this.waiting.get(id);
    if (item?.delivery !== delivery) {
      item = create(ExtendItemSchema, { id, delivery });
      this.waiting.set(id, item);
    }
    if (progress !== undefined) item.progress = progress;
    if (message !== undefined) item.message = message;
    if (checkpoint !== undefined) {
      item.checkpoint = checkpoint;
      this.checkpoints.set(id, { delivery, checkpoint });
    }
  }

  /** Adds the end of a phase. Progress within it is not worth sending any more. */
  private finishPhase(id: bigint, delivery: bigint, phase: NonNullable<Report["phase"]>): void {
    const waiting = this.waiting.get(id);
    if (waiting) {
      delete waiting.progress;
      delete waiting.message;
    }
    const item = create(ExtendItemSchema, { id, delivery, phase: phase.name, phaseResult: phase.result });
    this.phases.push(item);
    const finished = this.finished.get(id);
    if (finished) finished.push(item);
    else this.finished.set(id, [item]);
  }

  /** Removes and returns as many reports as one frame may carry. */
  take(): ExtendItem[] {
    const items = this.pieces.take();
    let total = items.reduce((sum, item) => sum + item.partial.length, 0);
    while (this.phases.length > 0 && total < BYTES_MAX && items.length < ITEMS_MAX) {
      const item = this.phases.shift() as ExtendItem;
      items.push(item);
      total += item.phaseResult.length;
    }
    if (this.phases.length > 0) return items; // what was reported since is about later phases
    for (const [id, item] of this.waiting) {
      if (total >= BYTES_MAX || items.length >= ITEMS_MAX) break;
      this.waiting.delete(id);
      total += item.checkpoint?.length ?? 0;
      items.push(item);
    }
    return items;
  }

  /** Drops the reports of a job that is done; the ends of its phases and its pieces are sent before. */
  forget(id: bigint): void {
    this.waiting.delete(id);
    this.checkpoints.delete(id);
    this.finished.delete(id);
  }

  /** Drops the reports of a job whose lease is lost. */
  lose(id: bigint): void {
    this.forget(id);
    this.pieces.forget(id);
    this.phases = this.phases.filter((item) => item.id !== id);
  }

  /** Keeps only the unsent report of a settled lease: it is sent before the settle. */
  keepUntilSent(id: bigint): void {
    this.checkpoints.delete(id);
    this.finished.delete(id);
  }

  /** Queues finished phases and the newest checkpoints again: they may be lost with the old stream. */
  repeat(): void {
    const kept = new Set([...this.finished.values()].flat());
    this.phases = [...this.phases.filter((item) => !kept.has(item)), ...kept];
    for (const [id, { delivery, checkpoint }] of this.checkpoints) this.add(id, delivery, { checkpoint });
  }

  /** Drops all reports, because the server refused one. */
  clear(): void {
    this.waiting.clear();
    this.checkpoints.clear();
    this.phases = [];
    this.finished.clear();
    this.pieces.clear();
  }
}
