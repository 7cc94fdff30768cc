import type { JobType } from "../job_type.js";
import { jsonSchemaText, textOf } from "../json_schema.js";
import type { Logger } from "./logger.js";

/** Returns what a worker announces of a handler; a schema that cannot be told is left out, and logged. */
export function handlerDescription(job: JobType<unknown, unknown>, logger: Logger) {
  const { queue, name, codec, jsonSchema } = job;
  const text = (what: "payload" | "result", schema: unknown): string => {
    try {
      if (jsonSchema[what]) return textOf(jsonSchema[what]);
      // Bytes are no JSON, whatever checks them.
      return codec === "json" ? jsonSchemaText(schema) : "";
    } catch (error) {
      const of = name ? `${queue}/${name}` : queue;
      logger.warn(`no JSON Schema of the ${what} of ${of} is announced: ${(error as Error).message}`);
      return "";
    }
  };
  return {
    queue,
    name,
    payloadSchema: text("payload", job.schema),
    resultSchema: text("result", job.resultSchema),
  };
}
