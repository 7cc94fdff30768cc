import type { StreamRequest } from "../v1/job_service_pb.js";
import type { Settles } from "./settles.js";

/**
 * The drain of a session: asked for, sent on each stream, and confirmed on the newest. Pure.
 *
 * The server confirms a drain with a settle that was sent in a later frame: that confirm comes behind the last job. A
 * stream that is half-closed before would have no way to give such a job back.
 */
export class Draining {
  /** Whether no more jobs are asked for. */
  isWanted = false;
  /** Whether no job can come any more. */
  isConfirmed = false;
  private isSent = false;
  private fence: symbol | undefined;

  /** Begins a stream, which knows nothing of it. */
  connect(): void {
    this.isConfirmed = false;
    this.isSent = false;
    this.fence = undefined;
  }

  /** Asks for it in a frame, once a stream, and returns whether it did. */
  put(frame: StreamRequest): boolean {
    if (!this.isWanted || this.isSent) return false;
    frame.drain = true;
    this.isSent = true;
    return true;
  }

  /** Has a settle confirm it that is sent after this; call before each frame is made. */
  ask(settles: Settles): void {
    if (!this.isSent || this.fence) return;
    const fence = Symbol();
    this.fence = fence;
    // That of an earlier stream says nothing of this one.
    settles.fence(() => {
      if (fence === this.fence) this.isConfirmed = true;
    });
  }
}
