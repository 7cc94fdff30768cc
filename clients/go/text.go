package jobline

import (
	"strings"
	"unicode"
)

// oneLine returns a text of somebody else for a line of a log or a terminal: each character that is not printed,
// such as the beginning of an escape sequence, is a space or, if it says nothing, is replaced.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\r', r == '\t':
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
