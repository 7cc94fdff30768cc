import { isA } from "../thrown.js";
import type { Context } from "./context.js";

/** A batch handler returned nothing for this job. The job fails; it is never assumed done. */
export class Forgotten extends Error {
  override readonly name = "Forgotten";
}

/** Returns the answer for each job of a batch, from what its handler returned. */
export function answersOf(contexts: readonly Context[], returned: unknown): [Context, unknown][] {
  if (isA(returned, Map)) {
    const forgotten = new Forgotten("the batch handler returned nothing for this job");
    return contexts.map((context) => [
      context,
      returned.has(context.id) ? returned.get(context.id) : forgotten,
    ]);
  }
  if (isA(returned, Error)) return contexts.map((context) => [context, returned]);
  if (Array.isArray(returned) && returned.length === contexts.length) {
    return contexts.map((context, index) => [context, returned[index]]);
  }
  const what = Array.isArray(returned)
    ? `${returned.length} answers for ${contexts.length} jobs` // which belongs to which is unknown
    : `${typeof returned}, no array and no map`;
  return contexts.map((context) => [context, new Forgotten(`the batch handler returned ${what}`)]);
}
