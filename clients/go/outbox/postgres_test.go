package outbox_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
)

// postgres is a PostgreSQL of these tests on a socket in a directory of its own.
type postgres struct {
	bin, dir   string
	attributes *syscall.SysProcAttr
}

var errNoPostgres = errors.New("no PostgreSQL on this machine: its part is left out")

// newPostgres starts one.
func newPostgres() (*postgres, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		return nil, errNoPostgres
	}
	dir, err := os.MkdirTemp("", "jobline-go-pg-") // short: a socket's path has about 100 bytes
	if err != nil {
		return nil, err
	}
	p := &postgres{filepath.Dir(found[len(found)-1]), dir, &syscall.SysProcAttr{}}
	if os.Getuid() == 0 { // which PostgreSQL refuses to run as
		account, err := user.Lookup("postgres")
		if err != nil {
			return nil, errors.Join(os.RemoveAll(dir), errNoPostgres, err)
		}
		uid, _ := strconv.Atoi(account.Uid)
		gid, _ := strconv.Atoi(account.Gid)
		p.attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			return nil, err
		}
	}
	if err := p.run("initdb", "--no-sync", "--auth=trust", "--username=jobline"); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return p, p.start()
}

func (p *postgres) run(name string, args ...string) error {
	command := exec.Command(filepath.Join(p.bin, name), append([]string{"--pgdata=" + filepath.Join(p.dir, "data")}, args...)...)
	command.Dir, command.SysProcAttr = p.dir, p.attributes
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, output)
	}
	return nil
}

func (p *postgres) start() error {
	return p.run("pg_ctl", "--wait", "--log="+filepath.Join(p.dir, "log"),
		"--options=-k "+p.dir+" -c listen_addresses='' -c fsync=off", "start")
}

// stop stops it as a crash does.
func (p *postgres) stop() error { return p.run("pg_ctl", "--mode=immediate", "stop") }

func (p *postgres) close() { _ = errors.Join(p.stop(), os.RemoveAll(p.dir)) }

func (p *postgres) address(database string) string {
	return "host=" + p.dir + " user=jobline dbname=" + database
}

// shared is the PostgreSQL of all tests; TestMain ends it.
var shared struct {
	sync.Once
	*postgres
	err       error
	databases atomic.Int64
}

// startPostgres returns the address of an empty database; "" if this machine has no PostgreSQL, which it logs.
func startPostgres(t *testing.T) string {
	t.Helper()
	shared.Do(func() { shared.postgres, shared.err = newPostgres() })
	if errors.Is(shared.err, errNoPostgres) {
		t.Log(shared.err)
		return ""
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	name := fmt.Sprintf("test%d", shared.databases.Add(1))
	db := openPostgres(t, shared.address("postgres"))
	if _, err := db.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	return shared.address(name)
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
