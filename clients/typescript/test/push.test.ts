import assert from "node:assert/strict";
import { test } from "node:test";
import {
  BufferFull,
  CodecError,
  defineJob,
  IdempotencyMismatch,
  InvalidArgument,
  JobDead,
  type JoblineError,
  JobNotFound,
  NewJob,
  NotConnected,
  QueueFull,
  TooLarge,
  UniqueKeyHeld,
  WaitTimeout,
} from "@jobline/client";
import { z } from "zod";
import { clientOf, serverAndClient, storedJob, workerOf } from "./server.js";

const { server, client } = await serverAndClient();

const welcome = defineJob<{ to: string }, { sent: string }>({ queue: "emails", name: "welcome" });

test("a push is stored with its options, and its id is a bigint", async () => {
  const pushed = await client.push(
    welcome,
    { to: "a" },
    { priority: 7, tags: ["x"], lease: "45s", delay: "1h" },
  );
  assert.equal(typeof pushed.id, "bigint");
  assert.equal(pushed.outcome, "created");
  assert.equal(pushed.ackLevel, "fsynced");
  const job = await storedJob(client, pushed.id);
  assert.equal(Buffer.from(job.payload ?? []).toString(), '{"to":"a"}');
  assert.equal(job.options?.name, "welcome");
  assert.equal(job.options?.contentType, "application/json");
  assert.equal(job.options?.priority, 7);
  assert.equal(job.options?.lease?.seconds, 45n);
  assert.deepEqual(job.options?.tags, ["x"]);
});

test("concurrent pushes share calls, keep their order, and each gets its own id", async () => {
  const payloads = Array.from({ length: 2_500 }, (_, index) => ({ to: String(index) }));
  const pushed = await Promise.all(
    payloads.map((payload) => client.push(welcome, payload, { group: "many" })),
  );
  const ids = pushed.map(({ id }) => id);
  assert.equal(new Set(ids).size, 2_500);
  assert.deepEqual(
    ids,
    [...ids].sort((a, b) => (a < b ? -1 : 1)),
  );
});

test("keys, headers and groups of pushes that share a call stay their own", async () => {
  const pushes = Array.from({ length: 20 }, (_, index) =>
    client.push("own", index, {
      ...(index % 2 ? { jobKey: `k${index}` } : {}),
      headers: { trace: `t${index}` },
      group: `g${index}`,
    }),
  );
  const pushed = await Promise.all(pushes);
  for (const [index, { id }] of pushed.entries()) {
    const job = await storedJob(client, id);
    assert.equal(job.jobKey, index % 2 ? `k${index}` : "");
    assert.equal(job.options?.headers.trace, `t${index}`);
    assert.equal(job.options?.group, `g${index}`);
  }
});

test("a known key returns the first id; with another payload it alone is refused", async () => {
  const first = await client.push("keys", 1, { jobKey: "a" });
  const results = await Promise.allSettled([
    client.push("keys", 1, { jobKey: "a" }),
    client.push("keys", 2, { jobKey: "a" }),
    client.push("keys", 3, { jobKey: "b" }),
  ]);
  const [again, other, third] = results;
  assert.ok(
    again?.status === "fulfilled" && again.value.id === first.id && again.value.outcome === "duplicate",
  );
  assert.ok(other?.status === "rejected" && other.reason instanceof IdempotencyMismatch);
  assert.equal(other.reason.reason, "IDEMPOTENCY_MISMATCH");
  assert.ok(third?.status === "fulfilled" && third.value.outcome === "created");
});

test("a held unique key is kept, or refused if asked for", async () => {
  const first = await client.push("unique", 1, { uniqueKey: "u", delay: "1h" });
  const second = await client.push("unique", 2, { uniqueKey: "u", delay: "1h" });
  assert.equal(second.id, first.id);
  await assert.rejects(client.push("unique", 3, { uniqueKey: "u", uniqueMode: "reject" }), UniqueKeyHeld);
});

test("a push that is refused alone is refused for the key that it is", async () => {
  const first = await client.push("both", 1, { jobKey: "j", uniqueKey: "u" });
  await client.push("both", 1, { dependsOn: [first.id] });
  const results = await Promise.allSettled([
    client.push("both", 2, { jobKey: "j", uniqueKey: "free", uniqueMode: "reject" }),
    client.push("both", 2, { jobKey: "new", uniqueKey: "u", uniqueMode: "reject" }),
    client.push("both", 2, { jobKey: "other", uniqueKey: "u", uniqueMode: "replace" }),
    client.push("both", 2, { uniqueKey: "u", uniqueMode: "replace" }),
  ]);
  const reasons = results.map((one) => one.status === "rejected" && (one.reason as JoblineError).reason);
  assert.deepEqual(reasons, ["IDEMPOTENCY_MISMATCH", "UNIQUE_KEY_HELD", "JOB_AWAITED", "JOB_AWAITED"]);
  const jobs = [new NewJob(2, { jobKey: "j" }), 3];
  const [refused, stored] = await client.pushMany("both", jobs, { atomic: false });
  assert.deepEqual([refused?.outcome, refused?.reason], ["refused", "IDEMPOTENCY_MISMATCH"]);
  assert.deepEqual([stored?.outcome, stored?.reason], ["created", undefined]);
});

test("wrong values are refused before they are sent, with the field", async () => {
  await assert.rejects(client.push("q", 1, { lease: "soon" }), (error: InvalidArgument) => {
    assert.ok(error instanceof InvalidArgument && !error.retryable && error.definite);
    return error.field === "options.lease";
  });
  const misspelt = { maxAttemps: 3 } as object;
  await assert.rejects(client.push("q", 1, misspelt), /maxAttemps: there is no such option/);
  await assert.rejects(client.push("q", 1n), CodecError);
  await assert.rejects(client.push("q", 1, { delay: "1s", runAt: new Date() }), InvalidArgument);
  await assert.rejects(client.push("q", 1, { jobKey: "" }), InvalidArgument);
  await assert.rejects(client.push("q", 1, { uniqueMode: "keep" }), /needs a uniqueKey/);
  assert.throws(() => clientOf(server, { target: "localhost" }), /HOST:PORT/);
});

test("the server's refusal names reason and field, and those that share its call are stored", async () => {
  const wrong = client.push("spare", 1, { group: "g".repeat(300) });
  const right = client.push("spare", 2, { group: "g" });
  await assert.rejects(wrong, (error: InvalidArgument) => {
    assert.ok(error instanceof InvalidArgument);
    return error.reason === "INVALID_FIELD" && error.field !== undefined;
  });
  assert.equal((await right).outcome, "created");
});

test("pushMany stores payloads and jobs of their own in order, all or none", async () => {
  const plain = await client.pushMany(welcome, [{ to: "1" }, { to: "2" }]);
  assert.equal(plain[1]?.id, (plain[0]?.id ?? 0n) + 1n);
  const own = await client.pushMany("many", [1, new NewJob(2, { priority: 5, jobKey: "k" })]);
  const job = await storedJob(client, own[1]?.id ?? 0n);
  assert.equal(job.options?.priority, 5);
  await assert.rejects(client.pushMany("many", [3, new NewJob(4, { jobKey: "k" })]), IdempotencyMismatch);
  assert.deepEqual(await client.pushMany("many", []), []);
  const once = await client.pushMany("many", [5], { requestId: "r1" });
  assert.deepEqual(await client.pushMany("many", [5], { requestId: "r1" }), once);
});

test("a full queue is refused with reason, and is worth another try", async () => {
  const { queues } = client.admin;
  await client.push("small", 1, { delay: "1h" });
  await queues.updateQueue({
    queue: "small",
    settings: { maxWaiting: 1n },
    updateMask: { paths: ["max_waiting"] },
  });
  await assert.rejects(client.push("small", 2), (error: QueueFull) => {
    assert.ok(error instanceof QueueFull && error.retryable && error.definite);
    return error.reason === "QUEUE_FULL";
  });
});

test("what is larger than a message may be is TooLarge, which no second try changes", async () => {
  for (const bytes of [18 << 20, 65 << 20]) {
    await assert.rejects(client.pushMany("large", [Buffer.alloc(bytes)]), (error: TooLarge) => {
      return error instanceof TooLarge && !error.retryable && error.definite;
    });
  }
});

test("the newest caller is refused when the buffer is full, and the others are answered", async () => {
  await using small = clientOf(server, { bufferJobs: 3 });
  const results = await Promise.allSettled([1, 2, 3, 4].map((payload) => small.push("buffer", payload)));
  assert.deepEqual(
    results.map(({ status }) => status),
    ["fulfilled", "fulfilled", "fulfilled", "rejected"],
  );
  assert.ok(results[3]?.status === "rejected" && results[3].reason instanceof BufferFull);
});

test("an abort before a push is sent withdraws it", async () => {
  const controller = new AbortController();
  const { signal } = controller;
  const warnings: Error[] = [];
  const warned = (warning: Error) => warnings.push(warning);
  process.on("warning", warned);
  const pushes = Array.from({ length: 100 }, (_, n) => client.push("withdrawn", n, { signal }));
  controller.abort(new Error("no more"));
  for (const push of pushes) await assert.rejects(push, /no more/);
  await new Promise(setImmediate);
  process.off("warning", warned);
  assert.deepEqual(warnings, [], "a signal of many pushes is no leak");
  const { jobs } = await client.admin.jobs.listJobs({ filter: { queue: "withdrawn" } });
  assert.deepEqual(jobs, []);
});

test("no server: NotConnected, which is definite", async () => {
  await using nowhere = clientOf(server, { target: "127.0.0.1:1", timeout: "300ms" });
  await assert.rejects(nowhere.push("q", 1), (error: NotConnected) => {
    assert.ok(error instanceof NotConnected);
    return error.definite && error.retryable;
  });
});

test("pushAndWait returns the typed result, checked by its schema", async () => {
  const add = defineJob({
    queue: "sums",
    schema: z.object({ a: z.number(), b: z.number() }),
    resultSchema: z.number(),
  });
  await using worker = workerOf(server).handle(add, ({ a, b }) => a + b);
  await worker.start();
  const sum: number = await client.pushAndWait(add, { a: 1, b: 2 });
  assert.equal(sum, 3);
  await assert.rejects(client.push(add, { a: 1, b: "2" } as never), z.ZodError);
});

test("waiting: a timeout carries the id, a death its error, an unknown job is not found", async () => {
  await assert.rejects(
    client.pushAndWait("nobody", 1, { timeout: "50ms" }),
    (error: WaitTimeout) => error instanceof WaitTimeout && typeof error.id === "bigint" && error.id > 0n,
  );
  const dies = defineJob({ queue: "dies", maxAttempts: 1 });
  await using worker = workerOf(server).handle(dies, () => {
    throw new TypeError("no good");
  });
  await worker.start();
  await assert.rejects(client.pushAndWait(dies, 1), (error: JobDead) => {
    assert.ok(error instanceof JobDead && error.message.includes("TypeError: no good"));
    return error.reason === "MAX_ATTEMPTS_EXCEEDED" && error.facts.metadata?.type === "TypeError";
  });
  await assert.rejects(client.result("dies", 987_654_321n), JobNotFound);
});

test("entities, batches, flows and schedules are pushed", async () => {
  const pushed = await client.entity("account", "42").push("deposit", 5);
  const job = await storedJob(client, pushed.id);
  assert.deepEqual([job.queue, job.options?.name, job.options?.group], ["account", "deposit", "42"]);
  const batch = await client.batch({ name: "b", onComplete: { job: welcome, payload: { to: "boss" } } });
  await batch.push(welcome, { to: "a" });
  await batch.pushMany("others", [1, 2]);
  assert.equal((await batch.close())?.total, 3n);
  const { FlowJob } = await import("@jobline/client");
  const child = FlowJob.of(welcome, { to: "first" });
  const flow = await client.flow(FlowJob.of(welcome, { to: "then" }, { children: [child] }));
  assert.equal((await storedJob(client, flow.id)).dependsOnLeft, 1);
  assert.ok((flow.ids.get(child) ?? 0n) > 0n);
  const made = await client.schedule("nightly", welcome, { to: "x" }, { cron: "0 3 * * *" });
  assert.equal(made.settings?.queue, "emails");
});
