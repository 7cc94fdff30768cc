import type { Client } from "./client.js";
import { JSON_TYPE } from "./codec.js";
import { type Duration, durationMessage, timestampMessage } from "./duration.js";
import { InvalidArgument } from "./errors.js";
import { refuseNoText } from "./given.js";
import { encodePayload, type JobType, jobTypeOf } from "./job_type.js";
import { refuseOthers } from "./known_options.js";
import { type EnumName, enumNumber, type PushOptions } from "./options.js";
import { fitting, rowOf } from "./push/messages.js";
import { sealedJob } from "./sealing/payload_codec.js";
import { type Schedule, ScheduleMissed, ScheduleOverlap } from "./v1/schedule_service_pb.js";

export type { Schedule };

/** When a schedule runs: `cron` or `every`, and the options of its jobs. */
export interface ScheduleSettings {
  /** Five or six fields, or `@daily` and the like. */
  cron?: string;
  /** A time between runs, 1 s … 400 days. */
  every?: Duration;
  /** The time zone of `cron`, such as "Europe/Berlin"; default UTC. */
  timeZone?: string;
  /** No run before this moment. */
  start?: Date;
  /** No run after this moment. */
  end?: Date;
  /** How many jobs it pushes in all. */
  limit?: number;
  /** Whether it also runs at once. */
  immediately?: boolean;
  /** Each run starts later by a part of this. */
  jitter?: Duration;
  /** Whether to skip a run while no connected worker handles the job. */
  skipIfNoWorker?: boolean;
  /** What to do while the last job is unfinished; default "skip". */
  overlap?: EnumName<typeof ScheduleOverlap>;
  /** What to do with missed runs; default "skip". */
  missed?: EnumName<typeof ScheduleMissed>;
  /** Options of the jobs, over those of their declaration. */
  options?: Omit<PushOptions, "jobKey" | "runAt" | "ackLevel" | "dependsOn">;
}

const SCHEDULE_SETTINGS: Record<keyof Required<ScheduleSettings>, true> = {
  ...({ cron: true, every: true, timeZone: true, start: true, end: true, limit: true } as const),
  ...({ immediately: true, jitter: true, skipIfNoWorker: true } as const),
  ...({ overlap: true, missed: true, options: true } as const),
};

/** Creates or changes a schedule by its name. Throws InvalidArgument and ScheduleExists. */
export async function schedule<P>(
  client: Client,
  name: string,
  job: JobType<P, unknown> | string,
  payload: NoInfer<P>,
  settings: ScheduleSettings,
): Promise<Schedule> {
  refuseNoText("name", name);
  refuseOthers(settings, SCHEDULE_SETTINGS);
  const type = jobTypeOf(job);
  const { schedule: made } = await client.admin.schedules.createSchedule(
    fitting(() => ({ schedule: name, settings: settingsOf(client, type, payload, settings), upsert: true })),
  );
  if (!made) throw new InvalidArgument("the server answered without a schedule");
  return made;
}

function settingsOf<P>(
  { codec }: Client,
  job: JobType<P, unknown>,
  payload: NoInfer<P>,
  settings: ScheduleSettings,
) {
  const { cron, every, timeZone, start, end, limit, immediately, skipIfNoWorker } = settings;
  if ((cron === undefined) === (every === undefined)) {
    throw new InvalidArgument("a schedule has cron or every, and not both", {
      fields: { cron: "is not alone" },
    });
  }
  const { data, isJson } = encodePayload(job, payload);
  const options = { ...(isJson && { contentType: JSON_TYPE }), ...job.options, ...settings.options };
  const sealed = sealedJob(codec, { queue: job.queue, payload: data, options });
  return {
    queue: job.queue,
    timing: timingOf(cron, every),
    ...(timeZone !== undefined && { timeZone }),
    ...(start && { start: timestampMessage(start, "start") }),
    ...(end && { end: timestampMessage(end, "end") }),
    ...(limit !== undefined && { limit: BigInt(limit) }),
    ...(immediately !== undefined && { immediately }),
    ...(settings.jitter !== undefined && { jitter: durationMessage(settings.jitter, "jitter") }),
    ...(skipIfNoWorker !== undefined && { skipIfNoWorker }),
    ...(settings.overlap && { overlap: enumNumber(ScheduleOverlap, settings.overlap, "overlap") }),
    ...(settings.missed && { missed: enumNumber(ScheduleMissed, settings.missed, "missed") }),
    job: rowOf(sealed.payload, sealed.options, false),
  };
}

function timingOf(cron: string | undefined, every: Duration | undefined) {
  return cron === undefined
    ? { case: "every" as const, value: durationMessage(every ?? 0, "every") }
    : { case: "cron" as const, value: cron };
}
