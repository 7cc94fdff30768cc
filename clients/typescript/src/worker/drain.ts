/** Milliseconds that the server has to confirm the last settles. */
const CONFIRM_MAX = 5_000;

/** The stages of a stop. */
export const Stage = { WORKING: 0, FINISHING: 1, CANCELLING: 2, RELEASING: 3, STOPPED: 4 } as const;

/** One of the stages. */
export type Stage = (typeof Stage)[keyof typeof Stage];

/**
 * How a worker stops: finish, then cancel, then release. Pure: times are arguments, in milliseconds.
 *
 *     WORKING ── stop ─▶ FINISHING ── soft stop ─▶ CANCELLING ── hard stop ─▶ RELEASING ── confirmed, 5 s ─▶ STOPPED
 *
 * Each stage ends early when nothing is left for it, and at once at another request to stop. A polite stop never
 * costs a job more than a kill does.
 */
export class Drain {
  private endsAt: number | undefined;
  private requested = 0;
  private taken = 0;
  private readonly lengths: Partial<Record<Stage, number>>;
  /** Where the stop stands. */
  stage: Stage = Stage.WORKING;

  /** Makes the stages of one stop. */
  constructor(softStop: number, hardStop: number) {
    this.lengths = {
      [Stage.FINISHING]: softStop,
      [Stage.CANCELLING]: hardStop,
      [Stage.RELEASING]: CONFIRM_MAX,
    };
  }

  /** Requests the stop, or its next stage. */
  requestStop(): void {
    this.requested += 1;
  }

  /** When the stage ends at the latest. */
  get deadline(): number | undefined {
    return this.endsAt;
  }

  /** Returns the stage that begins now, if one does; call again until there is none. */
  step(now: number, isIdle: boolean, isConfirmed: boolean): Stage | undefined {
    if (this.stage === Stage.STOPPED) return undefined;
    if (this.taken < this.requested) this.taken += 1;
    else if (!this.isOver(now, isIdle, isConfirmed)) return undefined;
    this.stage = (this.stage + 1) as Stage;
    const length = this.lengths[this.stage];
    this.endsAt = length === undefined ? undefined : now + length;
    return this.stage;
  }

  private isOver(now: number, isIdle: boolean, isConfirmed: boolean): boolean {
    if (this.stage === Stage.WORKING) return false;
    if (this.stage === Stage.RELEASING && isConfirmed) return true;
    if (this.stage !== Stage.RELEASING && isIdle) return true;
    return this.endsAt !== undefined && now >= this.endsAt;
  }
}
