import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { defineJob, InvalidArgument, PayloadCodec, PayloadMisfit } from "@jobline/client";
import { z } from "zod";
import { clientOf, serverAndClient, TestLogger, until, workerOf } from "./server.js";

const COMMAND = join(fileURLToPath(new URL("../../../../", import.meta.url)), ".venv/bin/jobline");

const { server, client } = await serverAndClient();

const mail = z.object({
  to: z.string(),
  copies: z.array(z.string()).optional(),
  size: z.number().default(1),
});

test("workers announce the schemas of their handlers, and types are generated from them", async () => {
  const large = { type: "string", enum: Array.from({ length: 10_000 }, (_, index) => `value-${index}`) };
  const logger = new TestLogger();
  await using worker = workerOf(server, { logger })
    .handle(
      defineJob({ queue: "mail", name: "send", schema: mail, resultSchema: z.string() }),
      ({ to }) => to,
    )
    .handle(defineJob({ queue: "mail", name: "dated", schema: z.object({ at: z.date() }) }), () => 1)
    .handle(
      defineJob({
        queue: "mail",
        name: "plain",
        jsonSchema: { payload: { type: "integer" }, result: { type: "null" } },
      }),
      () => null,
    )
    .handle(defineJob({ queue: "mail", name: "large", jsonSchema: { payload: large } }), () => 1)
    .handle(defineJob<number>({ queue: "mail", name: "parsed", schema: { parse: Number } }), () => 1)
    .handle(defineJob<Uint8Array>({ queue: "mail", name: "bytes", codec: "bytes" }), () => new Uint8Array());
  await worker.start();
  const { handlers } = await client.admin.server.listHandlers({});
  const announced = new Map(
    handlers.map(({ name, variants }) => {
      const texts = [variants[0]?.payloadSchema, variants[0]?.resultSchema];
      return [name, texts.map((text) => (text ? JSON.parse(text) : undefined))];
    }),
  );
  const [payload, result] = announced.get("send") ?? [];
  assert.deepEqual(Object.keys(payload.properties), ["to", "copies", "size"]);
  assert.deepEqual(payload.required, ["to"], "what is pushed, before defaults");
  assert.equal(result.type, "string");
  assert.deepEqual(announced.get("dated")?.[0].properties, { at: {} }, "what has no JSON Schema is open");
  assert.deepEqual(announced.get("plain"), [{ type: "integer" }, { type: "null" }]);
  for (const name of ["large", "parsed", "bytes"])
    assert.deepEqual(announced.get(name), [undefined, undefined]);
  assert.ok(logger.has("no JSON Schema of the payload of mail/large is announced"));
  const made = execFileSync(COMMAND, ["generate", "--lang", "ts", "--server", server.address], {
    encoding: "utf8",
  });
  assert.match(made, /export interface MailSendPayload \{/);
  assert.match(made, /"copies"\?: Array<string>;/);
  assert.match(made, /mailPlain: \{ payload: number; result: null \};/);
});

test("a queue that checks payloads refuses what does not fit, and what is sealed", async () => {
  const kind = defineJob<unknown, number>({ queue: "checked", jsonSchema: { payload: { type: "integer" } } });
  await client.push(kind, 0);
  await client.admin.queues.updateQueue({
    queue: "checked",
    settings: { checkPayloads: true },
    updateMask: { paths: ["check_payloads"] },
  });
  await using worker = workerOf(server).handle(kind, () => 1);
  await worker.start();
  await until("it works", () => worker.stats.done === 1);
  assert.equal(await client.pushAndWait(kind, 3), 1);
  await assert.rejects(client.push(kind, "text"), PayloadMisfit);
  await using sealed = clientOf(server, { codec: new PayloadCodec() });
  await assert.rejects(sealed.push(kind, 3), PayloadMisfit);
  assert.throws(() => defineJob({ queue: "q", jsonSchemas: {} } as never), InvalidArgument);
});
