package outbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jobline/jobline/clients/go/internal/testserver"
)

var blockOfGo = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// What the README's program prints: a line of each block.
const printed = `pushed: PUSH_OUTCOME_CREATED
sealed: a@b.c acme
payments: 1
QUEUE_FULL  0 true true
paused: true
sent to: a@b.c
relayed.
`

// TestTheReadmeRuns has all of its blocks of Go in one program, on a real server; and on SQLite, which needs no other.
func TestTheReadmeRuns(t *testing.T) {
	t.Parallel()
	server := testserver.New(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "main.go")
	if err := os.WriteFile(program, []byte(readmeProgram(t, server.Address)), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "readme")
	if said, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	authority := testserver.NewAuthority(t)
	authority.Issue(t, dir, "client", time.Now().Add(time.Hour))
	if err := os.Rename(authority.File, filepath.Join(dir, "ca.pem")); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), binary, filepath.Join(dir, "a.db"))
	command.Dir, command.Env = dir, append(os.Environ(), "JOBLINE_SERVER="+server.Address)
	said, err := command.Output()
	if err != nil || string(said) != printed {
		t.Errorf("%v: %s", err, said)
	}
}

// readmeProgram returns a program with the blocks, and the server's address and SQLite in the place of others.
func readmeProgram(t *testing.T, address string) string {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("testdata/readme/main.go.txt")
	if err != nil {
		t.Fatal(err)
	}
	text := string(program)
	for i, block := range blockOfGo.FindAllStringSubmatch(string(readme), -1) {
		place := fmt.Sprintf("// block %d\n", i+1)
		if !strings.Contains(text, "\t"+place) {
			t.Errorf("block %d has no place in the program: %s", i+1, block[1])
		}
		text = strings.Replace(text, "\t"+place, block[1], 1)
	}
	if strings.Contains(text, "\t// block ") {
		t.Error("the README has fewer blocks than the program has places")
	}
	return strings.NewReplacer("localhost:7070", address, "outbox.Postgres", "outbox.SQLite", "$1", "?1").Replace(text)
}
