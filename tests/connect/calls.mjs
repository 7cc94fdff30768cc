// Calls a Jobline server with Connect's own client, which knows the server only by its descriptors.
//
//   node calls.mjs http://127.0.0.1:7071 descriptors.binpb
//
// For JSON and for binary messages: pushes a job, pulls it, acks it, pulls what is not there until
// its time is over, and reads the reason of an error. Prints one line of JSON with what it saw.
import { readFileSync } from "node:fs";
import { create, createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";

const [, , baseUrl, descriptors] = process.argv;
const registry = createFileRegistry(
  fromBinary(FileDescriptorSetSchema, readFileSync(descriptors)),
);

// google.rpc.ErrorInfo is not among the server's descriptors: `debug` has it as JSON.
function refusal(error) {
  const { code, rawMessage, details } = ConnectError.from(error);
  const info = details.find((detail) => detail.type === "google.rpc.ErrorInfo");
  return { code: Code[code], message: rawMessage, reason: info?.debug?.reason };
}

async function refused(call) {
  try {
    await call();
  } catch (error) {
    return refusal(error);
  }
  throw new Error("it was accepted");
}

async function run(useBinaryFormat) {
  const queue = useBinaryFormat ? "binary" : "json";
  const transport = createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat });
  const jobs = createClient(registry.getService("jobline.v1.JobService"), transport);
  const queues = createClient(registry.getService("jobline.v1.QueueService"), transport);

  const pushed = await jobs.push({ queue, payloads: [new TextEncoder().encode("hello")] });
  const { jobs: leased } = await jobs.pull({ queues: [{ queue }], maxJobs: 1 });
  const [job] = leased;
  const acked = await jobs.ack({ ids: [job.id], deliveries: [job.delivery] });
  const again = await jobs.ack({ ids: [job.id], deliveries: [job.delivery] });
  const waiting = { queues: [{ queue }], wait: { seconds: 20n, nanos: 0 } };
  return {
    id: String(pushed.firstId),
    leased: String(job.id),
    payload: new TextDecoder().decode(job.content?.value ?? job.payload),
    exceptions: acked.exceptions.length,
    again: again.exceptions.length,
    invalid: await refused(() => jobs.push({ queue: "a b", payloads: [new Uint8Array()] })),
    missing: await refused(() => queues.getQueue({ queue: "nothing" })),
    late: await refused(() => jobs.pull(waiting, { timeoutMs: 100 })),
    stream: await refused(async () => {
      for await (const _ of jobs.wait({ ids: [1n] }));
    }),
  };
}

console.log(JSON.stringify({ json: await run(false), binary: await run(true) }));
