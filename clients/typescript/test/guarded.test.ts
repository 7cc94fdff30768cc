/** Clients and workers with tokens, and by TLS, at servers that ask for both. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Client, type ClientOptions, defineJob, type JoblineError, PermissionDenied } from "@jobline/client";
import { Guard, keyOf } from "./guarded.js";
import { clientOf, ServerProcess, signal, TestLogger, until, workerOf } from "./server.js";

const guard = new Guard();
const tls = { ca: guard.path("ca.pem") };
const mail = defineJob<number, number>({ queue: "mail" });
after(() => guard[Symbol.dispose]());

/** Returns what a push to a server ends with, in words. */
async function saidOf(server: ServerProcess, options: ClientOptions): Promise<string> {
  await using client = clientOf(server, { timeout: "2s", ...options });
  const error = await client.push(mail, 1).then(
    () => undefined,
    (caught: JoblineError) => caught,
  );
  return error ? `${error.name}: ${error.message.replace(server.address, "ADDRESS")}` : "pushed";
}

test("a token by TLS: by options, and by the environment; each error is one clear line", async () => {
  const keys = guard.auth(
    { name: "all" },
    { name: "old", expires: new Date("2020-01-01") },
    { name: "reader", verbs: ["read"] },
  );
  await using server = await ServerProcess.start(...guard.tls(), keys);
  const token = keyOf("all");
  assert.equal(await saidOf(server, { tls, token }), "pushed");
  process.env.JOBLINE_TOKEN = token;
  process.env.JOBLINE_TLS_CA = tls.ca;
  try {
    const worker = workerOf(server).handle(mail, (n) => n + 1);
    await worker.start();
    await using client = clientOf(server);
    assert.equal(await client.pushAndWait(mail, 1), 2);
    await worker.stop();
  } finally {
    delete process.env.JOBLINE_TOKEN;
    delete process.env.JOBLINE_TLS_CA;
  }
  const other = { ca: guard.path("other.pem") };
  const untrusted =
    "NotConnected: cannot connect to ADDRESS: the TLS handshake failed: its certificate is not trusted; does `tls` have its `ca`?";
  assert.equal(await saidOf(server, { token, tls: other }), untrusted);
  assert.equal(await saidOf(server, { token, tls: true }), untrusted);
  assert.match(await saidOf(server, { tls }), /^Unauthenticated: this server asks who calls/);
  assert.equal(await saidOf(server, { tls, token: keyOf("old") }), "Unauthenticated: the token has expired");
  assert.match(await saidOf(server, { tls, token: keyOf("x") }), /^Unauthenticated: no key of the server/);
  assert.match(await saidOf(server, { tls, token: keyOf("reader") }), /^PermissionDenied: .* verb push/);
  assert.match(
    await saidOf(server, { token }),
    /^NotConnected: .* closed; is it .*, and does it want TLS\?$/,
  );
});

test("certificates of servers and of clients, and what is said of them", async () => {
  const certificate = (name: string) => ({
    tls: { ...tls, certificate: guard.path(`${name}.pem`), key: guard.path(`${name}.key`) },
  });
  for (const [name, said] of [
    ["expired", "its certificate has expired"],
    ["elsewhere", "its certificate is for another name"],
  ] as const) {
    await using server = await ServerProcess.start(...guard.tls(name));
    assert.ok((await saidOf(server, { tls })).endsWith(`the TLS handshake failed: ${said}`));
  }
  await using plain = await ServerProcess.start();
  assert.ok((await saidOf(plain, { tls })).endsWith("the TLS handshake failed; does the server speak TLS?"));
  await using server = await ServerProcess.start(...guard.tls("server", true));
  assert.equal(await saidOf(server, certificate("client")), "pushed");
  const refused = /handshake; does the server ask clients for a certificate, and trust the one of `tls`\?$/;
  assert.match(await saidOf(server, { tls }), refused);
  assert.match(await saidOf(server, certificate("late")), refused);

  // Read again when the files change: by a client, and by a worker.
  guard.replace("mine", "stranger");
  await using client = clientOf(server, { timeout: "500ms", ...certificate("mine") });
  await assert.rejects(client.push(mail, 1), refused);
  const logger = new TestLogger();
  const worker = workerOf(server, { logger, ...certificate("mine") }).handle(mail, (n) => n);
  const started = worker.start();
  await until("it has tried", () => logger.has("no stream yet"));
  assert.match(String(logger.lines[0]), refused);
  guard.replace("mine", "client");
  await started;
  await until("the client connects", () =>
    client.push(mail, 2).then(
      () => true,
      () => false,
    ),
  );
  await worker.stop();
});

test("a function is asked in each call, and again when its token has ended", async () => {
  const keys = guard.auth({ name: "all" }, { name: "old", expires: new Date("2020-01-01") });
  await using server = await ServerProcess.start(keys);
  const tokens = ["all", "old", "all", "old", "old"];
  await using client = clientOf(server, { token: async () => keyOf(tokens.shift() ?? "all") });
  await client.push(mail, 1);
  await client.push(mail, 2); // with the old one, then with the other
  assert.equal(tokens.length, 2);
  await assert.rejects(client.admin.queues.getQueue({ queue: "mail" }), { message: "the token has expired" });
  assert.deepEqual(tokens, []);
  await client.admin.queues.getQueue({ queue: "mail" });
});

test("a worker asks for another token when its own has ended, and goes on with its session", async () => {
  await using server = await ServerProcess.start(guard.auth({ name: "first" }));
  let name = "first";
  const token = async () => keyOf(name);
  const [begun, mayEnd] = [signal(), signal()];
  const logger = new TestLogger();
  await using worker = workerOf(server, { token, logger }).handle(mail, async (n) => {
    begun.resolve();
    await mayEnd.promise;
    return n + 1;
  });
  await worker.start();
  await using client = clientOf(server, { token });
  const { id } = await client.push(mail, 1);
  await begun.promise;
  name = "second";
  guard.auth({ name: "second", caller: "first", ended: "first" });
  await until("it is connected again", () => logger.has("connected again"));
  mayEnd.resolve();
  assert.equal(await client.result(mail, id), 2);
  const lines = logger.lines.join("\n");
  assert.match(lines, /the stream to .* broke, trying again in .*: the token has expired\n/);
  assert.match(lines, /its leases are kept/);
  await worker.stop();
});

test("a worker whose token is refused for good ends, and says why", async () => {
  const soon = new Date("2020-01-01");
  await using server = await ServerProcess.start(
    guard.auth({ name: "all" }, { name: "old", expires: soon }, { name: "reader", verbs: ["read"] }),
  );
  const refused = async (token: string | (() => string), name: string, said: RegExp) => {
    const logger = new TestLogger();
    const worker = workerOf(server, { token, logger }).handle(mail, (n) => n);
    await assert.rejects(worker.run(), { name, message: said });
    assert.match(String(logger.lines.find((line) => line.startsWith("the worker stops: "))), said);
  };
  await refused(keyOf("old"), "Unauthenticated", /the token has expired/);
  await refused(() => keyOf("old"), "Unauthenticated", /the token has expired/); // and so do the next ones
  await refused(keyOf("reader"), "PermissionDenied", /verb work/);
  const logger = new TestLogger();
  const worker = workerOf(server, { token: keyOf("all"), logger }).handle(mail, (n) => n);
  await worker.start();
  guard.auth({ name: "reader" }); // the key of the open stream is gone
  await assert.rejects(worker.run(), { name: "Unauthenticated", message: /no key of the server/ });
});

test("a function that throws is asked again, by a worker without end and not in silence", async () => {
  await using server = await ServerProcess.start(guard.auth({ name: "all" }));
  let isUp = false;
  const token = () => {
    if (!isUp) throw new TypeError("no jl_secret");
    return keyOf("all");
  };
  await using client = clientOf(server, { token });
  await assert.rejects(client.push(mail, 1), {
    name: "NoToken",
    message: "the function `token` threw TypeError: the call was not sent",
  });
  const logger = new TestLogger();
  const worker = workerOf(server, { token, logger }).handle(mail, (n) => n + 1);
  const started = worker.start();
  await until("it has tried", () => logger.lines.length >= 3);
  for (const line of logger.lines) assert.match(line, /^no stream yet, trying again in .* threw TypeError/);
  isUp = true;
  await started;
  assert.equal(await client.pushAndWait(mail, 1), 2);
  await worker.stop();
  isUp = false;
  const never = workerOf(server, { token: () => new Promise<string>(() => undefined) }).handle(
    mail,
    (n) => n,
  );
  const begun = never.start();
  await never.stop(); // also while a function is asked
  await assert.rejects(begun, { name: "ClientClosed" });
});

test("a caller without the right of one queue has it of another", async () => {
  await using server = await ServerProcess.start(guard.auth({ name: "one", queues: ["mail"] }));
  await using client = new Client({ target: server.address, token: keyOf("one") });
  await client.push(mail, 1);
  await assert.rejects(client.push("other", 1), PermissionDenied);
});

test("no proxy is asked for a server on this host", async () => {
  await using server = await ServerProcess.start();
  process.env.http_proxy = "http://127.0.0.1:1";
  try {
    assert.equal(await saidOf(server, {}), "pushed");
    const worker = workerOf(server).handle("q", () => undefined);
    await worker.start();
    await worker.stop();
  } finally {
    delete process.env.http_proxy;
  }
});

test("a worker goes to the server that the environment names when it is made", async () => {
  await using one = await ServerProcess.start();
  await using other = await ServerProcess.start();
  for (const server of [one, other]) {
    process.env.JOBLINE_SERVER = server.address;
    await using client = clientOf(server);
    const worker = workerOf(server, { target: undefined as never }).handle(mail, (n) => n + 1);
    await worker.start(); // one thread holds the streams of both
    assert.equal(await client.pushAndWait(mail, 1, { timeout: "5s" }), 2);
    await worker.stop();
  }
  delete process.env.JOBLINE_SERVER;
});
