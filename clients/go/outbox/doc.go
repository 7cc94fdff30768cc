// Package outbox pushes jobs together with a program's own database transaction: either both happen, or
// neither.
//
// A row is written into a table of the program's database, in the program's transaction. A [Relay]
// pushes the rows to Jobline and deletes them. The id of a row is the job's idempotency key, so a relay that is
// killed between the two pushes no job twice. The tables are those of jobline.outbox for Python, too.
//
//	table := outbox.Table{Dialect: outbox.Postgres}
//	tx, err := db.BeginTx(ctx, nil)
//	...
//	_, err = table.Push(ctx, tx, "emails", Email{To: "a@b.c"}, nil)
//	...
//	err = tx.Commit()
//
// It needs database/sql alone. Package pgxoutbox writes rows in transactions of pgx; package fence is the
// other side, for handlers whose effects are in a database.
package outbox
