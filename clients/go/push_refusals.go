package jobline

import (
	"maps"
	"strings"
)

// isOfSome reports whether a refusal is, or may be, about some of the pushes and not the others; what
// they share is refused for all at once.
func isOfSome(e *Error, pushes []*push) bool {
	switch {
	case e.Is(ErrInvalidArgument):
		field := e.Field
		for _, column := range []string{"payloads", "jobs", "job_keys", "unique_keys", "header_columns", "groups"} {
			if field == "" || strings.HasPrefix(field, column) {
				return true
			}
		}
		if strings.HasPrefix(field, "options.unique") {
			return areMixed(pushes, func(p *push) bool { return p.own.uniqueKey != "" })
		}
		return strings.HasPrefix(field, "options.headers") && differInHeaders(pushes)
	case e.Is(ErrTooLarge), e.Is(ErrGroupFull):
		return true
	case e.Is(ErrResourceExhausted):
		// Jobs with a key and jobs without one count towards different limits.
		return areMixed(pushes, func(p *push) bool { return p.own.jobKey != "" }) ||
			areMixed(pushes, func(p *push) bool { return p.own.uniqueKey != "" })
	}
	return false
}

func areMixed(pushes []*push, has func(*push) bool) bool {
	count := 0
	for _, p := range pushes {
		if has(p) {
			count++
		}
	}
	return 0 < count && count < len(pushes)
}

func differInHeaders(pushes []*push) bool {
	for _, p := range pushes[1:] {
		if !maps.Equal(p.own.headers, pushes[0].own.headers) {
			return true
		}
	}
	return false
}

// parts returns pushes in two parts: those without a job key and those with one, or the halves if
// there are no such two kinds.
func parts(pushes []*push) [2][]*push {
	var plain, keyed []*push
	for _, p := range pushes {
		if p.own.jobKey == "" {
			plain = append(plain, p)
		} else {
			keyed = append(keyed, p)
		}
	}
	if len(plain) > 0 && len(keyed) > 0 {
		return [2][]*push{plain, keyed}
	}
	half := len(pushes) / 2
	return [2][]*push{pushes[:half], pushes[half:]}
}

// asOne names the field of a refusal as the caller of a single push knows it.
func asOne(e *Error, count int) *Error {
	if count > 1 {
		return e
	}
	return asJobs(e)
}
