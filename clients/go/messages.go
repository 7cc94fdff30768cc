package jobline

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

// MessageOf returns a job as the protocol has it: for an outbox, which stores it and pushes it later with
// [Client.PushMessages]. Payload and options are those of Push; options may be nil. What a server would refuse whatever
// it holds is refused here, as ErrInvalidArgument or ErrTooLarge.
func MessageOf(queue string, payload any, options *PushOptions) (*joblinev1.NewJob, error) {
	out, err := outgoing(queue, payload, options)
	if err != nil {
		return nil, err
	}
	if err := refuseAlone(&out.Options); err != nil {
		return nil, err
	}
	if err := refuseNoText(out); err != nil {
		return nil, err
	}
	job, err := rowOf(out.Payload, &out.Options)
	if err != nil {
		return nil, err
	}
	if err := checkJob(queue, job); err != nil {
		return nil, err
	}
	return job, nil
}

// PushMessages pushes jobs as the protocol has them, ≤ 1,000 and ≤ 16 MiB, in one call, each on its own:
// Pushed.Err says why one was refused alone. They pass through the client's codec, and not through its
// middleware. It repeats a call without a definite answer, as Push does.
func (c *Client) PushMessages(ctx context.Context, queue string, jobs []*joblinev1.NewJob) ([]Pushed, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	request := &joblinev1.PushRequest{Queue: queue, Atomic: new(bool)}
	for _, job := range jobs {
		sealed, err := c.codec.sealMessage(queue, job)
		if err != nil {
			return nil, err
		}
		request.Jobs = append(request.Jobs, sealed)
	}
	response, err := c.pushCall(ctx, request, "")
	if err != nil {
		return nil, err
	}
	return outcomesOf(response, queue, len(jobs), func(i int) (string, string) {
		return jobs[i].GetJobKey(), jobs[i].GetOptions().GetUniqueKey()
	})
}

// HasCodec reports whether the client seals what it pushes. The same job is other bytes then once the key has changed: a
// push of it under the same JobKey is refused with ErrIdempotencyMismatch, though the job is stored.
func (c *Client) HasCodec() bool { return c.codec != nil }

// sealMessage returns a job sealed, as sealJob does.
func (c *Codec) sealMessage(queue string, job *joblinev1.NewJob) (*joblinev1.NewJob, error) {
	if c == nil {
		return job, nil
	}
	payload := job.GetData()
	if text, isText := job.GetPayload().(*joblinev1.NewJob_Text); isText {
		payload = []byte(text.Text)
	}
	o := job.GetOptions()
	out, err := c.sealJob(&Outgoing{Queue: queue, Payload: payload, Options: PushOptions{
		JobKey: job.GetJobKey(), Group: o.GetGroup(), ContentType: o.GetContentType(), Tags: o.GetTags(), Headers: o.GetHeaders(),
	}}, "")
	if err != nil {
		return nil, err
	}
	sealed := proto.CloneOf(job)
	if sealed.Options == nil {
		sealed.Options = &joblinev1.JobOptions{}
	}
	sealed.Payload = &joblinev1.NewJob_Data{Data: out.Payload}
	sealed.Options.ContentType, sealed.Options.Tags, sealed.Options.Headers = out.Options.ContentType, out.Options.Tags, out.Options.Headers
	return sealed, nil
}
