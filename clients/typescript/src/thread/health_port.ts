import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { InvalidArgument } from "../errors.js";
import { BUCKETS, HealthReader, type HealthSettings } from "./shared_health.js";
import { OUTCOMES, type SharedSession } from "./shared_session.js";
import type { Stream } from "./stream.js";

/** Milliseconds without a stream after which a worker is unhealthy. */
const DOWN_MAX = 10_000;
/** Milliseconds for which the event loop of the handlers may stand still. */
const BLOCKED_MAX = 5_000;
/** Probes and scrapers are few; whoever opens more connections waits. */
const CONNECTIONS_MAX = 32;
/** Milliseconds that a caller may take to say what it asks, and to read the answer. */
const REQUEST_MAX = 5_000;

/** The port of a worker that probes and Prometheus ask: `/healthz` and `/metrics`. */
export class HealthPort {
  private readonly server: Server;
  private readonly reader: HealthReader;
  /** Whether the stream has ended for good. */
  isStopped = false;

  /** Makes a port; `listen` opens it. */
  constructor(
    private readonly settings: HealthSettings,
    private readonly session: SharedSession,
    private readonly stream: Stream,
    requestMax = REQUEST_MAX,
  ) {
    this.reader = new HealthReader(settings);
    const limits = {
      requestTimeout: requestMax,
      headersTimeout: requestMax,
      keepAliveTimeout: requestMax,
      // How often Node looks for those that take longer; its default is 30 s.
      connectionsCheckingInterval: requestMax / 5,
    };
    this.server = createServer(limits, (request, response) => this.answer(request, response));
    this.server.maxConnections = CONNECTIONS_MAX;
    // For those that do not read their answers.
    this.server.timeout = requestMax;
  }

  /** Opens the port and returns its number. Throws InvalidArgument if that is not possible. */
  async listen(): Promise<number> {
    const { host, port } = this.settings;
    try {
      await once(this.server.listen(port, host), "listening");
    } catch (error) {
      throw new InvalidArgument(`healthPort: ${host}:${port} cannot be opened: ${(error as Error).message}`, {
        fields: { healthPort: "cannot be opened" },
      });
    }
    return (this.server.address() as AddressInfo).port;
  }

  /** Closes the port. */
  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  private answer({ method, url = "" }: IncomingMessage, response: ServerResponse): void {
    const [path] = url.split("?");
    const pages: Record<string, () => void> = {
      "/healthz": () => this.answerHealth(response),
      "/metrics": () => {
        const type = "text/plain; version=0.0.4; charset=utf-8";
        const text = this.metrics();
        response.writeHead(200, { "content-type": type }).end(text);
      },
    };
    const page = pages[path ?? ""];
    if (!page) response.writeHead(404).end("there are /healthz and /metrics\n");
    else if (method !== "GET") response.writeHead(405, { allow: "GET" }).end();
    else {
      // An error here would end the thread, and with it the streams of all workers.
      try {
        page();
      } catch (error) {
        if (!response.headersSent) response.writeHead(500).end(`${error}\n`);
      }
    }
  }

  private answerHealth(response: ServerResponse): void {
    const reasons = this.reasons();
    const isDraining = this.session.isDraining && !this.isStopped;
    const isWell = isDraining || reasons.length === 0;
    const status = isDraining ? "draining" : isWell ? "ok" : "unhealthy";
    const body = JSON.stringify(isWell ? { status } : { status, reasons });
    response.writeHead(isWell ? 200 : 503, { "content-type": "application/json" }).end(body);
  }

  private reasons(): string[] {
    if (this.isStopped) return ["STOPPED"];
    const reasons: string[] = [];
    if (this.stream.downFor > DOWN_MAX) reasons.push("STREAM_DOWN");
    if (this.reader.blockedFor > BLOCKED_MAX) reasons.push("LOOP_BLOCKED");
    return reasons;
  }

  private metrics(): string {
    const { reader, session, stream } = this;
    const settled = OUTCOMES.map((outcome): [string, number] => [
      `{outcome="${outcome}"}`,
      session.settled[outcome],
    ]);
    return [
      family("up", "gauge", "Whether the stream to the server is alive.", [
        ["", stream.downFor === 0 ? 1 : 0],
      ]),
      family("running_jobs", "gauge", "Jobs whose handlers run.", [["", reader.running]]),
      family("slots", "gauge", "Handlers that may run at once.", [["", this.settings.slots]]),
      family("settled_jobs_total", "counter", "Jobs by the outcome of their handlers.", settled),
      this.handlerSeconds(),
      family("reconnects_total", "counter", "Streams that were opened after a break.", [
        ["", stream.reconnects],
      ]),
      family("abandoned_handlers_total", "counter", "Handlers that ignored their end.", [
        ["", reader.abandoned],
      ]),
    ].join("");
  }

  private handlerSeconds(): string {
    const name = "handler_seconds";
    const samples = this.reader.histograms.flatMap(({ name: label, counts, sum }): [string, number][] => {
      const quoted = `name="${label.replace(/[\\"\n]/g, (one) => (one === "\n" ? "\\n" : `\\${one}`))}"`;
      const total = counts.at(-1) ?? 0;
      return [
        ...counts.map((count, bucket): [string, number] => [
          `_bucket{${quoted},le="${BUCKETS[bucket] ?? "+Inf"}"}`,
          count,
        ]),
        [`_sum{${quoted}}`, sum],
        [`_count{${quoted}}`, total],
      ];
    });
    return family(name, "histogram", "How long calls of handlers took.", samples);
  }
}

function family(name: string, type: string, help: string, samples: readonly [string, number][]): string {
  const full = `jobline_worker_${name}`;
  const lines = samples.map(([suffix, value]) => `${full}${suffix} ${value}\n`).join("");
  return `# HELP ${full} ${help}\n# TYPE ${full} ${type}\n${lines}`;
}
