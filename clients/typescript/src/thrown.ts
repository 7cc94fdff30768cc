/**
 * What a handler throws or returns may be anything, such as a Proxy whose traps throw: then `instanceof`, a property
 * or a text of it throws, too. What is here never does.
 */

/** Returns whether a value is of a class; what cannot be asked is of none. */
export function isA<T>(value: unknown, Kind: abstract new (...given: never[]) => T): value is T {
  try {
    return value instanceof Kind;
  } catch {
    return false;
  }
}

/** Returns a value as text: a text as it is, else its JSON, else what `String` makes of it. */
export function textOf(value: unknown): string {
  try {
    if (typeof value === "string") return value;
    return (isA(value, Error) ? undefined : JSON.stringify(value)) ?? String(value);
  } catch {
    return "a value that has no text";
  }
}

/** Returns the text of what `read` returns; `otherwise` if that throws. */
export function readText(read: () => unknown, otherwise: string): string {
  try {
    return textOf(read());
  } catch {
    return otherwise;
  }
}
