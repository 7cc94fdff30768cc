import type { Context } from "./context.js";

/**
 * Wraps each call of a handler. `contexts` are the jobs of that call: one, or those of a batch. What `next`
 * returns is what the handler returned, what it throws is the handler's error; return or throw something else to
 * change the outcome. A payload that cannot be read fails before any middleware is called.
 */
export type Middleware<S = unknown> = (
  contexts: readonly Context<S>[],
  next: () => Promise<unknown>,
) => Promise<unknown>;

/** Returns a call through all middleware, the first outermost. */
export function wrapped<S>(
  middleware: readonly Middleware<S>[],
  contexts: readonly Context<S>[],
  call: () => unknown,
): () => unknown {
  return middleware.reduceRight<() => unknown>(
    (next, layer) => () => layer(contexts, async () => next()),
    call,
  );
}
