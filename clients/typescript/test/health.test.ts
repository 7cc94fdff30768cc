import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { Dead, defineJob, InvalidArgument, Retry, Snooze } from "@jobline/client";
import { HealthPort } from "../src/thread/health_port.js";
import { cellsFor, HealthWriter, labelsOf, sharedNow } from "../src/thread/shared_health.js";
import { OUTCOMES, type SharedSession } from "../src/thread/shared_session.js";
import type { Stream } from "../src/thread/stream.js";
import { serverAndClient, until, workerOf } from "./server.js";

const { server, client } = await serverAndClient();

async function get(port: number | undefined, path: string, method = "GET"): Promise<[number, string]> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { method });
  return [response.status, await response.text()];
}

test("a worker answers probes, and counts jobs by outcome and the time of handlers by name", async () => {
  const kind = defineJob<string>({ queue: "counted", name: 'a "name"', maxAttempts: 2 });
  const worker = workerOf(server, { healthPort: 0, concurrency: 3 }).handle(kind, (what, { attempt }) => {
    if (what === "snooze" && attempt === 1 && worker.stats.released === 0) throw new Snooze("10ms");
    if (what === "retry" && attempt === 1) throw new Retry("10ms");
    if (what === "error" && attempt === 1) throw new Error("once");
    if (what === "dead") throw new Dead("no");
  });
  assert.equal(worker.healthPort, undefined);
  await worker.start();
  const { healthPort } = worker;
  const pushed = await client.pushMany(kind, ["ok", "snooze", "retry", "error", "dead"], {
    backoff: { delays: ["10ms"] },
  });
  for await (const _ of client.waitAll(pushed.map(({ id }) => id)));
  assert.deepEqual(await get(healthPort, "/healthz"), [200, '{"status":"ok"}']);
  await until("all are counted", async () =>
    (await get(healthPort, "/metrics"))[1].includes('"completed"} 4'),
  );
  const [status, metrics] = await get(healthPort, "/metrics");
  assert.equal(status, 200);
  for (const line of [
    "jobline_worker_up 1",
    "jobline_worker_running_jobs 0",
    "jobline_worker_slots 3",
    'jobline_worker_settled_jobs_total{outcome="completed"} 4',
    'jobline_worker_settled_jobs_total{outcome="failed"} 1',
    'jobline_worker_settled_jobs_total{outcome="retried"} 1',
    'jobline_worker_settled_jobs_total{outcome="snoozed"} 1',
    'jobline_worker_settled_jobs_total{outcome="dead"} 1',
    'jobline_worker_settled_jobs_total{outcome="rate_limited"} 0',
    'jobline_worker_handler_seconds_bucket{name="a \\"name\\"",le="300"} 8',
    'jobline_worker_handler_seconds_bucket{name="a \\"name\\"",le="+Inf"} 8',
    'jobline_worker_handler_seconds_count{name="a \\"name\\""} 8',
    "jobline_worker_reconnects_total 0",
    "# TYPE jobline_worker_handler_seconds histogram",
  ]) {
    assert.ok(metrics.split("\n").includes(line), `${line} is not in\n${metrics}`);
  }
  assert.equal((await get(healthPort, "/"))[0], 404);
  assert.equal((await get(healthPort, "/healthz", "POST"))[0], 405);
  await worker.stop();
  await until("the port is closed", () =>
    get(healthPort, "/healthz").then(
      () => false,
      () => true,
    ),
  );
});

test("the port answers while a handler blocks the event loop", async () => {
  const kind = defineJob<number, string>({ queue: "blocking" });
  let healthPort: number | undefined;
  await using worker = workerOf(server, { healthPort: 0 }).handle(kind, async () => {
    const program = `fetch("http://127.0.0.1:${healthPort}/healthz").then((r) => r.text()).then(console.log)`;
    const child = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"] });
    const before = Date.now();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500);
    assert.ok(Date.now() - before >= 1_400);
    return text(child.stdout);
  });
  await worker.start();
  healthPort = worker.healthPort;
  assert.equal(await client.pushAndWait(kind, 1), '{"status":"ok"}\n');
});

test("a port that is taken ends the start", async () => {
  await using first = workerOf(server, { healthPort: 0 }).handle("taken", () => undefined);
  await first.start();
  const { healthPort = 0 } = first;
  const second = workerOf(server, { healthPort }).handle("taken", () => undefined);
  await assert.rejects(second.start(), (error: InvalidArgument) => {
    return error instanceof InvalidArgument && error.field === "healthPort";
  });
  assert.throws(() => workerOf(server, { healthPort: 70_000 }), InvalidArgument);
});

test("what makes a worker unhealthy, and what does not", async () => {
  const names = labelsOf(Array.from({ length: 150 }, (_, n) => `n${n}`));
  assert.deepEqual([names.length, names.at(-1)], [101, "other"]);
  const settings = { host: "127.0.0.1", port: 0, slots: 1, names, cells: cellsFor(names.length) };
  const beat = new Float64Array(settings.cells);
  const writer = new HealthWriter(settings);
  writer.ended("n120", 400_000, 0);
  writer.close();
  const session = { isDraining: false, settled: Object.fromEntries(OUTCOMES.map((name) => [name, 0])) };
  const stream = { downFor: 0, reconnects: 0 };
  const port = new HealthPort(settings, session as unknown as SharedSession, stream as unknown as Stream);
  const number = await port.listen();
  const health = async () => {
    const [status, body] = await get(number, "/healthz");
    return [status, JSON.parse(body)];
  };
  stream.downFor = 9_000;
  assert.deepEqual(await health(), [200, { status: "ok" }]);
  stream.downFor = 10_001;
  beat[0] = sharedNow() - 5_500;
  assert.deepEqual(await health(), [503, { status: "unhealthy", reasons: ["STREAM_DOWN", "LOOP_BLOCKED"] }]);
  session.isDraining = true;
  assert.deepEqual(await health(), [200, { status: "draining" }]);
  port.isStopped = true;
  assert.deepEqual(await health(), [503, { status: "unhealthy", reasons: ["STOPPED"] }]);
  const [, metrics] = await get(number, "/metrics");
  assert.match(metrics, /_bucket\{name="other",le="300"\} 0\n.*_bucket\{name="other",le="\+Inf"\} 1\n/);
  assert.match(metrics, /jobline_worker_up 0/);
  port.close();
});

test("a caller of the health port that says a byte now and then loses its place", async () => {
  const settings = { host: "127.0.0.1", port: 0, slots: 1, names: [], cells: cellsFor(0) };
  const port = new HealthPort(settings, {} as SharedSession, { downFor: 0 } as Stream, 500);
  const slow = connect({ port: await port.listen(), host: "127.0.0.1" }).on("error", () => undefined);
  slow.resume().write("GET /");
  const timer = setInterval(() => slow.write("x"), 50);
  try {
    await once(slow, "close", { signal: AbortSignal.timeout(10_000) });
  } finally {
    clearInterval(timer);
    port.close();
  }
});

test("an answer that cannot be made is an error of the caller's request alone", async () => {
  const settings = { host: "127.0.0.1", port: 0, slots: 1, names: [], cells: cellsFor(0) };
  const port = new HealthPort(settings, {} as SharedSession, { downFor: 0 } as Stream);
  const number = await port.listen();
  assert.equal((await get(number, "/metrics"))[0], 500);
  assert.equal((await get(number, "/other"))[0], 404);
  port.close();
});
