import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import {
  CodecError,
  defineJob,
  FlowJob,
  IdempotencyMismatch,
  InvalidArgument,
  JobDead,
  KeyErased,
  KeyMap,
  NewJob,
  PayloadCodec,
  type PushMiddleware,
  Retry,
  WaitFor,
} from "@jobline/client";
import { clientOf, ServerProcess, storedJob, until, workerOf } from "./server.js";

const VECTORS = fileURLToPath(new URL("../../../../tests/conformance/codec.json", import.meta.url));
const vectors = JSON.parse(readFileSync(VECTORS, "utf8")) as {
  keys: Record<string, string>;
  tag_key: string;
  read: { name: string; frame: string; plain: string; type: string; key: string }[];
  unframed: { name: string; bytes: string }[];
  refuse: { name: string; frame: string; error: "invalid" | "key_erased" }[];
  tags: { name: string; value: string; hashed: string }[];
};
const hex = (text: string) => Buffer.from(text, "hex");
const textOf = (data: Uint8Array | undefined) => Buffer.from(data ?? []).toString("hex");
const SECRET = { card: "4111-1111", note: "n".repeat(500) };

let server: ServerProcess;
before(async () => {
  server = await ServerProcess.start();
});
after(() => server[Symbol.asyncDispose]());

function ring(...ids: string[]): KeyMap {
  const keys = Object.fromEntries(ids.map((id, index) => [id, Buffer.alloc(32, index + 1)]));
  return new KeyMap(keys, (group) => group || "all");
}

test("the vectors: frames are read or refused, tags are hashed, as by every client", () => {
  const keys = Object.fromEntries(Object.entries(vectors.keys).map(([id, key]) => [id, hex(key)]));
  const codec = new PayloadCodec({ keys: new KeyMap(keys, () => "tenant-7"), tagKey: hex(vectors.tag_key) });
  assert.ok(vectors.read.length >= 8 && vectors.refuse.length >= 17 && vectors.tags.length >= 4);
  for (const { name, frame, plain, type, key } of vectors.read) {
    const { data, contentType, keyId } = codec.open(hex(frame));
    assert.deepEqual([textOf(data), contentType, keyId], [plain, type, key], name);
  }
  for (const { name, bytes } of vectors.unframed)
    assert.equal(textOf(codec.open(hex(bytes)).data), bytes, name);
  for (const { name, frame, error } of vectors.refuse) {
    assert.throws(
      () => codec.open(hex(frame)),
      (caught) =>
        caught instanceof CodecError &&
        !caught.retryable &&
        caught instanceof KeyErased === (error === "key_erased"),
      name,
    );
  }
  for (const { name, value, hashed } of vectors.tags) assert.equal(codec.tag(name, value), hashed);
});

test("what is sealed is opened; a small limit stops inflating; settings that do not fit are refused", () => {
  const plain = Buffer.from(JSON.stringify(SECRET));
  const codec = new PayloadCodec({ keys: ring("all") });
  const frame = codec.seal(plain, "application/json");
  assert.ok(frame.length < plain.length && !Buffer.from(frame).includes("4111"));
  assert.notDeepEqual(frame, codec.seal(plain, "application/json"), "each frame has a nonce of its own");
  assert.deepEqual([...codec.open(frame).data], [...plain]);
  assert.equal(new PayloadCodec().seal(Buffer.alloc(255)).length, 7 + 255, "too small to be deflated");
  assert.ok(new PayloadCodec().seal(Buffer.alloc(256)).length < 50);
  assert.equal(new PayloadCodec({ deflate: false }).seal(Buffer.alloc(256)).length, 7 + 256);

  const bomb = new PayloadCodec().seal(Buffer.alloc(100_001));
  assert.throws(() => new PayloadCodec({ inflatedBytesMax: 100_000 }).open(bomb), /more than 100000 bytes/);
  assert.equal(new PayloadCodec({ inflatedBytesMax: 100_001 }).open(bomb).data.length, 100_001);
  assert.throws(() => new PayloadCodec({ hashedTags: ["email"] }), InvalidArgument);
  assert.throws(() => new PayloadCodec({ tagKey: Buffer.alloc(5) }), InvalidArgument);
  assert.ok(!/0?1 0?1|buffer/i.test(inspect({ codec }, { depth: 9 })), "keys are in no log");
  const half = Buffer.alloc(16); // of a ring of one's own, which no constructor has looked at
  const short = new PayloadCodec({ keys: { current: () => ({ id: "all", key: half }), find: () => half } });
  assert.throws(() => short.seal(plain), CodecError);
});

test("payloads, results, checkpoints and phases are sealed at the server, and open for clients and handlers", async () => {
  const seen: string[] = [];
  const middleware: PushMiddleware[] = [
    async (jobs, next) => {
      seen.push(...jobs.map(({ payload }) => Buffer.from(payload).toString()));
      return next(jobs);
    },
  ];
  const codec = new PayloadCodec({
    keys: ring("all", "tenant"),
    hashedTags: ["email"],
    tagKey: Buffer.alloc(32, 9),
  });
  await using client = clientOf(server, { codec, middleware });
  const kind = defineJob<typeof SECRET, typeof SECRET>({
    queue: "sealed",
    group: "tenant",
    phases: ["one", "two"],
  });
  await using worker = workerOf(server, { codec }).handle(kind, (payload, context) => {
    if (context.attempt === 1) {
      context.saveCheckpoint(payload);
      context.finishPhase("one", payload);
      context.partial(payload);
      throw new Retry(0);
    }
    assert.deepEqual(context.checkpoint(), SECRET);
    assert.deepEqual(context.phaseResult("one"), SECRET);
    assert.equal(context.phaseResult("two"), undefined);
    return payload;
  });
  await worker.start();
  const push = { jobKey: "k", tags: ["email:a@b.c", "plain"] };
  const { id } = await client.push(kind, SECRET, push);
  assert.equal((await client.push(kind, SECRET, push)).outcome, "duplicate", "a key knows its payload again");
  await assert.rejects(client.push(kind, { ...SECRET, card: "" }, push), IdempotencyMismatch);
  assert.deepEqual(await client.result(kind, id), SECRET);
  assert.deepEqual(seen[0], JSON.stringify(SECRET));

  const job = await storedJob(client, id);
  for (const sealed of [job.payload, job.result, job.checkpoint, job.phases[0]?.result]) {
    assert.equal(textOf(sealed).slice(0, 6), "004a4c");
    assert.equal(codec.open(sealed ?? Buffer.alloc(0)).keyId, "tenant");
  }
  assert.equal(job.options?.contentType, "application/vnd.jobline.sealed");
  assert.deepEqual(job.options?.headers, { "jobline-key": "tenant" });
  const tag = codec.tag("email", "a@b.c");
  assert.deepEqual([...(job.options?.tags ?? [])].sort(), [tag, "plain"].sort());
  const found = await client.admin.jobs.listJobs({ filter: { tags: [tag] } });
  assert.deepEqual(
    found.jobs.map((one) => one.id),
    [id],
  );
});

test("many jobs, flows, children, batches and schedules are sealed, too; what was pushed before is read", async () => {
  const codec = new PayloadCodec({ keys: ring("all", "g") });
  await using plain = clientOf(server);
  await using client = clientOf(server, { codec });
  const part = defineJob<number, number>({ queue: "parts" });
  const whole = defineJob<number[], number>({ queue: "wholes" });
  await plain.push(part, 0);
  const [one, two] = await client.pushMany(part, [1, new NewJob(2, { group: "g" })], { requestId: "r" });
  await client.pushMany(part, [1, new NewJob(2, { group: "g" })], { requestId: "r" });
  const flow = await client.flow(FlowJob.of(part, 3, { children: [FlowJob.of(part, 4)] }));
  const batch = await client.batch({ onComplete: { job: part, payload: 5 } });
  await batch.push(part, 6);
  await batch.close();
  await client.schedule("sealed", part, 7, { every: "1h", immediately: true });
  const numbers: number[] = [];
  await using worker = workerOf(server, { codec })
    .handle(part, (n) => {
      numbers.push(n);
      return n * 10;
    })
    .handle(whole, async (parts, context) => {
      if (context.reason !== "children_ended") throw new WaitFor(...parts.map((n) => FlowJob.of(part, n)));
      const children = await context.children();
      return children.reduce((sum, { result }) => sum + Number(Buffer.from(result)), 0);
    });
  await worker.start();
  assert.equal(await client.result(part, one?.id ?? 0n), 10);
  assert.equal(await client.result(part, two?.id ?? 0n), 20);
  assert.equal(await client.result(part, flow.id), 30);
  assert.equal(await client.pushAndWait(whole, [8, 9]), 170);
  await until("all have run", () => numbers.length === 10);
  assert.deepEqual(
    numbers.sort((a, b) => a - b),
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
  );
  const { jobs } = await plain.admin.jobs.listJobs({ filter: { queue: "parts" }, includePayloads: true });
  assert.deepEqual(
    jobs.filter(({ payload }) => payload[0] !== 0).map(({ payload }) => Buffer.from(payload).toString()),
    ["0"],
  );
  await assert.rejects(plain.result(part, one?.id ?? 0n), /there is no codec to read it/);
});

test("an erased key: its jobs are dead by KeyErased, their results unreadable, and nothing is sealed with it", async () => {
  const keys = ring("all", "gone");
  const codec = new PayloadCodec({ keys });
  await using client = clientOf(server, { codec });
  const kind = defineJob<string, string>({ queue: "erased" });
  const held: (() => void)[] = [];
  await using worker = workerOf(server, { codec }).handle(kind, async (what) => {
    if (what === "held") await new Promise<void>((resolve) => held.push(resolve));
    return what;
  });
  await worker.start();
  const done = await client.push(kind, "done", { group: "gone" });
  assert.equal(await client.result(kind, done.id), "done");
  const during = await client.push(kind, "held", { group: "gone" });
  const waiting = await client.push(kind, "waits", { group: "gone" });
  await until("one is at work", () => held.length === 1);
  keys.drop("gone");
  held[0]?.();
  for (const { id } of [during, waiting]) {
    await assert.rejects(client.result(kind, id), JobDead);
    assert.deepEqual((await storedJob(client, id)).error?.type, "KeyErased");
    assert.equal((await storedJob(client, id)).error?.message.includes("held"), false);
  }
  await assert.rejects(client.result(kind, done.id), KeyErased);
  assert.equal((await client.wait(done.id)).state, "completed", "how it ended can be told");
  await assert.rejects(client.push(kind, "x", { group: "gone" }), KeyErased);
  assert.equal(await client.pushAndWait(kind, "others go on"), "others go on");
});
