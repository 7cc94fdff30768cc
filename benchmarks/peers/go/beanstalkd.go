package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// beanstalkPeer speaks to beanstalkd's socket: its protocol is lines, and a connection may send many
// commands before it reads the first answer.
type beanstalkPeer struct {
	target
	connection *beanstalkConnection
}

// Commands that a worker sends at once.
const beanstalkWindow = 100

type beanstalkConnection struct {
	net.Conn
	in  *bufio.Reader
	put []byte // one command
}

func newBeanstalkd(_ context.Context, to target) (peer, error) {
	connection, err := dialBeanstalkd(to)
	return &beanstalkPeer{to, connection}, err
}

func dialBeanstalkd(to target) (*beanstalkConnection, error) {
	socket, err := net.Dial("tcp", to.address)
	if err != nil {
		return nil, err
	}
	put := fmt.Sprintf("put 1 0 60 %d\r\n%s\r\n", len(payload), payload)
	connection := &beanstalkConnection{socket, bufio.NewReaderSize(socket, 1<<16), []byte(put)}
	if _, err := connection.ask("use "+to.queue, "USING "); err != nil {
		return nil, err
	}
	if _, err := connection.ask("watch "+to.queue, "WATCHING "); err != nil {
		return nil, err
	}
	return connection, nil
}

// answer reads a line and returns what comes after its beginning.
func (c *beanstalkConnection) answer(beginning string) (string, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	rest, ok := strings.CutPrefix(line, beginning)
	if !ok {
		return "", fmt.Errorf("beanstalkd answered %q, not %q", line, beginning)
	}
	return strings.TrimSpace(rest), nil
}

func (c *beanstalkConnection) ask(command, beginning string) (string, error) {
	if _, err := c.Write([]byte(command + "\r\n")); err != nil {
		return "", err
	}
	return c.answer(beginning)
}

func (p *beanstalkPeer) caller(context.Context) (caller, error) { return dialBeanstalkd(p.target) }

func (c *beanstalkConnection) push(ctx context.Context) error { return c.bulk(ctx, 1) }

func (c *beanstalkConnection) bulk(_ context.Context, jobs int) error {
	if _, err := c.Write([]byte(strings.Repeat(string(c.put), jobs))); err != nil {
		return err
	}
	for range jobs {
		if _, err := c.answer("INSERTED "); err != nil {
			return err
		}
	}
	return nil
}

// waiting adds up the jobs of the tube that are ready and those that a worker holds.
func (p *beanstalkPeer) waiting(context.Context) (int64, error) {
	size, err := p.connection.ask("stats-tube "+p.queue, "OK ")
	if err != nil {
		return 0, err
	}
	bytes, err := strconv.Atoi(size)
	if err != nil {
		return 0, err
	}
	body := make([]byte, bytes+len("\r\n"))
	if _, err := io.ReadFull(p.connection.in, body); err != nil {
		return 0, err
	}
	var left int64
	for line := range strings.Lines(string(body)) {
		name, value, _ := strings.Cut(line, ": ")
		if name == "current-jobs-ready" || name == "current-jobs-reserved" {
			count, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			if err != nil {
				return 0, err
			}
			left += count
		}
	}
	return left, nil
}

// drain has one worker, which reserves some jobs at a time and deletes them together.
func (p *beanstalkPeer) drain(_ context.Context, jobs int64) error {
	for jobs > 0 {
		window := int(min(jobs, beanstalkWindow))
		if err := p.work(window); err != nil {
			return err
		}
		jobs -= int64(window)
	}
	return nil
}

func (p *beanstalkPeer) work(window int) error {
	c := p.connection
	if _, err := c.Write([]byte(strings.Repeat("reserve\r\n", window))); err != nil {
		return err
	}
	var deletes strings.Builder
	for range window {
		reserved, err := c.answer("RESERVED ")
		if err != nil {
			return err
		}
		id, _, _ := strings.Cut(reserved, " ")
		if _, err := c.in.Discard(len(payload) + len("\r\n")); err != nil {
			return err
		}
		deletes.WriteString("delete " + id + "\r\n")
	}
	if _, err := c.Write([]byte(deletes.String())); err != nil {
		return err
	}
	for range window {
		if _, err := c.answer("DELETED"); err != nil {
			return err
		}
	}
	return nil
}
