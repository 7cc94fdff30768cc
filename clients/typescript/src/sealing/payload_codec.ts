import { createHmac } from "node:crypto";
import { CodecError, InvalidArgument, KeyErased } from "../errors.js";
import { refuseNoFunction, refuseNoObject, refuseWithout } from "../given.js";
import { refuseOthers } from "../known_options.js";
import type { Outgoing } from "../push/outgoing.js";
import {
  isFrame,
  KEY_BYTES,
  KEY_ID_BYTES_MAX,
  type Key,
  makeFrame,
  openFrame,
  parseFrame,
  SEALED_TYPE,
} from "./frame.js";

/** The header of a job that has the id of the key of its payload. */
export const KEY_HEADER = "jobline-key";

/** The keys of a codec. What it throws fails the call, or the attempt of a job, which is then tried again. */
export interface KeyRing {
  /** Returns the key to encrypt with, for jobs of a group; "" for those without one. */
  current(group: string): Key;
  /** Returns the 32 bytes of a key; undefined if there is none any more: it was erased, for good. */
  find(id: string): Uint8Array | undefined;
}

/** A key ring in memory: keys by id, and the function that says which one is current for a group. */
export class KeyMap implements KeyRing {
  // Not `private`, which logs would show.
  readonly #keys: Map<string, Uint8Array>;

  /**
   * Makes a ring. `currentId` returns the id for a group: one for each tenant, so that it can be erased alone. Throws
   * InvalidArgument for a key that has not 32 bytes, or an id that has not 1 … 64.
   */
  constructor(
    keys: Readonly<Record<string, Uint8Array>> | ReadonlyMap<string, Uint8Array>,
    private readonly currentId: (group: string) => string,
  ) {
    refuseNoObject("keys", keys);
    refuseNoFunction("currentId", currentId);
    this.#keys = new Map(keys instanceof Map ? keys : Object.entries(keys));
    for (const [id, key] of this.#keys) refuseUnfit(id, key);
  }

  current(group: string): Key {
    const id = this.currentId(group);
    const key = this.#keys.get(id);
    if (!key) throw erased(id);
    return { id, key };
  }

  find(id: string): Uint8Array | undefined {
    return this.#keys.get(id);
  }

  /** Erases a key: nothing that was sealed with it can be read any more, anywhere. */
  drop(id: string): void {
    this.#keys.delete(id);
  }
}

/** Throws InvalidArgument for what is no key: it would refuse each push, and not before. */
function refuseUnfit(id: string, key: Uint8Array): void {
  const fields = { keys: "has one that does not fit" };
  const size = typeof id === "string" ? Buffer.byteLength(id) : 0;
  if (size < 1 || size > KEY_ID_BYTES_MAX) {
    const message = `keys: the id of a key is a text of 1 … ${KEY_ID_BYTES_MAX} bytes, and one has ${size}`;
    throw new InvalidArgument(message, { fields });
  }
  if (key instanceof Uint8Array && key.length === KEY_BYTES) return;
  const has = key instanceof Uint8Array ? `has ${key.length}` : "is no Uint8Array";
  const message = `keys: a key is a Uint8Array of ${KEY_BYTES} bytes, and ${JSON.stringify(id)} ${has}`;
  throw new InvalidArgument(message, { fields });
}

/** The settings of a codec. */
export interface PayloadCodecOptions {
  /** The keys to encrypt with; default: nothing is encrypted. */
  keys?: KeyRing;
  /** Whether what has 256 bytes or more is deflated, if that makes it smaller; default true. */
  deflate?: boolean;
  /** How large a payload or result may be when it is inflated; default 64 MiB. */
  inflatedBytesMax?: number;
  /**
   * Names of tags whose values nobody should read: a tag `email:a@b.c` is sent as `codec.tag("email", "a@b.c")`,
   * for "email" here. They need `tagKey`.
   */
  hashedTags?: Iterable<string>;
  /** 32 bytes, of no key in the ring: jobs can be found by their tags after a key was erased. */
  tagKey?: Uint8Array;
}

const CODEC_OPTIONS: Record<keyof Required<PayloadCodecOptions>, true> = {
  ...({ keys: true, deflate: true, inflatedBytesMax: true, hashedTags: true, tagKey: true } as const),
};

/** What was in a frame. */
export interface Opened {
  /** The bytes. */
  readonly data: Uint8Array;
  /** What they are; "" for bytes, and for what was not sealed. */
  readonly contentType: string;
  /** The id of its key; "" without one. */
  readonly keyId: string;
}

/** Seals payloads and results: the server, its operators and its files see them deflated and encrypted. */
export class PayloadCodec {
  // Not `private`: a codec in a log would show its keys.
  readonly #options: PayloadCodecOptions;
  private readonly hashedTags: ReadonlySet<string>;
  private readonly inflatedBytesMax: number;

  /** Makes a codec, for clients and workers. Throws InvalidArgument for settings that do not fit. */
  constructor(options: PayloadCodecOptions = {}) {
    refuseOthers(options, CODEC_OPTIONS);
    this.#options = { ...options };
    const { keys, inflatedBytesMax = 64 << 20, hashedTags = [], tagKey } = options;
    if (keys !== undefined) refuseWithout("keys", "a KeyMap, or another KeyRing", keys, "current", "find");
    if (!Number.isSafeInteger(inflatedBytesMax) || inflatedBytesMax < 1) {
      throw new InvalidArgument(`inflatedBytesMax: is a whole number from 1, not ${inflatedBytesMax}`);
    }
    this.inflatedBytesMax = inflatedBytesMax;
    this.hashedTags = new Set(hashedTags);
    const isKey = tagKey instanceof Uint8Array && tagKey.length === KEY_BYTES;
    if (tagKey !== undefined ? !isKey : this.hashedTags.size > 0) {
      throw new InvalidArgument(`tagKey: has ${KEY_BYTES} bytes, and hashedTags need it`);
    }
  }

  /** Returns what a tag is sent as: 32 hexadecimal digits, to search for. */
  tag(name: string, value: string): string {
    const { tagKey } = this.#options;
    if (!tagKey) throw new InvalidArgument("tagKey: a hashed tag needs it");
    const hash = createHmac("sha256", tagKey).update(`${name}\0${value}`).digest();
    return hash.subarray(0, 16).toString("hex");
  }

  /** Returns tags as they are sent. */
  tags(tags: readonly string[]): string[] {
    return tags.map((tag) => {
      const at = tag.indexOf(":");
      const name = tag.slice(0, Math.max(at, 0));
      return at >= 0 && this.hashedTags.has(name) ? this.tag(name, tag.slice(at + 1)) : tag;
    });
  }

  /** Returns a sealed frame of bytes, with the current key of a group. Throws KeyErased, CodecError. */
  seal(data: Uint8Array, contentType = "", group = ""): Uint8Array {
    return this.frame(data, contentType, this.#options.keys?.current(group), "");
  }

  /** Returns a sealed frame with the key of another one; "": with the current key of a group. */
  sealLike(data: Uint8Array, contentType: string, keyId: string, group: string): Uint8Array {
    if (!keyId) return this.seal(data, contentType, group);
    return this.frame(data, contentType, { id: keyId, key: this.find(keyId) }, "");
  }

  /** Returns what is in a frame; bytes that are no frame as they are. Throws KeyErased, CodecError. */
  open(data: Uint8Array): Opened {
    if (!isFrame(data)) return { data, contentType: "", keyId: "" };
    const frame = parseFrame(data);
    const { contentType, keyId } = frame;
    const key = keyId ? this.find(keyId) : undefined;
    return { data: openFrame(frame, key, this.inflatedBytesMax), contentType, keyId };
  }

  /** Returns a job as it is stored. Middleware has seen it as it was. */
  sealJob(job: Outgoing, scope = ""): Outgoing {
    const { contentType = "", group = "", jobKey, tags, headers, ...rest } = job.options;
    const key = this.#options.keys?.current(group);
    const own = jobKey === undefined ? scope : `job_key:${job.queue}:${jobKey}`;
    return {
      queue: job.queue,
      payload: this.frame(job.payload, contentType, key, own),
      options: {
        ...rest,
        contentType: SEALED_TYPE,
        ...(group && { group }),
        ...(jobKey !== undefined && { jobKey }),
        ...(tags && { tags: this.tags(tags) }),
        ...((headers || key) && { headers: { ...headers, ...(key && { [KEY_HEADER]: key.id }) } }),
      },
    };
  }

  private frame(data: Uint8Array, contentType: string, key: Key | undefined, scope: string): Uint8Array {
    return makeFrame(data, contentType, { key, mayDeflate: this.#options.deflate ?? true, scope });
  }

  private find(id: string): Uint8Array {
    const { keys } = this.#options;
    if (!keys)
      throw new CodecError(`it is sealed with the key ${JSON.stringify(id)}, and the codec has no keys`);
    const key = keys.find(id);
    if (!key) throw erased(id);
    if (key.length !== KEY_BYTES)
      throw new CodecError(`the key ${JSON.stringify(id)} has not ${KEY_BYTES} bytes`);
    return key;
  }
}

function erased(id: string): KeyErased {
  const message = `the key ${JSON.stringify(id)} is not in the key ring: what it has sealed can be read no more`;
  return new KeyErased(message, { reason: "KEY_ERASED" });
}

/** Returns a job as it is stored by a client with this codec, if there is one. */
export function sealedJob(codec: PayloadCodec | undefined, job: Outgoing, scope = ""): Outgoing {
  return codec ? codec.sealJob(job, scope) : job;
}

/** Returns what is in a frame. Throws CodecError for a frame without a codec. */
export function opened(codec: PayloadCodec | undefined, data: Uint8Array): Opened {
  if (codec) return codec.open(data);
  if (isFrame(data))
    throw new CodecError("it is sealed, and there is no codec to read it: give the option `codec`");
  return { data, contentType: "", keyId: "" };
}
