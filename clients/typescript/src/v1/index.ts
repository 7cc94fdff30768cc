/** The generated stubs of `jobline.v1`: messages, enums and the descriptors of services. */
export * from "./admin_service_pb.js";
export * from "./batch_service_pb.js";
export * from "./dead_letter_service_pb.js";
export * from "./errors_pb.js";
export * from "./event_pb.js";
export * from "./flow_service_pb.js";
export * from "./job_admin_service_pb.js";
export * from "./job_pb.js";
export * from "./job_service_pb.js";
export * from "./limiter_service_pb.js";
export * from "./queue_pb.js";
export * from "./queue_service_pb.js";
export * from "./schedule_service_pb.js";
export * from "./webhook_service_pb.js";
