package jobline

import (
	"context"
	"fmt"
	"time"

	"github.com/jobline/jobline/clients/go/internal/movedclock"
)

var errMoved = fmt.Errorf("its time has passed by the clock of the test's server: %w", context.DeadlineExceeded)

// byMovedClock returns a context that ends with ctx, and also when its time has passed by the clock of a server that
// a test has moved.
func byMovedClock(ctx context.Context, target string) (context.Context, context.CancelFunc) {
	before, changed := movedclock.Of(target)
	deadline, hasOne := ctx.Deadline()
	if !hasOne || changed == nil {
		return ctx, func() {}
	}
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
			var moved time.Duration
			moved, changed = movedclock.Of(target)
			if time.Until(deadline) <= moved-before {
				end(errMoved)
			}
		}
	}()
	return ctx, func() { end(nil) }
}
