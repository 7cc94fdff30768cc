package jobline

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

// FlowJob is a job of a flow: it starts when its children have completed, and gets their results.
type FlowJob struct {
	// Queue of the job. Required.
	Queue string
	// Payload is bytes, or any value as JSON.
	Payload any
	// Options of the job, without JobKey, UniqueKey, Batch and DependsOn.
	Options PushOptions
	// OnFailure is what its parent does if it does not complete; default the parent's own
	// OnDependencyFailure.
	OnFailure DependencyPolicy
	// Children must complete before it starts.
	Children []FlowJob
}

// PushFlow pushes a job with its children, and theirs, and returns their ids when they are on disk,
// in the order of a walk: a job, then each of its children with theirs. All are stored, or none. A
// flow has ≤ 10,000 jobs, ≤ 100 of them in a row, and ≤ 16 MiB.
func (c *Client) PushFlow(ctx context.Context, root FlowJob) ([]uint64, error) {
	return c.pushFlow(ctx, []FlowJob{root}, nil, rand.Text())
}

func (c *Client) pushFlow(ctx context.Context, roots []FlowJob, parent *joblinev1.FlowParent, requestID string) ([]uint64, error) {
	request := &joblinev1.PushFlowRequest{RequestId: requestID, Parent: parent}
	for i := range roots {
		if _, err := c.putFlowJob(request, &roots[i]); err != nil {
			return nil, err
		}
	}
	response, err := write(ctx, c.link, joblinev1.NewFlowServiceClient(c.link.channel).PushFlow, request)
	if err != nil {
		return nil, err
	}
	return response.GetIds(), nil
}

// putFlowJob puts a job and those below it into a request, and returns its index.
func (c *Client) putFlowJob(request *joblinev1.PushFlowRequest, job *FlowJob) (uint32, error) {
	out, err := outgoing(job.Queue, job.Payload, &job.Options)
	if err != nil {
		return 0, err
	}
	// The same request again has the same bytes.
	out, err = c.codec.sealJob(out, fmt.Sprint(request.RequestId, len(request.Jobs)))
	if err != nil {
		return 0, err
	}
	row, err := rowOf(out.Payload, &out.Options)
	if err != nil {
		return 0, err
	}
	message := &joblinev1.FlowJob{Queue: job.Queue, Job: row, OnFailure: job.OnFailure}
	place := uint32(len(request.Jobs))
	request.Jobs = append(request.Jobs, message)
	for i := range job.Children {
		child, err := c.putFlowJob(request, &job.Children[i])
		if err != nil {
			return 0, err
		}
		message.Children = append(message.Children, child)
	}
	return place, nil
}

// Child is a job that another one waits for or has waited for.
type Child struct {
	ID          uint64
	Queue, Name string
	// State is where it stands; 0 if it is not kept any more.
	State JobState
	// Result is what it returned: JSON, or bytes. Results have ≤ 1 MiB together; the rest is empty,
	// and WaitOne returns it.
	Result []byte
	// ResultBytes is how large its result is, as the server has it.
	ResultBytes int64
}

// Children returns the children of a job with their results, in their order.
func (c *Client) Children(ctx context.Context, id uint64) ([]Child, error) {
	depth := int32(1)
	request := &joblinev1.GetFlowRequest{Id: id, MaxJobs: 10_000, MaxDepth: &depth, IncludeResults: true}
	response, err := call(ctx, c.link, joblinev1.NewFlowServiceClient(c.link.channel).GetFlow, request)
	if err != nil {
		return nil, err
	}
	var children []Child
	for _, node := range response.GetJobs() {
		if node.GetId() == id {
			continue
		}
		result, _, err := c.codec.Open(node.GetResult())
		if err != nil {
			return nil, aboutJob(err, node.GetId())
		}
		children = append(children, Child{node.GetId(), node.GetQueue(), node.GetName(), node.GetState(), result, node.GetResultBytes()})
	}
	return children, nil
}
