/** Client and worker of Jobline. See the README for a tour; `@jobline/client/v1` has the generated stubs. */
export type { Admin } from "./admin.js";
export type { BatchCallback, BatchRef, BatchSettings } from "./batches.js";
export type { Address } from "./channel.js";
export { Client, type ClientOptions, type PushAndWait, type PushCall } from "./client.js";
export type { Duration } from "./duration.js";
export type { EntityRef } from "./entity.js";
export * from "./errors.js";
export { FlowJob, type FlowJobOptions, type FlowPushed } from "./flows.js";
export type { Token } from "./identity.js";
export { type Codec, defineJob, type JobDeclaration, type JobType, NewJob, type Schema } from "./job_type.js";
export type { JsonSchema } from "./json_schema.js";
export type { Backoff, EnumName, JobOptions, PushOptions, Retention } from "./options.js";
export type { Pushed } from "./push/answers.js";
export type { ManyOptions } from "./push/messages.js";
export { type Outgoing, type PushMiddleware, type PushNext, withHeaders } from "./push/outgoing.js";
export type { ScheduleSettings } from "./schedules.js";
export type { Key } from "./sealing/frame.js";
export {
  KeyMap,
  type KeyRing,
  type Opened,
  PayloadCodec,
  type PayloadCodecOptions,
} from "./sealing/payload_codec.js";
export type { CallOptions, Stub } from "./services.js";
export type { Tls } from "./tls.js";
export type { TraceMode } from "./tracing.js";
export { VERSION } from "./version.js";
export { type JobEnd, resultOf, type WaitOptions } from "./waiting.js";
export { Forgotten } from "./worker/answers.js";
export { Context, type ContextHost } from "./worker/context.js";
export { LeasedJob } from "./worker/leased.js";
export type { WorkerStats } from "./worker/link.js";
export type { Logger } from "./worker/logger.js";
export type { Middleware } from "./worker/middleware.js";
export {
  Cancel,
  type CancelReason,
  Dead,
  Outcome,
  RateLimited,
  Retry,
  Snooze,
  Stopped,
  WaitFor,
} from "./worker/outcomes.js";
export type { BatchAnswers, BatchHandler, BatchItem, BatchOptions, Handler } from "./worker/routes.js";
export type { WorkerOptions } from "./worker/settings.js";
export { Worker } from "./worker/worker.js";
