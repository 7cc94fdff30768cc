import type { PushedConditions } from "./conditions.js";
import type { SeenJob } from "./seen_job.js";

const JOBS_SHOWN = 20;
/** How many of many jobs to look for, to show some and to know that there are more. */
export const SHOWN_OF_MANY = JOBS_SHOWN + 1;
const CHARACTERS_SHOWN = 200;

/** Returns what was asked for, in words. */
export function described(wanted: PushedConditions): string {
  const parts = Object.entries(wanted).map(([name, value]) => `${name}=${textOf(value)}`);
  return parts.join(", ") || "any";
}

/** Returns jobs as lines of a message. */
export function shown(jobs: readonly SeenJob[]): string {
  const lines = jobs.slice(0, JOBS_SHOWN).map(({ id, queue, name, state, payload, error }) => {
    const failed = error ? ` ${cut(`${error.type}: ${JSON.stringify(error.message)}`)}` : "";
    return `  ${id} ${name ? `${queue}/${name}` : queue} ${state} ${cut(textOf(payload))}${failed}`;
  });
  if (jobs.length > JOBS_SHOWN) lines.push("  and more");
  return lines.join("\n") || "  none";
}

function cut(text: string): string {
  return text.length > CHARACTERS_SHOWN ? `${text.slice(0, CHARACTERS_SHOWN)}…` : text;
}

function textOf(value: unknown): string {
  if (value instanceof Uint8Array) return `${value.length} bytes`;
  return JSON.stringify(value, (_, one) => (typeof one === "bigint" ? String(one) : one)) ?? "nothing";
}
