import type { DescService } from "@bufbuild/protobuf";
import type { Connection } from "./connection.js";
import type { Stub } from "./services.js";
import { AdminService } from "./v1/admin_service_pb.js";
import { BatchService } from "./v1/batch_service_pb.js";
import { DeadLetterService } from "./v1/dead_letter_service_pb.js";
import { FlowService } from "./v1/flow_service_pb.js";
import { JobAdminService } from "./v1/job_admin_service_pb.js";
import { JobService } from "./v1/job_service_pb.js";
import { LimiterService } from "./v1/limiter_service_pb.js";
import { QueueService } from "./v1/queue_service_pb.js";
import { ScheduleService } from "./v1/schedule_service_pb.js";
import { WebhookService } from "./v1/webhook_service_pb.js";

/**
 * The generated stubs of all services, with the deadline, metadata and typed errors of their client. Calls that
 * change nothing, or nothing more when they are repeated, are repeated while the server cannot be reached.
 */
export class Admin {
  readonly #connection: Connection;

  /** Makes the stubs of a connection. */
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Returns the stub of any service. */
  service<S extends DescService>(service: S): Stub<S> {
    return this.#connection.stub(service);
  }

  /** Statistics, workers, handlers, backups, operations. */
  get server(): Stub<typeof AdminService> {
    return this.service(AdminService);
  }

  /** Single jobs, and bulk changes of many. */
  get jobs(): Stub<typeof JobAdminService> {
    return this.service(JobAdminService);
  }

  /** Queues and groups. */
  get queues(): Stub<typeof QueueService> {
    return this.service(QueueService);
  }

  /** Named limiters. */
  get limiters(): Stub<typeof LimiterService> {
    return this.service(LimiterService);
  }

  /** Dead letters. */
  get deadLetters(): Stub<typeof DeadLetterService> {
    return this.service(DeadLetterService);
  }

  /** Schedules. */
  get schedules(): Stub<typeof ScheduleService> {
    return this.service(ScheduleService);
  }

  /** Flows. */
  get flows(): Stub<typeof FlowService> {
    return this.service(FlowService);
  }

  /** Batches. */
  get batches(): Stub<typeof BatchService> {
    return this.service(BatchService);
  }

  /** Webhooks. */
  get webhooks(): Stub<typeof WebhookService> {
    return this.service(WebhookService);
  }

  /** What producers and workers use, without what `Client` and `Worker` add; `watch` is here. */
  get raw(): Stub<typeof JobService> {
    return this.service(JobService);
  }
}
