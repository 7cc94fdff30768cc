/** What handlers of vectors do. */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type BatchItem,
  Cancel,
  type Context,
  Dead,
  defineJob,
  RateLimited,
  Retry,
  Snooze,
  type Worker,
} from "@jobline/client";
import type { Json } from "./vector_format.js";

type Action = Record<string, Json>;
export interface VectorHandler {
  name: string;
  do?: Action[][];
  batch?: { size: number; wait: number };
  answers?: Record<string, Action>;
}

const milliseconds = (seconds: Json): number => 1000 * Number(seconds);

export function addHandlers(worker: Worker, queue: string, handlers: readonly VectorHandler[]): void {
  for (const handler of handlers) {
    const job = defineJob<Json, unknown>({ queue, name: handler.name });
    const { batch, answers = {} } = handler;
    if (batch) {
      const options = { size: batch.size, wait: milliseconds(batch.wait) };
      worker.handleBatch(job, options, (items) => answersOf(items, answers));
    } else worker.handle(job, script(handler.do ?? []));
  }
}

function answersOf(items: readonly BatchItem<Json, undefined>[], all: Record<string, Action>) {
  const answers = new Map<bigint, unknown>();
  for (const { payload, context } of items) {
    const [word, value] = Object.entries(all[String(payload)] ?? {})[0] ?? ["", null];
    if (word === "return") answers.set(context.id, value);
    else if (word === "error") answers.set(context.id, new Error(String(value)));
    else if (word === "dead") answers.set(context.id, new Dead(String(value)));
  }
  return answers;
}

/** Does the n-th list of actions when a job is handed to it for the n-th time; the last one again after that. */
function script(turns: Action[][]) {
  const counts = new Map<bigint, number>();
  return async (payload: Json, context: Context<undefined>): Promise<unknown> => {
    const count = counts.get(context.id) ?? 0;
    counts.set(context.id, count + 1);
    for (const action of turns[Math.min(count, turns.length - 1)] ?? []) {
      const [word, value] = Object.entries(action)[0] ?? ["", null];
      const result = RESULTS[word];
      if (result) return result(value, payload, context);
      const act = ACTIONS[word];
      if (!act) throw new Error(`no such action: ${word}`);
      await act(value, context);
    }
    return undefined;
  };
}

const RESULTS: Record<string, (value: Json, payload: Json, context: Context<undefined>) => unknown> = {
  return: (value) => value,
  return_payload: (_, payload) => payload,
  return_attempt: (_, __, context) => context.attempt,
  return_headers: (_, __, context) => context.headers,
  return_checkpoint: (_, __, context) => context.checkpoint(),
};

function raise(error: unknown): never {
  throw error;
}

const ACTIONS: Record<string, (value: Json, context: Context<undefined>) => unknown> = {
  error: (value) => raise(new Error(String(value))),
  panic: (value) => raise(value), // what is no Error
  retry: (value) => raise(new Retry(milliseconds(value))),
  snooze: (value) => raise(new Snooze(milliseconds(value))),
  cancel: (value) => raise(new Cancel(String(value))),
  dead: (value) => raise(new Dead(String(value))),
  rate_limited: (value) => raise(new RateLimited(milliseconds(value))),
  progress: (value, context) => context.progress(Number(value)),
  log: (value, context) => context.log(String(value)),
  checkpoint: (value, context) => context.saveCheckpoint(value),
  partial: (value, context) => context.partial(value),
  finish_phase: (value, context) => {
    const { name, result } = value as { name: string; result: Json };
    context.finishPhase(name, result);
  },
  wait_cancelled: async (value, context) => {
    if (!context.signal.aborted) {
      const over = sleep(milliseconds(value), undefined, { ref: false });
      await Promise.race([once(context.signal, "abort"), over]);
    }
    context.throwIfCancelled();
  },
};
