import type { Duration as DurationMessage, Timestamp } from "@bufbuild/protobuf/wkt";
import { InvalidArgument } from "./errors.js";

/** A span of time: milliseconds, or text such as `"250ms"`, `"90s"`, `"5m"`, `"1h"`, `"7d"`. */
export type Duration = number | string;

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const SPAN = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;

/** Returns a span in milliseconds. Throws InvalidArgument, which names `field`, for anything else. */
export function milliseconds(span: Duration, field: string): number {
  if (typeof span === "number" && Number.isFinite(span) && span >= 0) return span;
  const match = typeof span === "string" ? SPAN.exec(span) : null;
  const unit = match ? UNITS[match[2] ?? ""] : undefined;
  if (!match || unit === undefined) {
    throw new InvalidArgument(
      `${field}: a span is milliseconds from 0, or text such as "90s", not ${JSON.stringify(span)}`,
      { fields: { [field]: "is no span of time" } },
    );
  }
  return Number(match[1]) * unit;
}

/** Returns a span within bounds, in milliseconds. Throws InvalidArgument outside of them. */
export function boundedMilliseconds(span: Duration, field: string, most: number): number {
  const ms = milliseconds(span, field);
  if (ms > most) {
    throw new InvalidArgument(`${field}: is at most ${most / 1_000} s, not ${ms / 1_000} s`, {
      fields: { [field]: "is too long" },
    });
  }
  return ms;
}

/** Returns the message of a span. */
export function durationMessage(span: Duration, field: string): DurationMessage {
  const ms = milliseconds(span, field);
  const seconds = Math.floor(ms / 1_000);
  return {
    $typeName: "google.protobuf.Duration",
    seconds: BigInt(seconds),
    nanos: Math.round((ms - seconds * 1_000) * 1e6) % 1e9,
  };
}

/** Returns the milliseconds of a message; 0 without one. */
export function messageMilliseconds(message: { seconds: bigint; nanos: number } | undefined): number {
  return message ? Number(message.seconds) * 1_000 + message.nanos / 1e6 : 0;
}

/** Returns the message of a moment. Throws InvalidArgument for what is no moment. */
export function timestampMessage(moment: Date, field: string): Timestamp {
  const ms = moment instanceof Date ? moment.getTime() : Number.NaN;
  if (Number.isNaN(ms)) {
    throw new InvalidArgument(`${field}: must be a valid Date`, { fields: { [field]: "is no moment" } });
  }
  const seconds = Math.floor(ms / 1_000);
  return {
    $typeName: "google.protobuf.Timestamp",
    seconds: BigInt(seconds),
    nanos: (ms - seconds * 1_000) * 1e6,
  };
}

/** Returns the Date of a message, if there is one. */
export function dateOf(message: Timestamp | undefined): Date | undefined {
  return message && new Date(messageMilliseconds(message));
}
