package chat_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/cli/chat"
	"bobbin/app/cli/term"
	"bobbin/app/core"
)

// fake is a Bobbin that answers every message as send says.
type fake struct {
	send    func(ctx context.Context, yield func(core.Event, error) bool)
	cancel  func(ctx context.Context) error
	report  core.ContextReport
	summary func(ctx context.Context, focus string) (core.Summary, error)
	session core.Session // with the summary in use

	summaries []core.Summary // newest first
	elsewhere []int          // versions of other branches

	mu    sync.Mutex
	calls []string // guarded by mu
}

func (f *fake) note(call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
}

func (f *fake) StartRun(ctx context.Context, _ ops.Operation, in any) iter.Seq2[core.Event, error] {
	switch m := in.(type) {
	case ops.NewMessage:
		more := ""
		for _, p := range m.Parts {
			more += " +" + string(p.BlobID) + " " + p.Name
		}
		if m.Model != "" {
			more += " by " + m.Model
		}
		f.note("send " + string(m.SessionID) + " " + m.Content + more)
	case core.Regenerate:
		f.note(fmt.Sprintf("regenerate %s %s by %q", m.SessionID, m.MessageID, m.Model))
		ctx = context.Background()
	}
	return func(yield func(core.Event, error) bool) { f.send(ctx, yield) }
}

func (f *fake) UploadBlob(_ context.Context, u core.Upload) (core.Blob, error) {
	f.note("upload " + u.Name + " " + string(u.Data))
	if len(u.Data) == 0 {
		return core.Blob{}, core.Errorf(core.ErrInvalid, "the file cannot be taken: it is empty")
	}
	return core.Blob{ID: "blob", Name: "first.txt", MediaType: "text/plain", Size: int64(len(u.Data))}, nil
}

// CallOperation answers with a history of twelve messages and two versions of the summary.
func (f *fake) CallOperation(ctx context.Context, op ops.Operation, in, out any) error {
	answer, err := f.answer(ctx, op, in)
	if err == nil {
		reflect.ValueOf(out).Elem().Set(reflect.ValueOf(answer))
	}
	return err
}

func (f *fake) answer(ctx context.Context, op ops.Operation, in any) (any, error) {
	now := core.Now()
	switch in := in.(type) {
	case ops.NewSession:
		f.note("create " + in.Agent)
		return core.Session{ID: "new", Agent: in.Agent, Model: in.Model, Source: in.Source}, nil
	case ops.Cancel:
		f.note("cancel " + string(in.RunID))
		return core.Run{}, f.cancel(ctx)
	case ops.Decision:
		f.note(fmt.Sprintf("%s %s %s %s", in.Decision, in.RunID, in.ApprovalID, in.Comment))
		switch in.ApprovalID {
		case "taken":
			return nil, core.Errorf(core.ErrConflict, "it was denied by bob")
		case "broken":
			return nil, core.Errorf(core.ErrUnavailable, "the server is away")
		}
		return core.Approval{}, nil
	case ops.InSession:
		if op.ID == ops.GetContext.ID {
			f.note("context " + string(in.SessionID))
			return f.report, nil
		}
		f.note("session " + string(in.SessionID))
		return core.SessionDetail{Session: f.session}, nil
	case ops.Summarize:
		f.note("summarize " + string(in.SessionID) + " " + in.Focus)
		return f.summary(ctx, in.Focus)
	case ops.SessionPage:
		if f.summaries != nil {
			return core.Page[core.Summary]{Items: slices.Clone(f.summaries)}, nil
		}
		return core.Page[core.Summary]{NextCursor: new("more"), Items: []core.Summary{
			{Version: 2, State: core.SummaryActive, MessagesCovered: 8, TokenCount: 90},
			{Version: 1, Kind: core.SummaryRolling, State: core.SummaryDropped, ActivatedAt: &now, MessagesCovered: 4, TokenCount: 50},
		}}, nil
	case ops.InSummary:
		if in.Version > 2 {
			return nil, core.Errorf(core.ErrNotFound, "there is no version %d", in.Version)
		}
		return core.Summary{Version: in.Version, State: core.SummaryActive, MessagesCovered: 4 * in.Version, ThroughSeq: 7, TokenCount: 90, Focus: "names", Content: "## Facts\n- Rex is a dog."}, nil
	case ops.SummaryDiff:
		f.note(fmt.Sprint("diff ", in.Version, " ", in.Against))
		return core.SummaryDiff{Version: in.Version, Against: 1, Added: 1, Removed: 1, Equal: 2, Ops: []core.DiffOp{
			{Op: core.DiffEqual, Pieces: []string{"## Facts\n"}}, {Op: core.DiffRemoved, Pieces: []string{"- Rex barks.\n"}}, {Op: core.DiffAdded, Pieces: []string{"- Rex sleeps.\n"}},
		}}, nil
	case ops.SummaryRestore:
		if slices.Contains(f.elsewhere, in.Version) {
			return nil, core.Errorf(core.ErrUnprocessable, "on another branch")
		}
		f.note(fmt.Sprint("restore ", in.Version))
		return core.Session{ID: in.SessionID, SummaryVersion: min(in.Version, 1) * 3, SummarizedCount: 4 * in.Version, MessageCount: 12}, nil
	case ops.InMessage:
		f.note("where " + string(in.MessageID))
		return core.MessageLocation{MessageID: in.MessageID, Seq: 12, Role: core.RoleUser, Placement: core.PlaceCovered, Reason: "It is covered.", Note: "Not for long.", Pinned: true, TokenCount: 1000, WholeTokens: 1100, Model: "m"}, nil
	case core.SearchQuery:
		f.note("search " + string(in.SessionID) + " " + in.Text)
		if in.Text != "dog" {
			return core.SearchPage{}, nil
		}
		hit := core.SearchHit{MessageID: "m12", Excerpt: "my dog is", Pieces: []core.Piece{{Text: "my "}, {Text: "dog", Match: true}, {Text: " is"}}}
		return core.SearchPage{Page: core.Page[core.SearchHit]{NextCursor: new("more"), Items: []core.SearchHit{hit}}}, nil
	case ops.MessageList:
		seq := min(in.After+1, 13)
		return ops.MessagePage{Page: core.Page[core.Message]{Items: []core.Message{{ID: core.MessageID(fmt.Sprint("m", seq)), Seq: seq, Content: "my dog"}}}}, nil
	case struct{}:
		return core.Page[core.AgentDetail]{Items: []core.AgentDetail{
			{Agent: core.Agent{Name: "a"}, Models: []core.ModelChoice{{Name: "small", Default: true}, {Name: "big"}}},
			{Agent: core.Agent{Name: "b"}, Models: []core.ModelChoice{{Name: "other", Default: true}}},
		}}, nil
	}
	return nil, fmt.Errorf("unexpected operation %s", op.ID)
}

// typed is what the user types; "^C" stands for the key.
type typed struct {
	term.Reader
	lines []string
}

func (l *typed) Line(context.Context) (string, error) {
	if len(l.lines) == 0 {
		return "", io.EOF
	}
	next := l.lines[0]
	l.lines = l.lines[1:]
	if next == "^C" {
		return "", term.ErrInterrupted
	}
	return next, nil
}

// event returns an event of the run "r".
func event(t *testing.T, kind core.EventType, data any) core.Event {
	t.Helper()
	return core.Event{Type: kind, RunID: "r", Data: data}
}

// events answers with the events, in order.
func events(list ...core.Event) func(context.Context, func(core.Event, error) bool) {
	return func(_ context.Context, yield func(core.Event, error) bool) {
		for _, e := range list {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// conversation returns a conversation of an attended terminal without a width.
func conversation(f *fake, interrupts <-chan os.Signal, lines ...string) (*chat.Conversation, *strings.Builder) {
	out := &strings.Builder{}
	return chat.New(chat.Options{
		Service: f, Session: core.Session{Agent: "a"}, Lines: &typed{lines: lines}, Out: out, Notes: out, Interrupts: interrupts,
		Size: func() (int, int) { return 0, 0 }, Attended: true,
	}), out
}
