/** The format of the conformance vectors, as docs/clients.md describes it: variables, and the one way to match. */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Fields = { [name: string]: Json };
export type Variables = Map<string, string>;

const NAME = /\$[a-z][a-z0-9_]*/g;
const base64 = (text: string): string => Buffer.from(text).toString("base64");
export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function filledText(text: string, known: Variables): string {
  return text.replace(NAME, (name) => known.get(name.slice(1)) ?? "");
}

function only(value: Fields, name: string): Json | undefined {
  return Object.keys(value).length === 1 ? value[name] : undefined;
}

/** Returns a request with its variables replaced and its short forms written out. */
export function filled(value: Json, known: Variables): Json {
  if (typeof value === "string") return filledText(value, known);
  if (Array.isArray(value)) return value.map((item) => filled(item, known));
  if (!isFields(value)) return value;
  const text = only(value, "as_text");
  if (typeof text === "string") return base64(filledText(text, known));
  const json = only(value, "as_json");
  if (json !== undefined) return base64(JSON.stringify(filled(json, known)));
  if (typeof value.times === "number") return new Array(value.times).fill(filled(value.of ?? null, known));
  const entries = Object.entries(value);
  return Object.fromEntries(entries.map(([name, item]) => [filledText(name, known), filled(item, known)]));
}

export class Mismatch extends Error {}

function check(holds: boolean, path: string, wanted: Json, got: unknown): void {
  if (holds) return;
  const shown = got === undefined ? "nothing" : JSON.stringify(got);
  throw new Mismatch(`${path}: expected ${JSON.stringify(wanted)}, got ${shown}`);
}

/** Throws Mismatch unless `got` is as wanted; a variable that has no value yet takes it. */
export function match(wanted: Json, got: Json | undefined, known: Variables, path = "reply"): void {
  if (wanted === null) check(got === undefined, path, wanted, got);
  else if (typeof wanted === "boolean") check(got === wanted, path, wanted, got);
  else if (typeof wanted === "number") check(isNumber(wanted, got), path, wanted, got);
  else if (typeof wanted === "string") matchText(wanted, got, known, path);
  else if (Array.isArray(wanted)) matchList(wanted, got, known, path);
  else matchFields(wanted, got, known, path);
}

/** Numbers are equal as numbers: protobuf's JSON writes those of 64 bits as texts. */
function isNumber(wanted: number, got: Json | undefined): boolean {
  return (typeof got === "number" || (typeof got === "string" && got !== "")) && Number(got) === wanted;
}

function matchText(wanted: string, got: Json | undefined, known: Variables, path: string): void {
  const isText = typeof got === "string" || typeof got === "number";
  const name = wanted.slice(1);
  if (wanted.replace(NAME, "") === "" && wanted.startsWith("$") && !name.includes("$") && !known.has(name)) {
    check(isText && got !== "", path, wanted, got);
    known.set(name, String(got));
  } else check(isText && String(got) === filledText(wanted, known), path, wanted, got);
}

function matchList(wanted: Json[], got: Json | undefined, known: Variables, path: string): void {
  const list = got ?? [];
  check(Array.isArray(list) && list.length === wanted.length, path, wanted, got);
  if (!Array.isArray(list)) return;
  for (const [index, item] of wanted.entries()) match(item, list[index], known, `${path}[${index}]`);
}

function matchFields(wanted: Fields, got: Json | undefined, known: Variables, path: string): void {
  const some = only(wanted, "has");
  const bytes = only(wanted, "as_text") ?? only(wanted, "as_json");
  if (Array.isArray(some)) {
    matchSome(some, got, known, path);
  } else if (bytes !== undefined) {
    check(typeof got === "string", path, wanted, got);
    const text = Buffer.from(String(got), "base64").toString();
    match(bytes, "as_text" in wanted ? text : (JSON.parse(text) as Json), known, path);
  } else {
    check(got === undefined || isFields(got), path, wanted, got);
    const fields = isFields(got) ? got : {};
    for (const [name, item] of Object.entries(wanted)) {
      match(item, fields[filledText(name, known)], known, `${path}.${name}`);
    }
  }
}

function matchSome(wanted: Json[], got: Json | undefined, known: Variables, path: string): void {
  for (const item of wanted) {
    const found = Array.isArray(got) && got.some((one) => matches(item, one, known));
    check(found, path, item, got);
  }
}

/** Whether `got` is as wanted; variables take their values if it is. */
export function matches(wanted: Json, got: Json | undefined, known: Variables): boolean {
  const tried = new Map(known);
  try {
    match(wanted, got, tried);
  } catch (error) {
    if (error instanceof Mismatch) return false;
    throw error;
  }
  for (const [name, value] of tried) known.set(name, value);
  return true;
}
