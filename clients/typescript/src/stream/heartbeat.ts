/** How long the server may take to answer `open`, in milliseconds. */
const OPEN_TIMEOUT = 10_000;
/** Milliseconds between frames until the server sets them. */
const HEARTBEAT_DEFAULT = 30_000;
/** Whatever the server asks for: no storm of frames, and a server that is gone is noticed. */
const HEARTBEAT_MIN = 50;
const HEARTBEAT_MAX = 60_000;
/** A frame is due after this share of the interval, or of the shortest lease that is held. */
const HEARTBEAT_SHARE = 0.8;
const LEASE_SHARE = 1 / 3;
/** Intervals of silence after which the server counts as gone. */
const SILENT_INTERVALS = 3;

/**
 * The times of one stream: when an empty frame is due, and when the server has been silent for too long. Pure:
 * the time is an argument, in milliseconds.
 */
export class Heartbeat {
  private interval = HEARTBEAT_DEFAULT;
  private leaseMin = Number.POSITIVE_INFINITY;
  private sentAt = 0;
  private silentAt = 0;
  private checkedAt = 0;

  /** Begins a stream. */
  connect(now: number): void {
    this.sentAt = now;
    this.checkedAt = now;
    this.silentAt = now + OPEN_TIMEOUT;
  }

  /** Sets the interval that the server asks for, within 50 ms … 60 s; 0: the default. */
  opened(now: number, interval: number): void {
    this.interval = Math.min(Math.max(interval || HEARTBEAT_DEFAULT, HEARTBEAT_MIN), HEARTBEAT_MAX);
    this.frameReceived(now);
  }

  /** Restarts the silence of the server. */
  frameReceived(now: number): void {
    this.silentAt = now + SILENT_INTERVALS * this.interval;
  }

  /** Restarts the time to the next frame. */
  frameSent(now: number): void {
    this.sentAt = now;
  }

  /** Notes the length of a lease; 0: unknown. */
  leased(leaseMs: number, holdsOthers: boolean): void {
    if (!holdsOthers) this.leaseMin = Number.POSITIVE_INFINITY;
    if (leaseMs > 0) this.leaseMin = Math.min(this.leaseMin, leaseMs);
  }

  /** Returns when a frame is due, even an empty one. */
  nextFrame(holdsLeases: boolean): number {
    const pause = HEARTBEAT_SHARE * this.interval;
    return (
      this.sentAt +
      (holdsLeases ? Math.min(pause, Math.max(LEASE_SHARE * this.leaseMin, HEARTBEAT_MIN)) : pause)
    );
  }

  /** Returns when to call `isSilent` again: twice per interval, or it could not see a stopped process. */
  nextSilenceCheck(): number {
    return Math.min(this.silentAt, this.checkedAt + this.interval / 2);
  }

  /**
   * Returns whether the server was silent for three intervals. If this process itself did not run for a while,
   * the server's frames may be waiting unread, so it gets the time again.
   */
  isSilent(now: number): boolean {
    const stoppedFor = now - this.checkedAt - this.interval;
    this.checkedAt = now;
    if (stoppedFor > 0) this.silentAt += stoppedFor;
    return now >= this.silentAt;
  }
}
