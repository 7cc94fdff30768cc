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

// Spell returns a statement with its placeholders ($1) and types as the database has them, for a table; more are
// pairs of other words in braces, and what they stand for.
func (d Dialect) Spell(table, statement string, more ...string) string {
	alone := table[strings.LastIndexByte(table, '.')+1:]
	words := append([]string{"{table}", table, "{alone}", alone}, more...)
	types := []string{"{bytes}", "BYTEA", "{number}", "BIGINT", "{skip_locked}", " FOR UPDATE SKIP LOCKED"}
	if d == SQLite {
		types = []string{"{bytes}", "BLOB", "{number}", "INTEGER", "{skip_locked}", "", "$", "?"}
	}
	statement = strings.NewReplacer(words...).Replace(statement)
	return strings.NewReplacer(types...).Replace(statement)
}

// Places returns count placeholders, from a number on.
func Places(from, count int) string {
	places := make([]string, count)
	for i := range places {
		places[i] = fmt.Sprintf("$%d", from+i)
	}
	return strings.Join(places, ", ")
}
