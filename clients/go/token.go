package jobline

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strings"
)

const (
	authorization = "authorization"
	hidden        = "[hidden]"
)

// Token is an API key or a JSON Web Token. No format, log or JSON shows its value: convert it to a string for that.
type Token string

// Format writes that the value is hidden, whatever the verb.
func (t Token) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, t.String()) }

// String returns that the value is hidden; "" for no token.
func (t Token) String() string {
	if t == "" {
		return ""
	}
	return hidden
}

// MarshalText returns that the value is hidden, for JSON and its like.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText sets the token.
func (t *Token) UnmarshalText(text []byte) error {
	*t = Token(text)
	return nil
}

// LogValue returns that the value is hidden.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// Metadata goes with each call. No format, log or JSON shows the value of its authorization.
type Metadata map[string]string

// Format writes the metadata without secrets.
func (m Metadata) Format(state fmt.State, verb rune) {
	_, _ = fmt.Fprintf(state, fmt.FormatString(state, verb), m.shown())
}

// MarshalJSON returns the metadata without secrets.
func (m Metadata) MarshalJSON() ([]byte, error) { return json.Marshal(m.shown()) }

// LogValue returns the metadata without secrets.
func (m Metadata) LogValue() slog.Value { return slog.AnyValue(m.shown()) }

func (m Metadata) shown() map[string]string {
	if m == nil {
		return nil
	}
	found := maps.Clone(m)
	for name := range found {
		if strings.EqualFold(name, authorization) {
			found[name] = hidden
		}
	}
	return found
}
