package api_test

import (
	"testing"

	"bobbin/app/api"
	"bobbin/tests/apitest"
	"bobbin/tests/must"
)

// A page that cannot be written whole is an error.
func TestBrokenPages(t *testing.T) {
	t.Parallel()
	backend := apitest.New(t)
	must.Do(t, backend.Database.Gorm.WithContext(t.Context()).Exec("UPDATE messages SET metadata = '{'").Error)
	opts, _ := options(backend)
	wantProblem(t, do(api.New(opts), request("GET", sessionPath()+"/messages", "")), 500, "internal")
}
