import { CodecError } from "./errors.js";

/** The content type of JSON. */
export const JSON_TYPE = "application/json";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });
const EMPTY = new Uint8Array();

/** Returns a value as bytes: bytes as they are, nothing as no bytes, anything else as JSON. */
export function encode(value: unknown): { data: Uint8Array; isJson: boolean } {
  if (value instanceof Uint8Array) return { data: value, isJson: false };
  if (value === undefined) return { data: EMPTY, isJson: false };
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw new CodecError(`this has no JSON: ${String(error)}`, { cause: error });
  }
  if (text === undefined) throw new CodecError(`a value of type ${typeof value} has no JSON`);
  return { data: encoder.encode(text), isJson: true };
}

/** Returns the value of JSON bytes; `undefined` for none. Throws CodecError for what is no JSON. */
export function decodeJson(data: Uint8Array): unknown {
  if (data.length === 0) return undefined;
  try {
    return JSON.parse(decoder.decode(data));
  } catch (error) {
    throw new CodecError(`this is no JSON: ${(error as Error).message}`, { cause: error });
  }
}

/** Returns text cut at a number of bytes, never inside a character. */
export function cutText(text: string, bytes: number): string {
  const data = encoder.encode(text);
  // Back from bytes in any case: half a surrogate pair is in no message.
  if (data.length <= bytes) return new TextDecoder().decode(data);
  return new TextDecoder().decode(data.subarray(0, bytes)).replace(/\uFFFD+$/, "");
}
