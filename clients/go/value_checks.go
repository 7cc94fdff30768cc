package jobline

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Checks of single values, as the server makes them.

var (
	nameOfQueue = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,255}$`)
	version     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+_-]{0,63}$`)
	control     = regexp.MustCompile("[\x00-\x1f\u007f-\u009f]")
)

// InvalidArgument returns an ErrInvalidArgument about a field: for programs that check what they are given as this
// package does, such as middleware that refuses a push.
func InvalidArgument(field, why string) *Error { return refuse(field, "%s", why) }

// checkName checks the name of a queue or a limiter.
func checkName(field, name string) error {
	switch {
	case nameOfQueue.MatchString(name):
		return nil
	case name == "":
		return refuse(field, "is required")
	case strings.HasPrefix(name, "_"):
		return refuse(field, "names that start with _ are the system's")
	}
	return refuse(field, "must be 1 to 256 of A-Z a-z 0-9 . _ : -, the first a letter or digit, not %q", name)
}

// checkText checks a text of one line.
func checkText(field, text string, most int, length func(string) int) error {
	switch {
	case !utf8.ValidString(text):
		return refuse(field, "is not UTF-8")
	case length(text) > most:
		return refuse(field, "must be at most %d long, and is %d", most, length(text))
	case control.MatchString(text):
		return refuse(field, "must not hold control characters")
	}
	return nil
}

func bytesOf(text string) int { return len(text) }

// checkURL checks where a server is to tell of an end. It reads no more of a URL than the server does.
func checkURL(field, url string) error {
	isVisible := !strings.ContainsFunc(url, func(one rune) bool { return one < '!' || one > '~' || one == '\\' })
	scheme, rest, _ := strings.Cut(url, "://")
	host, port := rest, ""
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		host = rest[:end]
	}
	hasUser := strings.Contains(host, "@")
	if at := strings.LastIndexByte(host, ':'); at > strings.LastIndexByte(host, ']') {
		host, port = host[:at], host[at+1:]
	}
	number, err := strconv.ParseUint(port, 10, 16)
	switch {
	case url == "":
		return nil
	case !isVisible || len(url) > urlCharactersMax:
		return refuse(field, "must be a URL of at most %d visible ASCII characters", urlCharactersMax)
	case !slices.Contains([]string{"http", "https"}, strings.ToLower(scheme)) || host == "":
		return refuse(field, "must be an http or https URL with a host")
	case strings.Contains(host, "[") != strings.Contains(host, "]") || strings.Contains(host, ":") && !strings.Contains(host, "["):
		return refuse(field, "is not a URL")
	case hasUser:
		return refuse(field, "must not have a user or a password")
	case port != "" && (err != nil || number == 0):
		return refuse(field, "must have a port of 1 to 65535")
	}
	return nil
}

// checkCount refuses too long a list, which is no invalid one: ErrTooLarge.
func checkCount(field string, count, most int) error {
	if count > most {
		return newError(ErrTooLarge, "%s: must be at most %d entries, and are %d", field, most, count).about(field)
	}
	return nil
}

func checkNumber[N int32 | int64](field string, given *N, least, most N) error {
	if given != nil && (*given < least || *given > most) {
		return refuse(field, "must be %d to %d, not %d", least, most, *given)
	}
	return nil
}

// checkSpan checks a span of time, of which the server takes milliseconds and rounds up to them.
func checkSpan(field string, given *durationpb.Duration, shortest, longest time.Duration) error {
	if given == nil {
		return nil
	}
	span := given.AsDuration()
	if span < 0 || span <= shortest-time.Millisecond || span > longest {
		return refuse(field, "must be %s to %s, not %s", shortest, longest, span)
	}
	return nil
}

func checkMoment(field string, given *timestamppb.Timestamp) error {
	if given != nil && !given.IsValid() {
		return refuse(field, "must be in the years 0001 to 9999")
	}
	return nil
}

func checkEnum(field string, given protoreflect.Enum) error {
	if given.Descriptor().Values().ByNumber(given.Number()) == nil {
		return refuse(field, "%d is no value of it", given.Number())
	}
	return nil
}
