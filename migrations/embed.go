// Package migrations holds the numbered SQL that makes Bobbin's tables, once for
// PostgreSQL and once for SQLite. Both folders have the same numbers and come to
// the same tables, columns and unique indexes; a test in app/db says so.
//
// The baseline is the schema of version 0.9.0. A migration that was released is never
// edited: what it did wrong, the next one puts right. There is no way down.
package migrations

import (
	"embed"
	"io/fs"
)

//go:embed postgres/*.sql sqlite/*.sql
var files embed.FS

// Postgres returns the migrations for PostgreSQL, at the root of the result.
func Postgres() fs.FS { return sub("postgres") }

// SQLite returns the migrations for SQLite, at the root of the result.
func SQLite() fs.FS { return sub("sqlite") }

// sub cannot fail: the folders are embedded under these names.
func sub(dir string) fs.FS {
	f, err := fs.Sub(files, dir)
	if err != nil {
		panic("migrations: " + err.Error())
	}
	return f
}
