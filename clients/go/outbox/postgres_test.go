package outbox_test

import (
	"database/sql"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
)

// startPostgres starts a PostgreSQL of its own on a socket in a directory of its own, and returns its
// address; "" if this machine has none, which it logs.
func startPostgres(t *testing.T) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		t.Log("no PostgreSQL on this machine: its part is left out")
		return ""
	}
	bin := filepath.Dir(found[len(found)-1])
	dir, err := os.MkdirTemp("", "jobline-pg-") // short: a socket's path has about 100 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	attributes := &syscall.SysProcAttr{}
	if os.Getuid() == 0 { // which PostgreSQL refuses to run as
		account, err := user.Lookup("postgres")
		if err != nil {
			t.Log("no user postgres: its part is left out")
			return ""
		}
		uid, _ := strconv.Atoi(account.Uid)
		gid, _ := strconv.Atoi(account.Gid)
		attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string, args ...string) {
		command := exec.Command(filepath.Join(bin, name), args...)
		command.Dir, command.SysProcAttr = dir, attributes
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, output)
		}
	}
	data := filepath.Join(dir, "data")
	run("initdb", "--no-sync", "--auth=trust", "--username=jobline", "--pgdata="+data)
	run("pg_ctl", "--pgdata="+data, "--wait", "--log="+filepath.Join(dir, "log"),
		"--options=-k "+dir+" -c listen_addresses='' -c fsync=off", "start")
	t.Cleanup(func() { run("pg_ctl", "--pgdata="+data, "--mode=immediate", "stop") })
	return "host=" + dir + " user=jobline dbname=postgres"
}

func openPostgres(t *testing.T, address string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
