/** A JSON Schema, as an object. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A larger one is not announced: the server takes none. */
const BYTES_MAX = 64 << 10;

/** What schemas of libraries may have beside `parse`. */
interface Describing {
  readonly "~standard"?: {
    readonly jsonSchema?: { input(options: { target: string }): unknown };
  };
  toJSONSchema?(options: { io: "input"; unrepresentable: "any" }): unknown;
}

/**
 * Returns the JSON Schema of what a schema takes, as text; "" if it tells none. It is asked for by Standard JSON
 * Schema, which zod and others have, then by a method `toJSONSchema` as zod's, which leaves open what JSON Schema
 * cannot say. Throws an Error that says why there is none, where there should be.
 */
export function jsonSchemaText(schema: unknown): string {
  if (typeof schema !== "object" || schema === null) return "";
  const describing = schema as Describing;
  const ways = [
    () => describing["~standard"]?.jsonSchema?.input({ target: "draft-2020-12" }),
    () => describing.toJSONSchema?.({ io: "input", unrepresentable: "any" }),
  ];
  let failure: unknown;
  for (const way of ways) {
    try {
      const made = way();
      if (made !== undefined) return textOf(made);
    } catch (error) {
      failure = error;
    }
  }
  if (failure !== undefined) throw failure;
  return "";
}

/** Returns a JSON Schema as text. Throws an Error for one that is too large, or is none. */
export function textOf(schema: unknown): string {
  const text = typeof schema === "object" && schema !== null ? JSON.stringify(schema) : undefined;
  if (text === undefined) throw new Error("a JSON Schema is an object");
  const size = Buffer.byteLength(text);
  if (size > BYTES_MAX) throw new Error(`it has ${size} bytes, and the server takes ${BYTES_MAX}`);
  return text;
}
