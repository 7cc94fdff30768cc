package jobline

import (
	"runtime"
	"strings"
)

const (
	// Of a dump of all goroutines, while which nothing else runs.
	dumpBytesMax = 4 << 20
	// Of the stacks in one line of the log.
	stacksBytesMax = 64 << 10
)

// thisGoroutine returns what the dump of this goroutine begins with.
func thisGoroutine() string {
	buffer := make([]byte, 64)
	name, _, _ := strings.Cut(string(buffer[:runtime.Stack(buffer, false)]), "[")
	return name
}

// stackDump is the stacks of all goroutines at one moment, from the first question on: a dump stops the program, so
// there is one however many handlers are asked for.
type stackDump struct{ stacks map[string]string }

// of returns the stack of a goroutine.
func (d *stackDump) of(goroutine string) string {
	if d.stacks == nil {
		buffer := make([]byte, dumpBytesMax)
		buffer = buffer[:runtime.Stack(buffer, true)]
		d.stacks = map[string]string{}
		for stack := range strings.SplitSeq(string(buffer), "\n\n") {
			name, _, _ := strings.Cut(stack, "[")
			d.stacks[name] = stack
		}
	}
	if stack, isThere := d.stacks[goroutine]; isThere {
		return stack
	}
	return "its stack was not found"
}
