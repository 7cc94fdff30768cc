package jobline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/internal/testserver"
)

const far = "jobs.example:7070"

// bare has no setting of Jobline in the environment of a test.
func bare(t *testing.T) {
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "JOBLINE_") {
			t.Setenv(name, "")
		}
	}
}

func open(target string, connection jobline.Connection) error {
	client, err := jobline.New(target, &jobline.ClientOptions{Connection: connection})
	if err == nil {
		_ = client.Close()
	}
	_, other := jobline.NewWorker(target, &jobline.WorkerOptions{Connection: connection})
	if (err == nil) != (other == nil) {
		return fmt.Errorf("a client says %w, and a worker %w", err, other)
	}
	return err
}

func TestTokenNeedsTLSToAnotherHost(t *testing.T) {
	bare(t)
	token := jobline.Token("jl_secret")
	for _, near := range []string{"localhost:7070", "127.9.9.9:1", "[::1]:1", "unix:/run/s", "LOCALHOST:1", "dns:///localhost:1"} {
		if err := open(near, jobline.Connection{Token: token}); err != nil {
			t.Errorf("%s: %v", near, err)
		}
	}
	for _, target := range []string{far, "10.0.0.1:1", "localhost.evil:1", "127.0.0.1.evil:1", "[::2]:1", "dns:///jobs:1"} {
		err := open(target, jobline.Connection{Token: token})
		if !errors.Is(err, jobline.ErrInvalidArgument) || !strings.Contains(err.Error(), "everybody on the way can read a token") ||
			strings.Contains(err.Error(), string(token)) {
			t.Errorf("%s: %v", target, err)
		}
	}
	plain := insecure.NewCredentials()
	for what, one := range map[string]jobline.Connection{
		"a function": {TokenFunc: func(context.Context) (string, error) { return "x", nil }},
		"plaintext":  {Token: token, Credentials: plain},
	} {
		if err := open(far, one); !errors.Is(err, jobline.ErrInvalidArgument) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, one := range map[string]jobline.Connection{
		"TLS":         {Token: token, TLS: &jobline.TLS{}},
		"credentials": {Token: token, Credentials: credentials.NewTLS(nil)},
		"on demand":   {Token: token, InsecureToken: true},
	} {
		if err := open(far, one); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestWhatDoesNotGoTogetherIsRefused(t *testing.T) {
	bare(t)
	folder := t.TempDir()
	authority := testserver.NewAuthority(t)
	certificate, _ := authority.Issue(t, folder, "one", time.Now().Add(time.Hour))
	_, key := authority.Issue(t, folder, "two", time.Now().Add(time.Hour))
	none := filepath.Join(folder, "none.pem")
	for said, one := range map[string]jobline.Connection{
		"Token: must be one word":             {Token: "a b"},
		"Token: must be one word of":          {Token: "a\n"},
		"TokenFunc has it":                    {Token: "a", TokenFunc: func(context.Context) (string, error) { return "x", nil }},
		"Metadata has an authorization":       {Token: "a", Metadata: jobline.Metadata{"Authorization": "y"}},
		"Credentials has it":                  {TLS: &jobline.TLS{}, Credentials: credentials.NewTLS(nil)},
		"a certificate needs its key":         {TLS: &jobline.TLS{Certificate: certificate}},
		"CA: " + none + ": no such file":      {TLS: &jobline.TLS{CA: none}},
		"CA: " + key + ": has no certificate": {TLS: &jobline.TLS{CA: key}},
		"private key does not match":          {TLS: &jobline.TLS{Certificate: certificate, Key: key}},
		"Key: " + folder + ": is a directory": {TLS: &jobline.TLS{Certificate: certificate, Key: folder}},
	} {
		err := open("localhost:7070", one)
		if !errors.Is(err, jobline.ErrInvalidArgument) || !strings.Contains(err.Error(), said) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", said, err)
		}
	}
}

func TestEnvironmentSaysWhatOptionsDoNot(t *testing.T) {
	bare(t)
	set := func(name, value string) { t.Setenv("JOBLINE_"+name, value) }
	set("TOKEN", "a b")
	if err := open("localhost:7070", jobline.Connection{}); err == nil || !strings.Contains(err.Error(), "JOBLINE_TOKEN: must be one word") {
		t.Error(err)
	}
	for what, one := range map[string]jobline.Connection{
		"a token": {Token: "a"}, "metadata": {Metadata: jobline.Metadata{"authorization": "y"}},
	} {
		if err := open("localhost:7070", one); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	set("TOKEN", "\n")
	if err := open("localhost:7070", jobline.Connection{}); err == nil || !strings.Contains(err.Error(), "JOBLINE_TOKEN: must be one word") {
		t.Error(err)
	}
	set("TOKEN", "jl_y\n")
	if err := open("localhost:7070", jobline.Connection{}); err != nil {
		t.Error("the end of a line is no part of a token:", err)
	}
	set("TOKEN", "jl_y")
	if err := open(far, jobline.Connection{}); err == nil || !strings.Contains(err.Error(), "JOBLINE_TLS=1") {
		t.Error(err)
	}
	// Beside a server: its own certificate turns nothing on for a client, and is none of it.
	set("TLS_CERTIFICATE", "/none.pem")
	set("TLS_KEY", "/none.pem")
	if err := open(far, jobline.Connection{}); err == nil || !strings.Contains(err.Error(), "everybody") {
		t.Error(err)
	}
	set("TLS", "1")
	if err := open(far, jobline.Connection{}); err != nil {
		t.Error(err)
	}
	if err := open(far, jobline.Connection{Credentials: insecure.NewCredentials()}); err == nil {
		t.Error("Credentials count more than the environment")
	}
	set("CLIENT_CERTIFICATE", "/none.pem")
	if err := open(far, jobline.Connection{}); err == nil || !strings.Contains(err.Error(), "needs its key") {
		t.Error(err)
	}
	set("TLS", "")
	if err := open(far, jobline.Connection{}); err == nil || !strings.Contains(err.Error(), "needs its key") {
		t.Error("a file turns it on")
	}
	set("TLS_CA", "/none.pem")
	for _, off := range []string{"0", "False", "no", "OFF"} {
		set("TLS", off)
		if err := open("localhost:7070", jobline.Connection{}); err != nil {
			t.Errorf("%s counts more than files: %v", off, err)
		}
	}
	set("TLS", "")
	set("CLIENT_CERTIFICATE", "")
	if err := open(far, jobline.Connection{}); err == nil || !strings.Contains(err.Error(), "CA: /none.pem") {
		t.Error(err)
	}
	set("TLS", "perhaps")
	if err := open(far, jobline.Connection{}); err == nil || !strings.Contains(err.Error(), "must be 1 or 0") {
		t.Error(err)
	}
}

// TestNothingShowsAToken: not options, nor clients and workers, whatever prints them.
func TestNothingShowsAToken(t *testing.T) {
	bare(t)
	secret := "jl_secret"
	connection := jobline.Connection{Token: jobline.Token(secret), Metadata: jobline.Metadata{"a": "b"}}
	own := jobline.Connection{Metadata: jobline.Metadata{"Authorization": "Bearer " + secret, "a": "b"}}
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	lines := slog.New(slog.NewTextHandler(&log, nil))
	for _, one := range []jobline.Connection{connection, own} {
		client := clientOf(t, "localhost:1", &jobline.ClientOptions{Connection: one})
		worker := must[*jobline.Worker](t)(jobline.NewWorker("localhost:1", &jobline.WorkerOptions{Connection: one}))
		for _, value := range []any{
			one, &one, jobline.ClientOptions{Connection: one}, &jobline.WorkerOptions{Connection: one}, client, worker,
			one.Token, one.Metadata,
		} {
			shown := fmt.Sprintf("%v %+v %#v %s %q %x %d", value, value, value, value, value, value, value)
			if data, err := json.Marshal(value); err == nil {
				shown += string(data)
			}
			logger.Info("it", "value", value)
			lines.Info("it", "value", value)
			if strings.Contains(shown, secret) || strings.Contains(shown, fmt.Sprintf("%x", secret)) {
				t.Errorf("%T: %s", value, shown)
			}
		}
	}
	if strings.Contains(log.String(), secret) || !strings.Contains(log.String(), "hidden") {
		t.Error(log.String())
	}
	data := must[[]byte](t)(json.Marshal(own))
	if !strings.Contains(string(data), `"a":"b"`) || !strings.Contains(string(data), `"[hidden]"`) {
		t.Errorf("%s", data)
	}
	var read jobline.Connection
	if err := json.Unmarshal([]byte(`{"Token": "jl_secret"}`), &read); err != nil || string(read.Token) != secret {
		t.Errorf("%q, %v", string(read.Token), err)
	}
}
