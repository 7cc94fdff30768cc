import { create } from "@bufbuild/protobuf";
import { type ExtendItem, ExtendItemSchema } from "../v1/job_service_pb.js";

/** What the server keeps of a job; a piece counts as its bytes and about what it takes besides. */
const PIECES_BYTES_MAX = 1 << 20;
const PIECE_EXTRA_BYTES = 100;
/** What one frame carries. */
const FRAME_BYTES_MAX = 1 << 20;
const FRAME_PIECES_MAX = 1_000;

interface Waiting {
  readonly id: bigint;
  readonly delivery: bigint;
  pieces: Uint8Array[];
  size: number;
}

/**
 * Pieces of results to send. Pure. They go in order, before the outcome of their job; nothing confirms them. Of
 * a job that makes them faster than they can be sent, the oldest are dropped, as the server would drop them.
 */
export class Pieces {
  private readonly waiting = new Map<bigint, Waiting>();

  /** Whether a piece waits to be sent. */
  get hasWaiting(): boolean {
    return this.waiting.size > 0;
  }

  /** Adds a piece of a job. */
  add(id: bigint, delivery: bigint, data: Uint8Array): void {
    let waiting = this.waiting.get(id);
    if (waiting?.delivery !== delivery) {
      waiting = { id, delivery, pieces: [], size: 0 };
      this.waiting.set(id, waiting);
    }
    waiting.pieces.push(data);
    waiting.size += data.length + PIECE_EXTRA_BYTES;
    while (waiting.size > PIECES_BYTES_MAX) {
      waiting.size -= (waiting.pieces.shift()?.length ?? 0) + PIECE_EXTRA_BYTES;
    }
  }

  /** Removes and returns as many pieces as one frame may carry. */
  take(): ExtendItem[] {
    const items: ExtendItem[] = [];
    let size = 0;
    for (const waiting of this.waiting.values()) {
      let taken = 0;
      for (const partial of waiting.pieces) {
        if (size >= FRAME_BYTES_MAX || items.length >= FRAME_PIECES_MAX) break;
        items.push(create(ExtendItemSchema, { id: waiting.id, delivery: waiting.delivery, partial }));
        size += partial.length;
        waiting.size -= partial.length + PIECE_EXTRA_BYTES;
        taken += 1;
      }
      waiting.pieces = waiting.pieces.slice(taken);
      if (waiting.pieces.length > 0) break;
      this.waiting.delete(waiting.id);
    }
    return items;
  }

  /** Drops the pieces of a job whose lease is lost. */
  forget(id: bigint): void {
    this.waiting.delete(id);
  }

  /** Drops all pieces, because the server refused one. */
  clear(): void {
    this.waiting.clear();
  }
}
