package jobline

import (
	"errors"
	"fmt"
)

// sealJob returns a job as it is stored: sealed if there is a codec. Middleware has seen it as it was. What has a
// key, or a scope, is the same each time: the server compares the payloads of pushes with the same key.
func (c *Codec) sealJob(out *Outgoing, scope string) (*Outgoing, error) {
	if c == nil {
		return out, nil
	}
	seal, err := c.sealerFor(out.Options.Group)
	if err != nil {
		return nil, err
	}
	if out.Options.JobKey != "" {
		scope = "job_key:" + out.Queue + ":" + out.Options.JobKey
	}
	sealed := &Outgoing{Queue: out.Queue, Options: out.Options}
	if sealed.Payload, err = seal.frame(out.Payload, out.Options.ContentType, scope); err != nil {
		return nil, err
	}
	sealed.Options.ContentType = SealedType
	sealed.Options.Tags = c.tags(out.Options.Tags)
	if seal.keyID != "" {
		headers := make(map[string]string, len(out.Options.Headers)+1)
		for key, value := range out.Options.Headers {
			headers[key] = value
		}
		headers[KeyHeader] = seal.keyID
		sealed.Options.Headers = headers
	}
	return sealed, nil
}

// sealJobs seals the jobs of one call, which may be repeated under a request id.
func (c *Codec) sealJobs(outs []*Outgoing, requestID string) ([]*Outgoing, error) {
	if c == nil {
		return outs, nil
	}
	sealed := make([]*Outgoing, len(outs))
	for i, out := range outs {
		scope := ""
		if requestID != "" {
			scope = fmt.Sprintf("request:%s:%d", requestID, i)
		}
		one, err := c.sealJob(out, scope)
		if err != nil {
			return nil, err
		}
		sealed[i] = one
	}
	return sealed, nil
}

// open opens the payload of a job for its handler. A key ring is the program's own: its panics fail the attempt.
func (j *LeasedJob) open() (err error) {
	defer recovered(&err)
	if !isFrame(j.Raw) {
		return nil
	}
	plain, contentType, keyID, err := j.run.codec.open(j.Raw)
	if err != nil {
		return aboutJob(err, j.ID)
	}
	j.Raw, j.ContentType, j.keyID = plain, contentType, keyID
	return nil
}

// seal seals a result, with the key of the payload.
func (j *LeasedJob) seal(value *encoded) (err error) {
	defer recovered(&err)
	codec := j.run.codec
	if codec == nil || len(value.data) == 0 {
		return nil
	}
	var seal sealing
	if j.keyID != "" {
		seal, err = codec.sealerWith(j.keyID)
	} else {
		seal, err = codec.sealerFor(j.Group)
	}
	if err != nil {
		return aboutJob(err, j.ID)
	}
	data, err := seal.frame(value.data, value.contentType, "")
	if err == nil && len(data) > resultBytesMax {
		return newError(ErrCodec, "a sealed result is at most 1 MiB, not %d bytes", len(data))
	}
	value.data = data
	return err
}

// encode returns what a handler reports as it is sent.
func (j *LeasedJob) encode(value any) ([]byte, error) {
	data, contentType, err := encode(value)
	if err != nil {
		return nil, err
	}
	sent := encoded{data, contentType}
	err = j.seal(&sent)
	return sent.data, err
}

// decode reads what an earlier attempt has reported.
func (j *LeasedJob) decode(data []byte, into any) error {
	plain, _, err := j.run.codec.Open(data)
	if err != nil {
		return aboutJob(err, j.ID)
	}
	return decode(plain, into)
}

// aboutJob names the job in an error of this package.
func aboutJob(err error, id uint64) error {
	var e *Error
	if errors.As(err, &e) && e.ID == 0 {
		about := *e
		about.ID, about.Message = id, fmt.Sprintf("job %d: %s", id, e.Message)
		return &about
	}
	return err
}
