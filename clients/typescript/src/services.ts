/** Typed stubs over grpc-js, made from the descriptors of the generated code. */
import {
  create,
  type DescMessage,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";

/** How one call is made. */
export interface CallOptions {
  /** Milliseconds for the whole call; default: the client's timeout. */
  timeout?: number;
  /** Cancels the call. */
  signal?: AbortSignal;
}

/** A service as methods: unary ones return promises, server streams async iterables. */
export type Stub<S extends DescService> = {
  readonly [K in keyof S["method"] as S["method"][K] extends DescMethodUnary | DescMethodServerStreaming
    ? K
    : never]: S["method"][K] extends DescMethodUnary<infer I, infer O>
    ? (request: MessageInitShape<I>, options?: CallOptions) => Promise<MessageShape<O>>
    : S["method"][K] extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageInitShape<I>, options?: CallOptions) => AsyncIterable<MessageShape<O>>
      : never;
};

/** What a stub is made of: one call each way. */
export interface Caller {
  /** Makes a unary call. */
  unary(path: string, request: Uint8Array, options: CallOptions): Promise<Uint8Array>;
  /** Makes a call whose answers are a stream. */
  stream(path: string, request: Uint8Array, options: CallOptions): AsyncIterable<Uint8Array>;
}

/** Returns the stub of a service. */
export function stubOf<S extends DescService>(service: S, caller: Caller): Stub<S> {
  const stub: Record<string, unknown> = {};
  for (const method of service.methods) {
    const path = pathOf(service, method.name);
    const encode = (request: MessageInitShape<DescMessage>) =>
      toBinary(method.input, create(method.input, request));
    if (method.methodKind === "unary") {
      stub[method.localName] = async (request: MessageInitShape<DescMessage>, options: CallOptions = {}) =>
        fromBinary(method.output, await caller.unary(path, encode(request), options));
    } else if (method.methodKind === "server_streaming") {
      stub[method.localName] = async function* (
        request: MessageInitShape<DescMessage>,
        options: CallOptions = {},
      ) {
        for await (const answer of caller.stream(path, encode(request), options)) {
          yield fromBinary(method.output, answer);
        }
      };
    }
  }
  return stub as Stub<S>;
}

/** Returns the path of a method. */
export function pathOf(service: DescService, method: string): string {
  return `/${service.typeName}/${method}`;
}
