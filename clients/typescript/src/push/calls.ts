import { randomBytes } from "node:crypto";
import type { Call } from "./batch.js";

/**
 * Calls of one producer from its oldest open one to its newest: half of what the server keeps. A call that
 * waits for long does not delay the others, which get another producer.
 */
const SPAN_MAX = 512;

/** How long a push is repeated, in milliseconds: the server knows a call for ten minutes. */
export const REPEAT_MAX = 540_000;

class Producer {
  readonly id = randomBytes(16).toString("hex");
  readonly open = new Set<number>();
  last = 0;

  private get oldest(): number {
    const [first] = this.open;
    return first ?? this.last + 1;
  }

  get isFull(): boolean {
    return this.open.size > 0 && this.last - this.oldest >= SPAN_MAX - 1;
  }

  begin(): Call {
    this.last += 1;
    this.open.add(this.last);
    return { producer: this.id, sequence: this.last, answeredBelow: this.oldest };
  }
}

/**
 * Numbers the push calls of a client, so that the server recognises a repeated one. A call without a definite
 * answer may be repeated for ten minutes: its producer makes no more calls, which would declare it over.
 */
export class PushCalls {
  private current = new Producer();
  private readonly producers = new Map([[this.current.id, this.current]]);

  /** Returns a new call; `over` must follow. */
  begin(): Call {
    if (this.current.isFull) {
      this.goOnWith([...this.producers.values()].find((producer) => !producer.isFull));
    }
    return this.current.begin();
  }

  /** Ends a call that was answered, or (not `isKnown`) given up without a definite answer. */
  over(call: Call | undefined, isKnown: boolean): void {
    const producer = call && this.producers.get(call.producer);
    if (!call || !producer) return;
    producer.open.delete(call.sequence);
    if (isKnown) return;
    this.producers.delete(producer.id);
    if (this.current === producer) this.goOnWith(this.producers.values().next().value);
  }

  private goOnWith(producer: Producer | undefined): void {
    this.current = producer ?? new Producer();
    this.producers.set(this.current.id, this.current);
  }
}
