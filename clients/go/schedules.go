package jobline

import (
	"context"
	"time"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

// Schedule is a job that is pushed again and again, by the clock. The other settings of
// joblinev1.ScheduleSettings are reached through joblinev1.NewScheduleServiceClient(client.Conn()).
type Schedule struct {
	// Queue to push to. Required; it cannot change.
	Queue string
	// Cron has five or six fields, or @daily and the like; TimeZone is an IANA name, default UTC. Every
	// is a time between runs, 1 s … 400 days. One of the two.
	Cron, TimeZone string
	Every          time.Duration
	// Payload is bytes, or any value as JSON, ≤ 256 KiB.
	Payload any
	// Options of the jobs, without JobKey, RunAt and DependsOn; Delay counts from each run.
	Options PushOptions
	// Start and End: no run before and after these moments. Limit: how many jobs in all.
	Start, End time.Time
	Limit      int64
	// Immediately runs it at its creation, too.
	Immediately bool
	// Jitter starts each run later by a part of it, ≤ 24 h.
	Jitter time.Duration
	// SkipIfNoWorker skips runs that no connected worker handles.
	SkipIfNoWorker bool
	// Overlap says what to do while the last job is unfinished, default SKIP; Missed what to do with
	// missed runs, default SKIP.
	Overlap joblinev1.ScheduleOverlap
	Missed  joblinev1.ScheduleMissed
}

// UpsertSchedule creates a schedule, or changes one that exists, which keeps its counts.
func (c *Client) UpsertSchedule(ctx context.Context, name string, schedule Schedule) (*joblinev1.Schedule, error) {
	settings, err := schedule.message(c.codec)
	if err != nil {
		return nil, err
	}
	request := &joblinev1.CreateScheduleRequest{Schedule: name, Settings: settings, Upsert: true}
	response, err := write(ctx, c.link, c.schedules().CreateSchedule, request)
	return response.GetSchedule(), err
}

// GetSchedule returns a schedule with its counts and next run.
func (c *Client) GetSchedule(ctx context.Context, name string) (*joblinev1.Schedule, error) {
	response, err := call(ctx, c.link, c.schedules().GetSchedule, &joblinev1.GetScheduleRequest{Schedule: name})
	return response.GetSchedule(), err
}

// DeleteSchedule deletes a schedule, for a reason that operators see. The jobs that it pushed stay.
func (c *Client) DeleteSchedule(ctx context.Context, name, reason string) error {
	_, err := write(ctx, c.link, c.schedules().DeleteSchedule, &joblinev1.DeleteScheduleRequest{Schedule: name, Reason: reason})
	return err
}

// TriggerSchedule runs a schedule now, beside its times, and returns the id of its job; 0 if the run
// was skipped.
func (c *Client) TriggerSchedule(ctx context.Context, name, reason string) (uint64, error) {
	request := &joblinev1.TriggerScheduleRequest{Schedule: name, Reason: reason}
	response, err := write(ctx, c.link, c.schedules().TriggerSchedule, request)
	return response.GetJobId(), err
}

func (c *Client) schedules() joblinev1.ScheduleServiceClient {
	return joblinev1.NewScheduleServiceClient(c.link.channel)
}

func (s *Schedule) message(codec *Codec) (*joblinev1.ScheduleSettings, error) {
	out, err := outgoing(s.Queue, s.Payload, &s.Options)
	if err != nil {
		return nil, err
	}
	if out, err = codec.sealJob(out, ""); err != nil {
		return nil, err
	}
	job, err := rowOf(out.Payload, &out.Options)
	if err != nil {
		return nil, err
	}
	settings := &joblinev1.ScheduleSettings{
		Queue: s.Queue, TimeZone: s.TimeZone, Start: moment(s.Start), End: moment(s.End),
		Limit: unlessZero(s.Limit), Immediately: s.Immediately, Jitter: span(s.Jitter),
		SkipIfNoWorker: s.SkipIfNoWorker, Job: job, Overlap: s.Overlap, Missed: s.Missed,
	}
	switch {
	case s.Cron != "" && s.Every != 0:
		return nil, refuse("timing", "give Cron or Every, not both")
	case s.Every != 0:
		settings.Timing = &joblinev1.ScheduleSettings_Every{Every: span(s.Every)}
	default:
		settings.Timing = &joblinev1.ScheduleSettings_Cron{Cron: s.Cron}
	}
	return settings, nil
}
