import { fromBinary } from "@bufbuild/protobuf";
import { Internal } from "../errors.js";
import { type StreamResponse, StreamResponseSchema } from "../v1/job_service_pb.js";

/** The largest id of a job. */
const ID_MAX = 2n ** 64n - 1n;

/** Returns a frame of the server. Throws Internal for bytes that are none, and for jobs and leases that cannot be. */
export function readFrame(bytes: Uint8Array): StreamResponse {
  let frame: StreamResponse;
  try {
    frame = fromBinary(StreamResponseSchema, bytes);
  } catch (error) {
    throw unreadable(error instanceof Error ? error.message : String(error), error);
  }
  // Before any of it is taken: a lease with such an id could never be settled.
  for (const { firstId, payloads } of frame.runs) {
    if (firstId === 0n || firstId + BigInt(payloads.length) - 1n > ID_MAX) {
      throw unreadable(`there are no ${payloads.length} ids from ${firstId} on`);
    }
  }
  if (frame.jobs.some(({ id }) => id === 0n)) throw unreadable("a job has no id");
  const { heldIds = [], heldDeliveries = [] } = frame.opened ?? {};
  if (heldIds.length !== heldDeliveries.length) {
    throw unreadable(`${heldIds.length} jobs are held, by ${heldDeliveries.length} leases`);
  }
  return frame;
}

function unreadable(why: string, cause?: unknown): Internal {
  const facts = { reason: "UNEXPECTED_ANSWER", ...(cause !== undefined && { cause }) };
  return new Internal(`a frame of the server cannot be read: ${why}`, facts);
}
