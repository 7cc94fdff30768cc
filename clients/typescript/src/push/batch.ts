/** A batch: the pushes that one call carries. Pure. */

/** What a push has of its own beside its payload; "" without a key or group. */
export interface Own {
  readonly jobKey: string;
  readonly uniqueKey: string;
  readonly group: string;
  readonly headers: Readonly<Record<string, string>> | undefined;
}

/** What most pushes have of their own. One object, so that it is found by identity. */
export const NOTHING: Own = Object.freeze({ jobKey: "", uniqueKey: "", group: "", headers: undefined });

/** One push that waits to be answered. */
export interface Push<W> {
  readonly payload: Uint8Array;
  readonly own: Own;
  readonly waiter: W;
}

/** Pushes that are sent in one call. */
export interface Batch<K, W> {
  readonly key: K;
  readonly pushes: readonly Push<W>[];
  readonly payloadBytes: number;
  readonly giveUpAt: number;
  /** The number of the call; undefined if job keys make a repeat safe. */
  readonly call: Call | undefined;
  tries: number;
}

/** A push call as the server recognises it: a producer, and which of its calls this is. */
export interface Call {
  readonly producer: string;
  readonly sequence: number;
  readonly answeredBelow: number;
}

/** Returns the size of all payloads. */
export function payloadBytes(pushes: readonly Push<unknown>[]): number {
  let total = 0;
  for (const push of pushes) total += push.payload.length;
  return total;
}

/**
 * Returns two parts of pushes, neither of which is empty: those without a job key and those with one, or the
 * halves if there are no such two kinds. A part keeps the order of its pushes.
 */
export function partsOf<W>(pushes: readonly Push<W>[]): [Push<W>[], Push<W>[]] {
  const keyed = pushes.filter((push) => push.own.jobKey);
  if (keyed.length > 0 && keyed.length < pushes.length) {
    return [pushes.filter((push) => !push.own.jobKey), keyed];
  }
  const middle = pushes.length >> 1;
  return [pushes.slice(0, middle), pushes.slice(middle)];
}
