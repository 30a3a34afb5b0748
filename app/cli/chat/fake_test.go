package chat_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"sync"
	"testing"

	"bobbin/app/cli/chat"
	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
)

// fake is a Bobbin that answers every message as send says.
type fake struct {
	send    func(ctx context.Context, yield func(core.Event, error) bool)
	cancel  func(ctx context.Context) error
	report  core.ContextReport
	summary func(ctx context.Context, focus string) (core.Summary, error)
	version int // of the summary in use

	mu    sync.Mutex
	calls []string // guarded by mu
}

func (f *fake) note(call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
}

func (f *fake) CreateSession(_ context.Context, s core.Session) (core.Session, error) {
	f.note("create " + s.Agent)
	s.ID = "new"
	return s, nil
}

func (f *fake) Send(ctx context.Context, m core.SendMessage) iter.Seq2[core.Event, error] {
	files := ""
	for _, p := range m.Parts {
		files += " +" + string(p.BlobID) + " " + p.Name
	}
	if m.Model != "" {
		files += " by " + m.Model
	}
	f.note("send " + string(m.SessionID) + " " + m.Content + files)
	return func(yield func(core.Event, error) bool) { f.send(ctx, yield) }
}

func (f *fake) Regenerate(_ context.Context, r core.Regenerate) iter.Seq2[core.Event, error] {
	f.note(fmt.Sprintf("regenerate %s %s by %q", r.SessionID, r.MessageID, r.Model))
	return func(yield func(core.Event, error) bool) { f.send(context.Background(), yield) }
}

func (f *fake) CancelRun(ctx context.Context, id core.RunID, _ bool) (core.Run, error) {
	f.note("cancel " + string(id))
	return core.Run{}, f.cancel(ctx)
}

func (f *fake) Decide(_ context.Context, run core.RunID, id core.ApprovalID, d core.ApprovalDecision) (core.Approval, error) {
	f.note(fmt.Sprintf("decide %s %s %t %s", run, id, d.Approve, d.Comment))
	if id == "taken" {
		return core.Approval{}, core.Errorf(core.ErrConflict, "it was denied by bob")
	}
	if id == "broken" {
		return core.Approval{}, core.Errorf(core.ErrUnavailable, "the server is away")
	}
	return core.Approval{}, nil
}

func (f *fake) Agents(context.Context) ([]core.AgentDetail, error) {
	return []core.AgentDetail{
		{Agent: core.Agent{Name: "a"}, Models: []core.ModelChoice{{Name: "small", Default: true}, {Name: "big"}}},
		{Agent: core.Agent{Name: "b"}, Models: []core.ModelChoice{{Name: "other", Default: true}}},
	}, nil
}

func (f *fake) Context(_ context.Context, id core.SessionID) (core.ContextReport, error) {
	f.note("context " + string(id))
	return f.report, nil
}

func (f *fake) UploadBlob(_ context.Context, u core.Upload) (core.Blob, error) {
	f.note("upload " + u.Name + " " + string(u.Data))
	if len(u.Data) == 0 {
		return core.Blob{}, core.Errorf(core.ErrInvalid, "the file cannot be taken: it is empty")
	}
	return core.Blob{ID: "blob", Name: "first.txt", MediaType: "text/plain", Size: int64(len(u.Data))}, nil
}

func (f *fake) Summarize(ctx context.Context, id core.SessionID, focus string) (core.Summary, error) {
	f.note("summarize " + string(id) + " " + focus)
	return f.summary(ctx, focus)
}

// The versions that a fake has: the second one is in use.
func (f *fake) Session(_ context.Context, id core.SessionID) (core.Session, error) {
	f.note("session " + string(id))
	return core.Session{ID: id, SummaryVersion: f.version}, nil
}

func (f *fake) Summaries(context.Context, core.SessionID, core.PageQuery) (core.Page[core.Summary], error) {
	next := "more"
	return core.Page[core.Summary]{NextCursor: &next, Items: []core.Summary{
		{Version: 2, State: core.SummaryActive, MessagesCovered: 8, TokenCount: 90}, {Version: 1, State: core.SummaryUndone, MessagesCovered: 4, TokenCount: 50},
	}}, nil
}

func (f *fake) Summary(_ context.Context, _ core.SessionID, version int) (core.Summary, error) {
	if version > 2 {
		return core.Summary{}, core.Errorf(core.ErrNotFound, "there is no version %d", version)
	}
	return core.Summary{Version: version, State: core.SummaryActive, MessagesCovered: 4 * version, ThroughSeq: 7, TokenCount: 90, Focus: "names", Content: "## Facts\n- Rex is a dog."}, nil
}

func (f *fake) DiffSummary(_ context.Context, _ core.SessionID, version, against int) (core.SummaryDiff, error) {
	f.note(fmt.Sprint("diff ", version, " ", against))
	return core.SummaryDiff{Version: version, Against: 1, Added: 1, Removed: 1, Equal: 2, Ops: []core.DiffOp{
		{Op: core.DiffEqual, Pieces: []string{"## Facts\n"}}, {Op: core.DiffRemoved, Pieces: []string{"- Rex barks.\n"}}, {Op: core.DiffAdded, Pieces: []string{"- Rex sleeps.\n"}},
	}}, nil
}

func (f *fake) RestoreSummary(_ context.Context, id core.SessionID, version int) (core.Session, error) {
	f.note(fmt.Sprint("restore ", version))
	return core.Session{ID: id, SummaryVersion: min(version, 1) * 3, SummarizedCount: 4 * version, MessageCount: 12}, nil
}

func (f *fake) UndoSummary(ctx context.Context, id core.SessionID) (client.UndoneSummary, error) {
	s, err := f.RestoreSummary(ctx, id, f.version-1)
	return client.UndoneSummary{Session: s, From: f.version, To: f.version - 1}, err
}

func (f *fake) Where(_ context.Context, _ core.SessionID, id core.MessageID) (core.MessageLocation, error) {
	f.note("where " + string(id))
	return core.MessageLocation{MessageID: id, Seq: 12, Role: core.RoleUser, Placement: core.PlaceCovered, Reason: "It is covered.", Note: "Not for long.", Pinned: true, TokenCount: 1000, WholeTokens: 1100, Model: "m"}, nil
}

func (f *fake) Search(_ context.Context, q core.SearchQuery) (core.SearchPage, error) {
	f.note("search " + string(q.SessionID) + " " + q.Text)
	var page core.SearchPage
	if q.Text == "dog" {
		next := "more"
		page.NextCursor = &next
		page.Items = []core.SearchHit{{MessageID: "m12", Excerpt: "my dog is", Pieces: []core.Piece{{Text: "my "}, {Text: "dog", Match: true}, {Text: " is"}}}}
	}
	return page, nil
}

func (f *fake) MessageNumber(_ context.Context, _ core.SessionID, seq int64) (core.Message, error) {
	if seq > 12 {
		return core.Message{}, core.Errorf(core.ErrNotFound, "there is no message #%d", seq)
	}
	return core.Message{ID: core.MessageID(fmt.Sprint("m", seq)), Content: "my dog"}, nil
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
		Service: f, Session: core.Session{Agent: "a"}, Lines: &typed{lines: lines}, Out: out, Interrupts: interrupts,
		Size: func() (int, int) { return 0, 0 }, Attended: true,
	}), out
}
