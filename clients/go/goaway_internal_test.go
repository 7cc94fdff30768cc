package jobline

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

// TestWrongClockEndsNoStreamAtOnce: the server ends it by its own clock, and settles are on their way.
func TestWrongClockEndsNoStreamAtOnce(t *testing.T) {
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	goaway := &joblinev1.StreamGoaway{CloseTime: timestamppb.New(now.Add(time.Minute))}
	for ahead, stays := range map[time.Duration]time.Duration{
		0: time.Minute, time.Hour: 30 * time.Second, -time.Hour: time.Hour, 40 * time.Second: 30 * time.Second,
	} {
		if found := goawayPatience(goaway, now.Add(ahead)); found != stays {
			t.Errorf("with a clock that is %v ahead it stays for %v", ahead, found)
		}
	}
}
