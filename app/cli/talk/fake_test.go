package talk_test

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"os"
	"strings"
	"sync"
	"testing"

	"bobbin/app/cli/line"
	"bobbin/app/cli/talk"
	"bobbin/app/core"
)

// fake is a Bobbin that answers every message as send says.
type fake struct {
	send    func(ctx context.Context, yield func(core.Event, error) bool)
	cancel  func(ctx context.Context) error
	report  core.ContextReport
	summary func(ctx context.Context, focus string) (core.Summary, error)

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
	f.note("send " + string(m.SessionID) + " " + m.Content + files)
	return func(yield func(core.Event, error) bool) { f.send(ctx, yield) }
}

func (f *fake) CancelRun(ctx context.Context, id core.RunID, _ bool) (core.Run, error) {
	f.note("cancel " + string(id))
	return core.Run{}, f.cancel(ctx)
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

// typed is what the user types; "^C" stands for the key.
type typed struct{ lines []string }

func (l *typed) Line(context.Context) (string, error) {
	if len(l.lines) == 0 {
		return "", io.EOF
	}
	next := l.lines[0]
	l.lines = l.lines[1:]
	if next == "^C" {
		return "", line.ErrInterrupted
	}
	return next, nil
}

// event returns an event of the run "r".
func event(t *testing.T, kind core.EventType, data any) core.Event {
	t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return core.Event{Type: kind, RunID: "r", Data: raw}
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
func conversation(f *fake, interrupts <-chan os.Signal, lines ...string) (*talk.Conversation, *strings.Builder) {
	out := &strings.Builder{}
	return talk.New(talk.Options{
		Service: f, Session: core.Session{Agent: "a"}, Lines: &typed{lines}, Out: out, Interrupts: interrupts,
		Size: func() (int, int) { return 0, 0 }, Attended: true,
	}), out
}
