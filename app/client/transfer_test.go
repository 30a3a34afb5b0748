package client_test

import (
	"errors"
	"strings"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apitest"
	"bobbin/tests/must"
)

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
