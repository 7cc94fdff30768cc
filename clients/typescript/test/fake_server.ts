/** A server that answers as a test tells it to, and be it wrongly. */
import { after } from "node:test";
import { create, type DescMessage, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  type handleBidiStreamingCall,
  type handleServerStreamingCall,
  type handleUnaryCall,
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServiceError,
  type UntypedHandleCall,
} from "@grpc/grpc-js";
import { JobService, StreamRequestSchema, StreamResponseSchema } from "@jobline/client/v1";

/** How the methods are answered, in bytes: those of a message, or others. */
export interface Answers {
  Push?: handleUnaryCall<Buffer, Uint8Array>;
  Stream?: handleBidiStreamingCall<Buffer, Uint8Array>;
  Wait?: handleServerStreamingCall<Buffer, Uint8Array>;
}

/** Returns the address of a server that lives until the tests of the file are over. */
export async function fakeServer(answers: Answers): Promise<string> {
  const server = new Server();
  for (const [name, handler] of Object.entries(answers)) {
    const method = {
      path: `/${JobService.typeName}/${name}`,
      requestStream: name === "Stream",
      responseStream: name !== "Push",
      requestDeserialize: (bytes: Buffer) => bytes,
      requestSerialize: (bytes: Buffer) => bytes,
      responseDeserialize: (bytes: Buffer) => bytes,
      responseSerialize: (bytes: Uint8Array) => Buffer.from(bytes),
    };
    server.addService({ [name]: method }, { [name]: handler as UntypedHandleCall });
  }
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  after(() => server.forceShutdown());
  return `127.0.0.1:${port}`;
}

/** Returns the bytes of a message. */
export function bytesOf<S extends DescMessage>(schema: S, message: MessageInitShape<S>): Uint8Array {
  return toBinary(schema, create(schema, message));
}

function field(number: number, bytes: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
}

/** Returns an error of a server with a reason, as a handler of grpc-js takes it. */
export function refusal(code: number, reason: string): Partial<ServiceError> {
  const text = (number: number, value: string) => field(number, Buffer.from(value));
  const info = Buffer.concat([text(1, reason), text(2, "jobline")]);
  const detail = Buffer.concat([text(1, "type.googleapis.com/google.rpc.ErrorInfo"), field(2, info)]);
  const metadata = new Metadata();
  metadata.set("grpc-status-details-bin", Buffer.concat([Buffer.from([8, code]), field(3, detail)]));
  return { code, details: reason, metadata };
}

type StreamCall = ServerDuplexStream<Buffer, Uint8Array>;

/** Writes frames to a stream. */
export function say(call: StreamCall, ...frames: MessageInitShape<typeof StreamResponseSchema>[]): void {
  for (const frame of frames) call.write(bytesOf(StreamResponseSchema, frame));
}

/** Confirms all that a worker settles, and ends the stream when the worker does. */
export function confirmAll(call: StreamCall): void {
  call.on("error", () => undefined);
  call.on("end", () => call.end());
  call.on("data", (bytes: Buffer) => {
    const { settles } = fromBinary(StreamRequestSchema, bytes);
    if (settles.length > 0) say(call, { confirms: settles.map(({ seq }) => ({ seq })) });
  });
}
