package client_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/api"
	"bobbin/app/api/auth"
	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// TestMain runs the tests.
func TestMain(m *testing.M) { apitest.Main(m) }

// dial returns a client of a server over the world.
func dial(t *testing.T, b *apitest.World, key string) *client.Client {
	t.Helper()
	b.Options.Auth = auth.New(auth.Options{Keys: []auth.Key{auth.NewKey(core.LocalOwner, "s3cret", core.ReadWrite)}, Required: true})
	server := httptest.NewServer(api.New(b.Options))
	t.Cleanup(server.Close)
	return must.Get(client.New(client.Options{URL: server.URL + "/", Key: key, HTTP: server.Client()}))(t)
}

// TestProblems: the kind of an error survives the way over HTTP.
func TestProblems(t *testing.T) {
	t.Parallel()
	kinds := []error{
		core.ErrInvalid, core.ErrForbidden, core.ErrUnauthorized, core.ErrNotFound, core.ErrConflict, core.ErrStale, core.ErrCanceled, core.ErrTooLarge,
		core.ErrUnprocessable, core.ErrContextFloor, core.ErrRateLimited, core.ErrUnavailable, core.ErrModel, core.ErrTimeout,
	}
	backend := apitest.New(t)
	c := dial(t, backend, "s3cret")
	for _, kind := range kinds {
		fields := []core.FieldError{{Field: "f", Detail: "d"}}
		backend.Hooks["Sessions.Get"] = func(context.Context) error { return &core.Error{Kind: kind, Message: "in words", Fields: fields} }
		_, err := client.Call(t.Context(), c, ops.GetSession, ops.InSession{SessionID: core.SessionID(apitest.SessionID)})
		var problem *client.ProblemError
		if !errors.Is(err, kind) || !errors.As(err, &problem) {
			t.Errorf("got %v, want %v", err, kind)
			continue
		}
		compare.True(t, err.Error() == "in words" && problem.RequestID != "" && cmp.Equal(problem.Errors, fields), "got problem %+v, want the words, the fields and a request id", problem)
	}
	backend.Hooks["Sessions.Get"] = func(context.Context) error { return errors.New("secret") }
	_, err := client.Call(t.Context(), c, ops.GetSession, ops.InSession{SessionID: core.SessionID(apitest.SessionID)})
	var problem *client.ProblemError
	compare.True(t, errors.As(err, &problem) && err.Error() == "internal error (request id "+problem.RequestID+")", "got %v, want an internal error with its request id", err)
	compare.Error(t, "with a wrong key", core.ErrUnauthorized, compare.ErrorOf(client.Call(t.Context(), dial(t, backend, "wrong"), ops.ListAgents, struct{}{})))
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "localhost:8080", "ftp://localhost", "http://", "http://a b", ":"} {
		compare.True(t, compare.ErrorOf(client.New(client.Options{URL: url})) != nil, "got no error for url %q, want one", url)
	}
}

// torn writes a part and fails.
type torn struct{}

var errFull = errors.New("the disk is full")

func (torn) Write([]byte) (int, error) { return 0, errFull }

func TestExportErrors(t *testing.T) {
	t.Parallel()
	backend := apitest.New(t)
	c := dial(t, backend, "s3cret")
	if err := client.Download(t.Context(), c, ops.ExportSession, ops.SessionExport{InSession: ops.InSession{SessionID: core.SessionID(apitest.SessionID)}, Format: core.ExportJSON}, torn{}); !errors.Is(err, errFull) {
		t.Errorf("got %v, want what the writer says", err)
	}
	must.Do(t, backend.Database.Gorm.WithContext(t.Context()).Exec("UPDATE messages SET metadata = '{'").Error)
	if err := client.Download(t.Context(), c, ops.ExportSession, ops.SessionExport{InSession: ops.InSession{SessionID: core.SessionID(apitest.SessionID)}, Format: core.ExportJSON}, &strings.Builder{}); err == nil {
		t.Error("got no error for an export that failed")
	}
}
