/** Checks of what is given by programs in plain JavaScript, which no compiler has looked at. */
import { InvalidArgument } from "./errors.js";

/** Returns the error for an argument or option that is something else than it must be. */
export function wrongly(field: string, wanted: string, given: unknown): InvalidArgument {
  return new InvalidArgument(`${field}: is ${wanted}, not ${named(given)}`, {
    fields: { [field]: `is not ${wanted}` },
  });
}

/** Returns what a value is, in a word or two; never its contents, which may be secret. */
function named(given: unknown): string {
  if (given === null || given === undefined) return String(given);
  if (typeof given === "number" || typeof given === "boolean") return `the ${typeof given} ${given}`;
  if (Array.isArray(given)) return "an array";
  return given === "" ? "an empty text" : `a value of type ${typeof given}`;
}

/** Throws InvalidArgument for what is no object: options in the wrong place, or null. */
export function refuseNoObject(field: string, given: unknown): void {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw wrongly(field, "an object", given);
  }
}

/** Throws InvalidArgument for what is no function. */
export function refuseNoFunction(field: string, given: unknown): void {
  if (typeof given !== "function") throw wrongly(field, "a function", given);
}

/** Throws InvalidArgument for what is no text, or an empty one. */
export function refuseNoText(field: string, given: unknown): void {
  if (typeof given !== "string" || given === "") throw wrongly(field, "a text", given);
}

/** Throws InvalidArgument for what is no array, or has something else in it than `isOne` takes. */
export function refuseNoArray(
  field: string,
  wanted: string,
  given: unknown,
  isOne: (one: unknown) => boolean,
): void {
  if (!Array.isArray(given)) throw wrongly(field, `an array of ${wanted}`, given);
  const other = given.findIndex((one) => !isOne(one));
  if (other >= 0) throw wrongly(`${field}[${other}]`, `one of ${wanted}`, given[other]);
}

/** Throws InvalidArgument for what is no id. */
export function refuseNoId(field: string, given: unknown): void {
  if (typeof given !== "bigint") throw wrongly(field, "a bigint, as a push returns it", given);
  if (given < 0n || given >= 2n ** 64n) throw wrongly(field, "a bigint of 64 bits without a sign", given);
}

/** Throws InvalidArgument for what is no AbortSignal. */
export function refuseNoSignal(given: unknown): void {
  const isSignal = typeof given === "object" && given !== null && "aborted" in given;
  if (given !== undefined && !isSignal) throw wrongly("signal", "an AbortSignal", given);
}

/** Throws InvalidArgument for what has not these methods. */
export function refuseWithout(field: string, wanted: string, given: unknown, ...methods: string[]): void {
  const value = given as Record<string, unknown> | null | undefined;
  if (methods.some((method) => typeof value?.[method] !== "function")) throw wrongly(field, wanted, given);
}
