// Package sqldialect has what differs between databases.
package sqldialect

import (
	"fmt"
	"regexp"
	"strings"
)

// Dialect is how a database spells its statements.
type Dialect int

// The databases that are tested.
const (
	Postgres Dialect = iota
	SQLite
)

var name = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$`)

// Table returns the name of a table, or the usual one if it is ""; it panics for what is no name, as
// names stand in statements as they are.
func Table(given, usual string) string {
	if given == "" {
		return usual
	}
	if !name.MatchString(given) {
		panic(fmt.Sprintf("jobline: %q is no name of a table", given))
	}
	return given
}

// Spell returns a statement with its placeholders ($1) and types (BYTES, MOMENT, SERIAL) as the
// database has them, for a table.
func (d Dialect) Spell(table, statement string) string {
	types := []string{"{table}", table, "{bytes}", "BYTEA", "{moment}", "TIMESTAMPTZ", "{serial}", "BIGSERIAL PRIMARY KEY", "{skip_locked}", " FOR UPDATE SKIP LOCKED"}
	if d == SQLite {
		types = []string{"{table}", table, "{bytes}", "BLOB", "{moment}", "TEXT", "{serial}", "INTEGER PRIMARY KEY AUTOINCREMENT", "{skip_locked}", "", "$", "?"}
	}
	return strings.NewReplacer(types...).Replace(statement)
}
