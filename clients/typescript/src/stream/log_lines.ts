import { create } from "@bufbuild/protobuf";
import type { LogLevel } from "../v1/job_pb.js";
import { type StreamLog, StreamLogSchema } from "../v1/job_service_pb.js";

/** Limits of the server, for one job and for one frame. */
const LINES_MAX = 1_000;
const LINES_BYTES_MAX = 1 << 20;
const FRAME_LINES_MAX = 5_000;
const FRAME_BYTES_MAX = 2 << 20;

/** One line for the log of a job. */
export interface LogEntry {
  readonly atMs: number;
  readonly level: LogLevel;
  readonly text: string;
}

interface Waiting {
  readonly id: bigint;
  readonly delivery: bigint;
  lines: LogEntry[];
  size: number;
}

/**
 * Lines of job logs to send. Pure. They go in batches with the next frames; nothing confirms them. Of a job that
 * writes faster than lines can be sent, the oldest are dropped, as the server would drop them.
 */
export class LogLines {
  private readonly waiting = new Map<string, Waiting>();

  /** Whether a line waits to be sent. */
  get hasWaiting(): boolean {
    return this.waiting.size > 0;
  }

  /** Adds a line. */
  add(id: bigint, delivery: bigint, entry: LogEntry): void {
    const key = `${id}:${delivery}`;
    let waiting = this.waiting.get(key);
    if (!waiting) {
      waiting = { id, delivery, lines: [], size: 0 };
      this.waiting.set(key, waiting);
    }
    waiting.lines.push(entry);
    waiting.size += entry.text.length;
    while (waiting.size > LINES_BYTES_MAX || waiting.lines.length > LINES_MAX) {
      waiting.size -= waiting.lines.shift()?.text.length ?? 0;
    }
  }

  /** Removes and returns as many lines as one frame may carry. */
  take(): StreamLog[] {
    const logs: StreamLog[] = [];
    let count = 0;
    let size = 0;
    for (const [key, { id, delivery, lines, size: bytes }] of this.waiting) {
      count += lines.length;
      if (size >= FRAME_BYTES_MAX || count > FRAME_LINES_MAX) break;
      size += bytes;
      this.waiting.delete(key);
      logs.push(
        create(StreamLogSchema, {
          id,
          delivery,
          lines: lines.map((line) => line.text),
          levels: lines.map((line) => line.level),
          atMs: lines.map((line) => BigInt(line.atMs)),
        }),
      );
    }
    return logs;
  }

  /** Drops the lines of a lease that is lost. */
  forget(id: bigint, delivery: bigint): void {
    this.waiting.delete(`${id}:${delivery}`);
  }

  /** Drops all lines, because the server refused one. */
  clear(): void {
    this.waiting.clear();
  }
}
