import { constants, hostname } from "node:os";
import { create, toBinary } from "@bufbuild/protobuf";
import { ADDRESS_OPTIONS, type Address, MESSAGE_BYTES_MAX } from "../channel.js";
import { boundedMilliseconds, type Duration, durationMessage, milliseconds } from "../duration.js";
import { InvalidArgument } from "../errors.js";
import { refuseNoArray, refuseNoFunction, refuseNoObject, refuseWithout } from "../given.js";
import { refuseOthers } from "../known_options.js";
import type { PayloadCodec } from "../sealing/payload_codec.js";
import { WINDOW_MAX } from "../stream/window.js";
import type { TraceMode } from "../tracing.js";
import { StreamOpenSchema } from "../v1/job_service_pb.js";
import { VERSION } from "../version.js";
import { handlerDescription } from "./announced.js";
import type { FailurePauseSettings } from "./failure_pause.js";
import { type Logger, STDERR } from "./logger.js";
import type { Middleware } from "./middleware.js";
import type { Routes } from "./routes.js";

/** How a worker works. */
export interface WorkerOptions<S = unknown> extends Address {
  /** Handlers that run at once; default 16. */
  concurrency?: number;
  /** Jobs to have at hand, started ones included, 0 … 100,000; default: it follows the work. */
  window?: number;
  /** Bytes of their payloads; default 64 MiB. */
  windowBytes?: number;
  /** Overrides the jobs' own lease, 1 s … 12 h. Leases are kept alive however long a handler takes. */
  lease?: Duration;
  /** Queues to take from, with their shares; default: those of the handlers, alike. */
  queues?: Readonly<Record<string, number>>;
  /** What operators see; default host and process id. */
  id?: string;
  /** Version of the program, for `minWorkerVersion` too. */
  version?: string;
  /** At most 16 words about it. */
  labels?: Readonly<Record<string, string>>;
  /** Signals of the process that stop the worker, such as `["SIGTERM", "SIGINT"]`; default none. */
  signals?: readonly NodeJS.Signals[];
  /** How long handlers may finish after a stop; default 20 s. */
  softStop?: Duration;
  /** How long they have to end after their abort then; default 5 s. What is left is released. */
  hardStop?: Duration;
  /** How long a handler has to stop when its job was cancelled or its lease is lost; default 30 s. */
  cancelGrace?: Duration;
  /**
   * After so many attempts that fail in a row the worker takes no jobs for `failurePause`, and gives back those that
   * it has not begun; then one more failure is enough, until a job succeeds. Default: off.
   */
  pauseAfterFailures?: number;
  /** How long it pauses then, up to 24 h; default 30 s. */
  failurePause?: Duration;
  /**
   * Port of `/healthz` and `/metrics`; 0: one that the system chooses, which `worker.healthPort` tells. Default:
   * none.
   */
  healthPort?: number;
  /** The address that it listens on; default 127.0.0.1. */
  healthHost?: string;
  /** Opens payloads, and seals results and what handlers push: the codec of the clients that push. */
  codec?: PayloadCodec;
  /**
   * The span of OpenTelemetry around a handler: it links to the push of its job ("link", the default), or is a
   * child of it ("child", but a batch links to all); "off": none. Jobs that were pushed without a trace have none.
   */
  tracing?: TraceMode;
  /** Around each call of a handler, the first outermost. */
  middleware?: readonly Middleware<S>[];
  /** Makes `context.state` before the first job; disposed of after the last, if it can be. */
  state?: () => S | Promise<S>;
  /** Where to log; default: lines on stderr. */
  logger?: Logger;
}

const WORKER_OPTIONS: Record<keyof Required<WorkerOptions>, true> = {
  ...ADDRESS_OPTIONS,
  concurrency: true,
  window: true,
  windowBytes: true,
  lease: true,
  queues: true,
  id: true,
  version: true,
  labels: true,
  signals: true,
  softStop: true,
  hardStop: true,
  cancelGrace: true,
  pauseAfterFailures: true,
  failurePause: true,
  healthPort: true,
  healthHost: true,
  codec: true,
  tracing: true,
  middleware: true,
  state: true,
  logger: true,
};

/** The settings of a worker, checked where it is made and not only when it runs. Times are in milliseconds. */
export interface Settings {
  readonly concurrency: number;
  readonly window: number | undefined;
  readonly windowBytes: number;
  readonly softStop: number;
  readonly hardStop: number;
  readonly cancelGrace: number;
  readonly healthPort: number | undefined;
  readonly healthHost: string;
  readonly failurePause: FailurePauseSettings | undefined;
  readonly codec: PayloadCodec | undefined;
  readonly tracing: TraceMode;
  readonly logger: Logger;
}

/** Returns the settings of a worker. Throws InvalidArgument for what is out of bounds or does not exist. */
export function settingsOf<S>(options: WorkerOptions<S>): Settings {
  refuseOthers(options, WORKER_OPTIONS);
  refuseWrongParts(options);
  return {
    concurrency: whole("concurrency", options.concurrency ?? 16, 1, WINDOW_MAX),
    window: options.window === undefined ? undefined : whole("window", options.window, 0, WINDOW_MAX),
    windowBytes: whole("windowBytes", options.windowBytes ?? 64 << 20, 0, 2 ** 40),
    softStop: milliseconds(options.softStop ?? "20s", "softStop"),
    hardStop: milliseconds(options.hardStop ?? "5s", "hardStop"),
    cancelGrace: milliseconds(options.cancelGrace ?? "30s", "cancelGrace"),
    healthPort:
      options.healthPort === undefined ? undefined : whole("healthPort", options.healthPort, 0, 65_535),
    healthHost: options.healthHost ?? "127.0.0.1",
    failurePause: failurePauseOf(options),
    codec: options.codec,
    tracing: traceModeOf(options.tracing ?? "link"),
    logger: options.logger ?? STDERR,
  };
}

/** Throws InvalidArgument for what would break a worker only when it is used. */
function refuseWrongParts<S>(options: WorkerOptions<S>): void {
  const { codec, logger, middleware = [], signals = [], state, queues = {}, labels = {} } = options;
  if (codec !== undefined) refuseWithout("codec", "a PayloadCodec", codec, "sealLike", "open");
  if (logger !== undefined) {
    refuseWithout("logger", "what has the methods info, warn and error", logger, "info", "warn", "error");
  }
  if (state !== undefined) refuseNoFunction("state", state);
  refuseNoArray("middleware", "functions", middleware, (one) => typeof one === "function");
  refuseNoArray("signals", "names such as SIGTERM", signals, (one) => typeof one === "string");
  for (const signal of signals) refuseNoSignal(signal);
  refuseNoObject("queues", queues);
  refuseNoObject("labels", labels);
}

/** Throws InvalidArgument for a signal that would never stop the worker: Node takes any name without a word. */
function refuseNoSignal(signal: NodeJS.Signals): void {
  if (signal in constants.signals && signal !== "SIGKILL" && signal !== "SIGSTOP") return;
  throw new InvalidArgument(`signals: ${signal} is no signal that a program can handle`, {
    fields: { signals: "is no signal that a program can handle" },
  });
}

function failurePauseOf<S>(options: WorkerOptions<S>): FailurePauseSettings | undefined {
  const pause = boundedMilliseconds(options.failurePause ?? "30s", "failurePause", 86_400_000);
  const { pauseAfterFailures: given } = options;
  return given === undefined
    ? undefined
    : { failures: whole("pauseAfterFailures", given, 1, 1_000_000), pause };
}

function traceModeOf(mode: TraceMode): TraceMode {
  if (["link", "child", "off"].includes(mode)) return mode;
  throw new InvalidArgument(`tracing: is "link", "child" or "off", not ${mode}`);
}

function whole(field: string, value: number, least: number, most: number): number {
  if (!Number.isSafeInteger(value) || value < least || value > most) {
    throw new InvalidArgument(`${field}: is a whole number ${least} … ${most}, not ${value}`, {
      fields: { [field]: "is out of range" },
    });
  }
  return value;
}

/** Returns the encoded `open` of a worker. Throws InvalidArgument without a handler. */
export function openingOf<S>(options: WorkerOptions<S>, routes: Routes): Uint8Array {
  if (routes.all.length === 0) throw new InvalidArgument("a worker needs at least one handler");
  const host = hostname();
  const weights = options.queues ?? Object.fromEntries(routes.queues.map((queue) => [queue, 1]));
  const opening = create(StreamOpenSchema, {
    worker: {
      id: options.id ?? `${host}:${process.pid}`,
      host,
      pid: process.pid,
      version: options.version ?? "",
      labels: { ...options.labels },
      language: `typescript/${VERSION}`,
    },
    handlers: routes.all.map(({ job }) => handlerDescription(job, options.logger ?? STDERR)),
    queues: Object.entries(weights).map(([queue, weight]) => ({ queue, weight })),
    ...(options.lease !== undefined && { lease: durationMessage(options.lease, "lease") }),
    acceptsRuns: true,
    maxMessageBytes: BigInt(MESSAGE_BYTES_MAX),
  });
  try {
    return toBinary(StreamOpenSchema, opening);
  } catch (error) {
    throw new InvalidArgument(`this cannot be sent: ${(error as Error).message}`, { cause: error });
  }
}
