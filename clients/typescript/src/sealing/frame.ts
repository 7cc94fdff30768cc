import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import { deflateSync, inflateSync } from "node:zlib";
import { CodecError } from "../errors.js";

/**
 * A sealed frame says itself what it is, so that a result, which has no headers, is read like a payload:
 *
 *     magic    00 4A 4C, which begins neither JSON nor text
 *     version  1
 *     flags    bit 0: deflated (zlib); bit 1: encrypted
 *     key      its length in a byte, and its id; none unless encrypted
 *     type     its length in a byte, and the content type of what is inside
 *     body     as it is; or a nonce of 12 bytes and AES-256-GCM, with all bytes before the nonce as associated data
 */
const MAGIC = Buffer.from([0x00, 0x4a, 0x4c]);
const VERSION = 1;
const DEFLATED = 1;
const ENCRYPTED = 2;
const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Bytes of a key. */
export const KEY_BYTES = 32;
/** Bytes of the id of a key. */
export const KEY_ID_BYTES_MAX = 64;
const TYPE_BYTES_MAX = 128;
/** Smaller than that, deflating gains nothing. */
const DEFLATE_BYTES_MIN = 256;
/** The content type of a job whose payload is a sealed frame. */
export const SEALED_TYPE = "application/vnd.jobline.sealed";

/** A key and its id. */
export interface Key {
  /** 1 … 64 bytes of UTF-8; whoever reads the header `jobline-key` of a job sees it. */
  readonly id: string;
  /** 32 bytes. */
  readonly key: Uint8Array;
}

/** A frame, taken apart. */
export interface Frame {
  readonly isDeflated: boolean;
  /** "" unless it is encrypted. */
  readonly keyId: string;
  readonly contentType: string;
  /** All bytes before the body. */
  readonly head: Buffer;
  readonly body: Buffer;
}

function wrong(what: string): CodecError {
  return new CodecError(`a sealed frame ${what}`, { reason: "WRONG_FRAME" });
}

function asBuffer(data: Uint8Array): Buffer {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

/** Returns whether bytes are a sealed frame; if not, they are what was pushed without a codec. */
export function isFrame(data: Uint8Array): boolean {
  return data.length > 3 && data[0] === 0x00 && data[1] === 0x4a && data[2] === 0x4c;
}

/** Takes a frame apart. Throws CodecError, which says what is wrong with it. */
export function parseFrame(data: Uint8Array): Frame {
  const all = asBuffer(data);
  const version = all[3];
  if (version !== VERSION) throw wrong(`is of version ${version}, and this client reads ${VERSION}`);
  const flags = all[4];
  if (flags === undefined) throw wrong("ends before its flags");
  if ((flags & ~(DEFLATED | ENCRYPTED)) !== 0) throw wrong(`has unknown flags: ${flags}`);
  const [keyId, afterKey] = shortText(all, 5, "key id", KEY_ID_BYTES_MAX);
  const [contentType, afterType] = shortText(all, afterKey, "content type", TYPE_BYTES_MAX);
  if (((flags & ENCRYPTED) !== 0) !== (keyId !== "")) {
    throw wrong("is encrypted without a key id, or has one and is not");
  }
  return {
    isDeflated: (flags & DEFLATED) !== 0,
    keyId,
    contentType,
    head: all.subarray(0, afterType),
    body: all.subarray(afterType),
  };
}

function shortText(all: Buffer, at: number, what: string, bytesMax: number): [text: string, next: number] {
  const size = all[at];
  const next = at + 1 + (size ?? 0);
  if (size === undefined || all.length < next) throw wrong(`ends within its ${what}`);
  if (size > bytesMax) throw wrong(`has a ${what} of ${size} bytes, more than ${bytesMax}`);
  try {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    return [decoder.decode(all.subarray(at + 1, next)), next];
  } catch {
    throw wrong(`has a ${what} that is no UTF-8`);
  }
}

/** Returns what is in a frame; its key, if it is encrypted. Throws CodecError. */
export function openFrame(frame: Frame, key: Uint8Array | undefined, inflatedBytesMax: number): Uint8Array {
  const data = key ? decrypt(frame, key) : frame.body;
  return frame.isDeflated ? inflate(data, inflatedBytesMax) : data;
}

function decrypt({ head, body, keyId }: Frame, key: Uint8Array): Buffer {
  if (body.length < NONCE_BYTES + TAG_BYTES) throw wrong("ends within its nonce or its tag");
  const nonce = body.subarray(0, NONCE_BYTES);
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(head);
  decipher.setAuthTag(body.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(body.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
  } catch {
    throw wrong(`was changed, or the key ${JSON.stringify(keyId)} is another one than it was made with`);
  }
}

function inflate(data: Buffer, bytesMax: number): Buffer {
  let inflated: { buffer: Buffer; engine: { bytesWritten: number } };
  try {
    const options = { maxOutputLength: bytesMax, info: true };
    inflated = inflateSync(data, options) as unknown as typeof inflated;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") {
      throw wrong(`has more than ${bytesMax} bytes when it is inflated (inflatedBytesMax)`);
    }
    throw wrong("cannot be inflated, though it says that it is deflated");
  }
  if (inflated.engine.bytesWritten < data.length) throw wrong("has bytes after the end of what is deflated");
  return inflated.buffer;
}

/**
 * Returns a frame. A `scope` makes the same frame of the same bytes, key and scope: the server compares the
 * payloads of pushes that have the same key. Without one every frame is another.
 */
export function makeFrame(
  data: Uint8Array,
  contentType: string,
  { key, mayDeflate, scope }: { key: Key | undefined; mayDeflate: boolean; scope: string },
): Uint8Array {
  const [keyId, type] = [Buffer.from(key?.id ?? ""), Buffer.from(contentType)];
  if (type.length > TYPE_BYTES_MAX) {
    throw new CodecError(`contentType: has at most ${TYPE_BYTES_MAX} bytes where it is sealed`);
  }
  if (key && (keyId.length === 0 || keyId.length > KEY_ID_BYTES_MAX || key.key.length !== KEY_BYTES)) {
    throw new CodecError(`a key has an id of 1 … ${KEY_ID_BYTES_MAX} bytes, and ${KEY_BYTES} bytes itself`);
  }
  const deflated = mayDeflate && data.length >= DEFLATE_BYTES_MIN ? deflateSync(data) : undefined;
  const isSmaller = deflated !== undefined && deflated.length < data.length;
  const inside = isSmaller ? deflated : asBuffer(data);
  const flags = (isSmaller ? DEFLATED : 0) | (key ? ENCRYPTED : 0);
  const head = Buffer.concat([
    ...[MAGIC, Buffer.from([VERSION, flags, keyId.length]), keyId],
    ...[Buffer.from([type.length]), type],
  ]);
  if (!key) return Buffer.concat([head, inside]);
  const nonce = scope ? scopedNonce(key.key, scope, head, inside) : randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key.key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(head);
  return Buffer.concat([head, nonce, cipher.update(inside), cipher.final(), cipher.getAuthTag()]);
}

/** A keyed hash of all that is sealed: the same nonce comes again with the same frame alone. */
function scopedNonce(key: Uint8Array, scope: string, head: Buffer, inside: Buffer): Buffer {
  const hash = createHmac("sha256", createHmac("sha256", key).update("jobline nonce").digest());
  for (const part of [Buffer.from(scope), head, inside]) {
    const size = Buffer.alloc(8);
    size.writeBigUInt64BE(BigInt(part.length));
    hash.update(size).update(part);
  }
  return hash.digest().subarray(0, NONCE_BYTES);
}
