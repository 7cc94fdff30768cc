/** The tidy test: sizes, and a doc comment on everything that a module exports. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const PACKAGE = fileURLToPath(new URL("../../", import.meta.url));
const LINES_MAX = 300;
const EXPORT =
  /^export (abstract class|class|const|function|async function|interface|type [A-Z]\w* ?[=<]|declare)/;

function modules(folder: string): string[] {
  return readdirSync(join(PACKAGE, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && !path.endsWith("_pb.ts"))
    .map((path) => join(folder, path));
}

function linesOf(path: string): string[] {
  return readFileSync(join(PACKAGE, path), "utf8").trimEnd().split("\n");
}

test("files stay within 300 lines", () => {
  const paths = ["src", "test", "bench"].flatMap(modules);
  assert.ok(paths.length > 40);
  assert.deepEqual(
    paths.filter((path) => linesOf(path).length > LINES_MAX),
    [],
  );
});

test("every exported name has a doc comment", () => {
  const bare = modules("src").flatMap((path) => {
    const lines = linesOf(path);
    return lines
      .filter((line, index) => EXPORT.test(line) && !lines[index - 1]?.trimEnd().endsWith("*/"))
      .map((line) => `${path}: ${line}`);
  });
  assert.deepEqual(bare, []);
});
