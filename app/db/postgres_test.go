package db_test

import (
	"testing"

	"bobbin/app/db"
)

// Only a connection to another machine that checks who answers is verified.
func TestIsUnverified(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	for url, want := range map[string]bool{
		"sqlite://bobbin.db":                                               false,
		"postgres://u:p@127.0.0.1:5432/x":                                  false,
		"postgres://u:p@localhost/x?sslmode=disable":                       false,
		"postgres://u:p@[::1]/x":                                           false,
		"postgres:///x?host=/var/run/postgresql":                           false,
		"postgres://u:p@db.example/x":                                      true,
		"postgresql://u:p@db.example/x?sslmode=disable":                    true,
		"postgres://u:p@db.example/x?sslmode=prefer":                       true,
		"postgres://u:p@db.example/x?sslmode=require":                      true,
		"postgres://u:p@db.example/x?sslmode=verify-ca":                    false,
		"postgres://u:p@db.example/x?sslmode=verify-full":                  false,
		"postgres://u:p@db.example/x?sslrootcert=system":                   false,
		"postgres://u:p@127.0.0.1,db.example/x":                            true,
		"postgres://u:p@127.0.0.1:5432,db.example:5/x?sslmode=verify-full": false,
	} {
		if got := db.IsUnverified(url); got != want {
			t.Errorf("%s: got %v, want %v", url, got, want)
		}
	}
}
