import type { Client } from "../client.js";
import type { PayloadCodec } from "../sealing/payload_codec.js";
import type { HealthWriter } from "../thread/shared_health.js";
import type { Around } from "./middleware.js";
import type { SettlerSettings } from "./settler.js";

/** What a runner needs of its worker. */
export interface RunnerSettings extends SettlerSettings, Around {
  readonly concurrency: number;
  /** Milliseconds that a handler has to stop when it was asked to. */
  readonly cancelGrace: number;
  readonly state: unknown;
  readonly codec: PayloadCodec | undefined;
  /** What the health port is told, if there is one. */
  readonly health: HealthWriter | undefined;
  /** The client for what handlers push and read. */
  client(): Client;
  /** Called when a handler has ended. */
  ended(): void;
}
