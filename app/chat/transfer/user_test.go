package transfer_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"testing"

	"bobbin/app/chat/transfer"
	"bobbin/app/core"
)

// away is a store that cannot be read.
type away struct {
	core.SessionStore
	err error
}

func (a away) List(context.Context, core.Tenant, core.SessionQuery) (core.Page[core.Session], error) {
	return core.Page[core.Session]{}, a.err
}

// An export that broke off cannot be taken for a whole one.
func TestExportUserBreaksOff(t *testing.T) {
	t.Parallel()
	want := errors.New("the database is away")
	s := transfer.New(transfer.Options{Users: transfer.UserStores{Sessions: away{err: want}}})
	var out bytes.Buffer
	err := s.ExportUser(t.Context(), ann(), core.UserExport{Owner: "ann", User: "kim"}, &out)
	if _, unreadable := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len())); !errors.Is(err, want) || err.Error() != "export: the database is away" || unreadable == nil {
		t.Errorf("got %v, and an archive that can be read: %v", err, unreadable == nil)
	}
}
