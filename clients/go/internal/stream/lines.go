package stream

import (
	"strings"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

// Limits of the server, for one job and for one frame.
const (
	linesMax           = 1_000
	linesBytesMax      = 1 << 20
	lineBytesMax       = 16 << 10
	frameLinesMax      = 5_000
	frameLineBytesMax  = 2 << 20
	piecesBytesMax     = 1 << 20
	pieceExtraBytes    = 100
	framePieceBytesMax = 1 << 20
	framePiecesMax     = 1_000
)

// Line is one line of a job's log.
type Line struct {
	AtMillis int64
	Level    joblinev1.LogLevel
	Text     string
}

// lines are log lines that were not sent, by lease. Nothing confirms them. Of a job that writes
// faster than lines can be sent, the oldest are dropped, as the server would drop them.
type lines struct{ waiting queueOf[*linesOfLease] }

type linesOfLease struct {
	lines []Line
	size  int
}

func (l *lines) add(of lease, line Line) {
	line.Text = strings.ToValidUTF8(line.Text[:min(len(line.Text), lineBytesMax)], "")
	waiting := l.waiting.get(of)
	if waiting == nil {
		waiting = &linesOfLease{}
		l.waiting.put(of, waiting)
	}
	waiting.lines = append(waiting.lines, line)
	waiting.size += len(line.Text)
	for waiting.size > linesBytesMax || len(waiting.lines) > linesMax {
		waiting.size -= len(waiting.lines[0].Text)
		waiting.lines = waiting.lines[1:]
	}
}

// take removes and returns as many lines as one frame may carry.
func (l *lines) take() []*joblinev1.StreamLog {
	var logs []*joblinev1.StreamLog
	count, size := 0, 0
	for size < frameLineBytesMax {
		of, waiting, ok := l.waiting.first()
		if !ok || count+len(waiting.lines) > frameLinesMax {
			break
		}
		l.waiting.remove(of)
		count += len(waiting.lines)
		size += waiting.size
		log := &joblinev1.StreamLog{Id: of.id, Delivery: of.delivery}
		for _, line := range waiting.lines {
			log.Lines = append(log.Lines, line.Text)
			log.Levels = append(log.Levels, line.Level)
			log.AtMs = append(log.AtMs, line.AtMillis)
		}
		logs = append(logs, log)
	}
	return logs
}

// pieces are pieces of results that were not sent. They go out in order, before the outcome of their
// job; of a job that makes them faster than they can be sent, the oldest are dropped.
type pieces struct{ waiting queueOf[*piecesOfLease] }

type piecesOfLease struct {
	pieces [][]byte
	size   int
}

func (p *pieces) isEmpty() bool { return p.waiting.isEmpty() }

func (p *pieces) forget(of lease) { p.waiting.remove(of) }

func (p *pieces) add(of lease, data []byte) {
	waiting := p.waiting.get(of)
	if waiting == nil {
		waiting = &piecesOfLease{}
		p.waiting.put(of, waiting)
	}
	waiting.pieces = append(waiting.pieces, data)
	waiting.size += len(data) + pieceExtraBytes
	for waiting.size > piecesBytesMax {
		waiting.pop()
	}
}

func (p *piecesOfLease) pop() []byte {
	data := p.pieces[0]
	p.pieces = p.pieces[1:]
	p.size -= len(data) + pieceExtraBytes
	return data
}

// take removes and returns as many pieces as one frame may carry.
func (p *pieces) take() []*joblinev1.ExtendItem {
	var items []*joblinev1.ExtendItem
	for size := 0; size < framePieceBytesMax && len(items) < framePiecesMax; {
		of, waiting, ok := p.waiting.first()
		if !ok {
			break
		}
		data := waiting.pop()
		if len(waiting.pieces) == 0 {
			p.waiting.remove(of)
		}
		size += len(data)
		items = append(items, &joblinev1.ExtendItem{Id: of.id, Delivery: of.delivery, Partial: data})
	}
	return items
}
