package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/tests/apitest"
)

// What is brought in arrives as it was given, and a session goes out as it comes.
func TestTransfer(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	c := dial(t, backend, "s3cret")
	message := core.Message{
		Role: core.RoleAssistant, Content: "x", ToolCalls: []core.ToolCall{{ID: "c", Name: "n", Arguments: "{ }"}}, Author: "A",
		Source: core.SourceSlack, ClientMessageID: "m", Metadata: []byte(`{"k":1}`), CreatedAt: apitest.Time(),
	}
	stored, err := c.AppendMessage(t.Context(), apitest.SessionID, message)
	if err != nil || stored.Seq != 3 {
		t.Errorf("got %+v, %v, want the message in the log", stored, err)
	}
	for format, text := range map[core.ImportFormat]string{core.ImportLines: "{}\n{}", core.ImportJSON: "[{},{}]"} {
		done, err := c.ImportMessages(t.Context(), core.ImportMessages{SessionID: apitest.SessionID, Body: strings.NewReader(text), Format: format, Source: core.SourceCLI})
		if err != nil || done.Imported != 2 {
			t.Errorf("got %+v, %v, want two messages", done, err)
		}
		all := backend.Calls()
		if diff := cmp.Diff([]any{apitest.SessionID, format, core.SourceCLI, text}, all[len(all)-1].Args); diff != "" {
			t.Errorf("import (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff([]any{apitest.SessionID, message}, backend.Calls()[0].Args); diff != "" {
		t.Errorf("append (-want +got):\n%s", diff)
	}
	var file strings.Builder
	if err := c.ExportSession(t.Context(), apitest.SessionID, core.ExportLines, &file); err != nil || file.String() != "{\"a file of the format\":\"jsonl\"}\n" {
		t.Errorf("got %q, %v, want the file", file.String(), err)
	}
	if err := c.ExportSession(t.Context(), apitest.MissingID, core.ExportLines, &file); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("got %v for no session, want ErrNotFound", err)
	}
}

// torn writes a part and fails.
type torn struct{}

var errFull = errors.New("the disk is full")

func (torn) Write([]byte) (int, error) { return 0, errFull }

func TestExportErrors(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	c := dial(t, backend, "s3cret")
	if err := c.ExportSession(t.Context(), apitest.SessionID, core.ExportJSON, torn{}); !errors.Is(err, errFull) {
		t.Errorf("got %v, want what the writer says", err)
	}
	backend.Hooks["Export"] = func(context.Context) error { return errors.New("disk on fire") }
	if err := c.ExportSession(t.Context(), apitest.SessionID, core.ExportJSON, &strings.Builder{}); err == nil {
		t.Error("got no error for an export that failed")
	}
}
