import { type TraceMode, tracedCall } from "../tracing.js";
import type { Context } from "./context.js";
import { isFailure } from "./outcomes.js";
import type { Route } from "./routes.js";

/**
 * Wraps each call of a handler. `contexts` are the jobs of that call: one, or those of a batch. What `next`
 * returns is what the handler returned, what it throws is the handler's error; return or throw something else to
 * change the outcome. A payload that cannot be read fails before any middleware is called.
 */
export type Middleware<S = unknown> = (
  contexts: readonly Context<S>[],
  next: () => Promise<unknown>,
) => Promise<unknown>;

/** What goes around each call of a handler. */
export interface Around {
  readonly middleware: readonly Middleware[];
  readonly tracing: TraceMode;
}

/** Returns the call of a handler, within its middleware, within its span. */
export function wholeCall(
  { middleware, tracing }: Around,
  route: Route,
  contexts: readonly Context[],
  payloads: readonly unknown[],
): () => unknown {
  const call = () => {
    const { call: one, batch } = route;
    if (one) return one(payloads[0], contexts[0] as Context);
    return batch?.(contexts.map((context, index) => ({ payload: payloads[index], context })));
  };
  const whole = middleware.length === 0 ? call : wrapped(middleware, contexts, call);
  return tracedCall(tracing, contexts, whole, isFailure);
}

function wrapped<S>(
  middleware: readonly Middleware<S>[],
  contexts: readonly Context<S>[],
  call: () => unknown,
): () => unknown {
  return middleware.reduceRight<() => unknown>(
    (next, layer) => () => layer(contexts, async () => next()),
    call,
  );
}
