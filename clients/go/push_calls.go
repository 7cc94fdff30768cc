package jobline

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

const (
	// How long a push is repeated at most: the server knows a call for ten minutes.
	repeatMax = 9 * time.Minute
	// Calls of one producer from its oldest open one to its newest: half of what the server keeps. A
	// call that waits for long does not delay the others, which get another producer.
	callSpanMax = 512
)

// pushCall is the number of a push call among those of its producer. The server recognises a
// repeated one by it, and keeps the open ones alone.
type pushCall struct {
	producer [16]byte
	sequence uint64
	below    uint64
}

func (c pushCall) text() string {
	return fmt.Sprintf("call:%s:%d:%d", hex.EncodeToString(c.producer[:]), c.sequence, c.below)
}

var callText = regexp.MustCompile(`^call:([0-9a-f]{32}):([1-9][0-9]{0,17}):([0-9]{1,18})$`)

// identify makes a request repeatable: by a call, as text, or by a request id.
func identify(request *joblinev1.PushRequest, text string) {
	match := callText.FindStringSubmatch(text)
	if match == nil {
		request.RequestId = text
		return
	}
	id, _ := hex.DecodeString(match[1])
	sequence, _ := strconv.ParseUint(match[2], 10, 64)
	below, _ := strconv.ParseUint(match[3], 10, 64)
	request.Producer = &joblinev1.PushProducer{Id: id, Sequence: sequence, AnsweredBelow: below}
}

func (c pushCall) identify(request *joblinev1.PushRequest) {
	request.Producer = &joblinev1.PushProducer{Id: c.producer[:], Sequence: c.sequence, AnsweredBelow: c.below}
}

// producer numbers calls, and knows which of them are open.
type producer struct {
	id     [16]byte
	last   uint64
	oldest uint64 // every call below it is over
	over   map[uint64]struct{}
}

func newProducer() *producer {
	p := &producer{oldest: 1, over: map[uint64]struct{}{}}
	_, _ = rand.Read(p.id[:]) // never fails
	return p
}

func (p *producer) isFull() bool { return p.last+1-p.oldest >= callSpanMax-1 }

func (p *producer) end(sequence uint64) {
	p.over[sequence] = struct{}{}
	for p.oldest <= p.last {
		if _, ok := p.over[p.oldest]; !ok {
			return
		}
		delete(p.over, p.oldest)
		p.oldest++
	}
}

// pushCalls numbers the push calls of one client.
type pushCalls struct {
	mu        sync.Mutex
	current   *producer
	producers map[[16]byte]*producer
}

func newPushCalls() *pushCalls {
	first := newProducer()
	return &pushCalls{current: first, producers: map[[16]byte]*producer{first.id: first}}
}

// begin returns a new call; end must follow.
func (c *pushCalls) begin() pushCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current.isFull() {
		c.goOn()
	}
	p := c.current
	p.last++
	return pushCall{p.id, p.last, p.oldest}
}

// end ends a call that was answered, or (not known) given up without a definite answer. The latter
// may be repeated for ten minutes, so its producer makes no more calls: a later one would declare
// it over.
func (c *pushCalls) end(call pushCall, isKnown bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.producers[call.producer]
	if !ok {
		return
	}
	if isKnown {
		p.end(call.sequence)
		return
	}
	delete(c.producers, p.id)
	if c.current == p {
		c.goOn()
	}
}

func (c *pushCalls) goOn() {
	for _, p := range c.producers {
		if !p.isFull() {
			c.current = p
			return
		}
	}
	c.current = newProducer()
	c.producers[c.current.id] = c.current
}
