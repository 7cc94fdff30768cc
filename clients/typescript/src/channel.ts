import { isIPv6 } from "node:net";
import { type ClientOptions, Metadata } from "@grpc/grpc-js";
import { InvalidArgument } from "./errors.js";
import { refuseNoObject } from "./given.js";
import type { Token } from "./identity.js";
import type { Tls } from "./tls.js";

/** The address of a server, unless an argument or JOBLINE_SERVER overrides it. */
export const DEFAULT_TARGET = "localhost:7070";

/** A reply, a frame or a page of the server; requests are bounded by the server. */
export const MESSAGE_BYTES_MAX = 64 << 20;

/** Where a server is, what it is shown, and what is trusted. */
export interface Address {
  /** HOST:PORT; default: JOBLINE_SERVER, else localhost:7070. */
  target?: string;
  /**
   * TLS: true for the authorities of Node, or files of one's own. Default: JOBLINE_TLS, JOBLINE_TLS_CA,
   * JOBLINE_CLIENT_CERTIFICATE and JOBLINE_CLIENT_KEY, else plaintext.
   */
  tls?: boolean | Tls;
  /**
   * An API key or JSON Web Token, or a function that returns the one of now, at once or later; it is called in each
   * call and for each stream. Default: JOBLINE_TOKEN, else none.
   */
  token?: Token;
  /** Sends a token in plaintext to other hosts than this one, which is refused otherwise. */
  insecureToken?: boolean;
  /** Metadata of each call. */
  metadata?: Readonly<Record<string, string>>;
}

/** What an `Address` may have. */
export const ADDRESS_OPTIONS: Record<keyof Required<Address>, true> = {
  target: true,
  tls: true,
  token: true,
  insecureToken: true,
  metadata: true,
};

/**
 * Calls that change nothing, or nothing more when they are repeated. `Push` is not among them: the client
 * repeats it itself, for longer and under one number.
 */
const SAFE_CALLS: Record<string, readonly string[]> = {
  JobAdminService: ["GetJob", "ListJobs", "ExplainJob"],
  QueueService: ["ListQueues", "GetQueue", "GetQueueHistory", "UpdateQueue", "PauseQueue", "ResumeQueue"],
  LimiterService: ["UpsertLimiter", "GetLimiter", "ListLimiters", "EmptyLimiter"],
  ScheduleService: [
    ...["GetSchedule", "ListSchedules", "PreviewSchedule"],
    ...["UpdateSchedule", "PauseSchedule", "ResumeSchedule"],
  ],
  WebhookService: ["GetWebhook", "ListWebhooks", "ListWebhookDeliveries", "UpdateWebhook"],
  BatchService: ["CreateBatch", "CloseBatch", "GetBatch", "ListBatches", "CancelBatch"],
  FlowService: ["PushFlow", "GetFlow"],
  DeadLetterService: ["ListDeadJobs", "GetDeadLetterStats"],
  AdminService: ["GetBackup", "GetStats", "ListOperations", "ListWorkers"],
};

const SERVICE_CONFIG = {
  methodConfig: [
    {
      name: Object.entries(SAFE_CALLS).flatMap(([service, methods]) =>
        methods.map((method) => ({ service: `jobline.v1.${service}`, method })),
      ),
      retryPolicy: {
        maxAttempts: 5,
        initialBackoff: "0.1s",
        maxBackoff: "2s",
        backoffMultiplier: 2,
        retryableStatusCodes: ["UNAVAILABLE"],
      },
    },
  ],
};

const OPTIONS: ClientOptions = {
  "grpc.service_config": JSON.stringify(SERVICE_CONFIG),
  "grpc.max_receive_message_length": MESSAGE_BYTES_MAX,
  "grpc.max_send_message_length": MESSAGE_BYTES_MAX,
  // gRPC's own defaults wait up to two minutes before it tries a restarted server.
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 3_000,
  // Finds a dead connection under calls that wait long; the server permits a ping every 10 s.
  "grpc.keepalive_time_ms": 15_000,
  "grpc.keepalive_timeout_ms": 10_000,
};

/** Targets that do not leave this host. */
const NEAR =
  /^(dns:(\/\/\/)?|ipv4:|ipv6:)?(localhost|127(\.\d{1,3}){3}|\[::1\]|\[::ffff:127\.0\.0\.1\])(:\d+)?$/i;

/** Returns whether a target is on this host. */
export function isNear(target: string): boolean {
  return /^unix(-abstract)?:/.test(target) || NEAR.test(target);
}

/** Returns the options of a channel. Of this host no proxy knows anything, whatever `http_proxy` says. */
export function channelOptions(target: string): ClientOptions {
  return isNear(target) ? { ...OPTIONS, "grpc.enable_http_proxy": 0 } : OPTIONS;
}

/** Returns the options of a channel that shares its connection with no other. */
export function ownConnection(target: string): ClientOptions {
  return { ...channelOptions(target), "grpc.use_local_subchannel_pool": 1 };
}

/** Returns the metadata of each call. Throws InvalidArgument for what fits into no header. */
export function metadataOf(metadata: Readonly<Record<string, string>>): Metadata {
  refuseNoObject("metadata", metadata);
  const made = new Metadata();
  for (const [key, value] of Object.entries(metadata)) {
    if (!/^[a-z0-9_.-]+$/i.test(key) || key.endsWith("-bin")) {
      throw new InvalidArgument(`${JSON.stringify(key)} is no key of metadata: use a-z, 0-9, - _ . alone`);
    }
    // The value may be a secret, so it is not in the message.
    if (typeof value !== "string" || !/^[\x20-\x7e]*$/.test(value)) {
      throw new InvalidArgument(`the metadata ${JSON.stringify(key)} must be printable ASCII text`);
    }
    made.set(key, value);
  }
  return made;
}

/** Returns a target as gRPC needs it. Throws InvalidArgument for what is not HOST:PORT. */
export function targetOf({ target }: Address): string {
  const given = target ?? process.env.JOBLINE_SERVER ?? DEFAULT_TARGET;
  if (typeof given === "string" && /^(unix|unix-abstract|dns|ipv4|ipv6|xds):/.test(given)) return given;
  const match = /^(\[[^\]]*\]|[A-Za-z0-9._-]+):(\d{1,5})$/.exec(String(given));
  const [, host = "", port = "0"] = match ?? [];
  const isHost = host.startsWith("[") ? isIPv6(host.slice(1, -1)) : host !== "";
  if (!isHost || Number(port) < 1 || Number(port) > 65_535) {
    throw new InvalidArgument(
      `the server's address ${JSON.stringify(given)} is not HOST:PORT: write it as in ${DEFAULT_TARGET}`,
      { fields: { target: "is not HOST:PORT" } },
    );
  }
  return given;
}
