/** What is said where no server answers: the address and what to check, alike for pushes, reads and workers. */
import assert from "node:assert/strict";
import { createServer as createHttp } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { test } from "node:test";
import { Client, NotConnected, type Unavailable, Worker } from "@jobline/client";
import { sentenceOf } from "../src/unreachable.js";
import { clientOf, ServerProcess, TestLogger, until } from "./server.js";

const REFUSED =
  "cannot connect to 127.0.0.1:1: connection refused; is the server running, and is this its address?";

/** Returns the message of the NotConnected that a push to an address ends with. */
async function saidOf(target: string, tls?: true): Promise<string> {
  await using client = new Client({ target, timeout: "200ms", ...(tls && { tls }) });
  const error: unknown = await client.push("q", 1).catch((caught: unknown) => caught);
  assert.ok(error instanceof NotConnected && error.definite && error.retryable, String(error));
  return error.message;
}

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("a push, a read and the log of a worker say the same of a server that is not there", async () => {
  assert.equal(await saidOf("127.0.0.1:1"), REFUSED);
  await using client = new Client({ target: "127.0.0.1:1", timeout: "200ms" });
  await assert.rejects(client.admin.queues.listQueues({}), { name: "NotConnected", message: REFUSED });
  await assert.rejects(client.wait(1n, { timeout: 0 }), { name: "NotConnected", message: REFUSED });
  const logger = new TestLogger();
  const worker = new Worker({ target: "127.0.0.1:1", logger }).handle("q", () => undefined);
  const started = worker.start().catch(() => undefined);
  await until("it has tried", () => logger.lines.length > 0);
  await worker.stop();
  await started;
  assert.match(String(logger.lines[0]), /^no stream yet, trying again in 0\.\d s: cannot connect to /);
  assert.ok(logger.lines[0]?.endsWith(REFUSED), logger.lines[0]);
});

test("what else may be there is told apart", async () => {
  const held: Socket[] = [];
  const silent = createServer((socket) => held.push(socket));
  const web = createHttp((_, response) => response.end());
  const [mute, http] = [await listening(silent), await listening(web)];
  assert.equal(
    await saidOf(mute),
    `cannot connect to ${mute}: no answer; does it hang, or is this not its address?`,
  );
  assert.equal(await saidOf(http), `cannot connect to ${http}: it does not speak gRPC; is it the HTTP port?`);
  assert.equal(
    await saidOf(http, true),
    `cannot connect to ${http}: the TLS handshake failed; does the server speak TLS?`,
  );
  assert.match(
    await saidOf("unix:/nowhere.sock"),
    /^cannot connect to unix:\/nowhere\.sock: there is no such socket/,
  );
  assert.match(
    await saidOf("no-such-host.invalid:7070"),
    /^cannot connect to no-such-host\.invalid:7070: no such host/,
  );
  for (const socket of held) socket.destroy();
  silent.close();
  web.close();
  web.closeAllConnections();
});

test("a server that is gone, or hangs, keeps its status in words with the address", async () => {
  await using server = await ServerProcess.start();
  await using client = clientOf(server, { timeout: "300ms" });
  await client.push("q", 1);
  server.signal("SIGSTOP");
  await assert.rejects(client.admin.server.getStats({}), (error: Unavailable) => {
    assert.equal(error.facts.code, "DEADLINE_EXCEEDED");
    return error.message.startsWith(`no answer from ${server.address} within 0.`);
  });
  await server.kill();
  await assert.rejects(client.push("q", 2), (error: Unavailable) => {
    assert.equal(error.facts.code, "UNAVAILABLE");
    return /^the outcome is not known: (the connection to|cannot connect to) 127/.test(error.message);
  });
});

test("what a server says of itself is not touched", () => {
  for (const text of ["queue q is full", "the server is draining", "no such queue: Deadline"]) {
    assert.equal(sentenceOf(text, "host:1"), text);
  }
  const odd = "No connection established. Last error: Error: oh\nno. Resolution note: ";
  assert.equal(sentenceOf(odd, "host:1"), "cannot connect to host:1: oh no");
  const late = "Deadline exceeded after 0.299s,LB pick: 0.001s";
  assert.equal(sentenceOf(late, "host:1"), "no answer from host:1 within 0.3 s; does it hang?");
  assert.equal(sentenceOf("Connection dropped", "host:1"), "the connection to host:1 was lost");
});

test("a server that refuses a certificate says so by TLS, closes, or resets the connection", () => {
  for (const last of [
    "Failed to connect",
    "Error: read ECONNRESET",
    "Error: 00E8:error:0A00045C:SSL routines:ssl3_read_bytes:tlsv13 alert certificate required",
    "Error: 00E8:error:0A000418:SSL routines:ssl3_read_bytes:tlsv1 alert unknown ca",
  ]) {
    const details = `No connection established. Last error: ${last}. Resolution note: `;
    assert.match(sentenceOf(details, "host:1", true), /does the server ask clients for a certificate/);
    assert.doesNotMatch(sentenceOf(details, "host:1"), /does the server ask clients/);
  }
});
