import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { ServerProcess } from "./server.js";

const PACKAGE = fileURLToPath(new URL("../../", import.meta.url));
const FOLDER = join(PACKAGE, "dist/readme");
const OUT = join(PACKAGE, "dist/readme-run");
const TSC = join(PACKAGE, "node_modules/.bin/tsc");

const COMMAND = join(PACKAGE, "../../.venv/bin/jobline");

/** The blocks of TypeScript in a document. */
function blocksOf(path: string): RegExpMatchArray[] {
  return [...readFileSync(join(PACKAGE, path), "utf8").matchAll(/^```ts\n([\s\S]*?)^```/gm)];
}

const blocks = blocksOf("README.md");

let server: ServerProcess;

before(async () => {
  server = await ServerProcess.start();
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  blocks.forEach(([, code = ""], index) => {
    writeFileSync(join(FOLDER, `block${index}.ts`), code);
  });
  const testing = blocksOf("../../docs/testing.md").map(([, code = ""]) => code);
  writeFileSync(join(FOLDER, "testing.ts"), testing.join("\n"));
  const settings = {
    extends: "../../tsconfig.json",
    include: ["."],
    compilerOptions: { rootDir: ".", outDir: OUT },
  };
  writeFileSync(join(FOLDER, "tsconfig.json"), JSON.stringify(settings));
  await run(TSC, "-p", FOLDER);
});

after(() => server[Symbol.asyncDispose]());

async function run(command: string, ...args: string[]): Promise<string> {
  const env: NodeJS.ProcessEnv = { JOBLINE_COMMAND: COMMAND, ...process.env, JOBLINE_SERVER: server.address };
  delete env.NODE_TEST_CONTEXT; // what runs below is no part of this run
  const child = spawn(command, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (text: Buffer) => {
      output += text.toString();
    });
  }
  const [code] = await once(child, "exit");
  assert.equal(code, 0, output);
  return output;
}

test("the README has examples", () => assert.equal(blocks.length, 8));

for (const [index, [, code = ""]] of blocks.entries()) {
  test(`block ${index + 1} of the README runs: ${code.split("\n")[0]}`, async () => {
    const output = await run(process.execPath, join(OUT, `block${index}.js`));
    assert.match(output, /\S/, "it prints something");
  });
}

test("the tests that docs/testing.md shows pass", async () => {
  const output = await run(process.execPath, "--test-reporter=tap", join(OUT, "testing.js"));
  assert.match(output, /^# pass 2$/m);
});
