package transfer_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"

	"bobbin/app/chat/transfer"
	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/must"
)

// world is one session in memory, and what was published.
type world struct {
	session  core.Session
	log      []core.Message
	versions []core.Summary
	told     []core.Event
	pages    int // that were read
	fail     error
}

func newWorld() *world {
	return &world{session: core.Session{ID: "01920000-0000-7000-8000-000000000001", Agent: "assistant", Title: "A title"}}
}

// service returns a service with the limits; of one that is 0, what is enough.
func (w *world) service(l transfer.Limits) *transfer.Service {
	return transfer.New(transfer.Options{
		Sessions: sessions{world: w}, Messages: messages{world: w}, Summaries: summaries{world: w}, Feed: feed{world: w}, Counter: words{},
		Limits: transfer.Limits{
			Message: cmp.Or(l.Message, 1<<20), Output: cmp.Or(l.Output, 1<<20), Shown: l.Shown, Line: cmp.Or(l.Line, 8<<20), Import: cmp.Or(l.Import, 64<<20), Messages: cmp.Or(l.Messages, 100_000),
		},
	})
}

func ann() core.Tenant { return core.Tenant{Owner: "ann"} }

// take imports a text.
func (w *world) take(t *testing.T, format core.ImportFormat, text string) (core.Imported, error) {
	t.Helper()
	return w.service(transfer.Limits{}).Import(t.Context(), ann(), core.ImportMessages{
		SessionID: w.session.ID, Body: strings.NewReader(text), Format: format,
	})
}

// export writes the session out.
func (w *world) export(t *testing.T, format core.ExportFormat) string {
	t.Helper()
	var b strings.Builder
	must.Do(t, w.service(transfer.Limits{}).Export(t.Context(), ann(), w.session, format, &b))
	return b.String()
}

type sessions struct {
	core.SessionStore
	*world
}

func (s sessions) Get(_ context.Context, _ core.Tenant, id core.SessionID) (core.Session, error) {
	if id != s.session.ID {
		return core.Session{}, core.Errorf(core.ErrNotFound, "session %s does not exist", id)
	}
	return s.session, nil
}

type messages struct {
	core.MessageStore
	*world
}

// Append numbers the messages; what is wrong with the session the real one knows.
func (m messages) Append(_ context.Context, _ core.Tenant, in core.AppendMessages) (core.Appended, error) {
	if m.fail != nil {
		return core.Appended{}, m.fail
	}
	out := core.Appended{FirstSeq: m.session.LastSeq + 1}
	for _, msg := range in.Messages {
		m.session.LastSeq++
		msg.Seq, msg.SessionID, msg.OnPath = m.session.LastSeq, m.session.ID, true
		msg.ID = core.MessageID(fmt.Sprintf("01920000-0000-7000-8000-%012d", msg.Seq))
		if msg.Status == "" {
			msg.Status = core.MessageComplete
		}
		if msg.CreatedAt.IsZero() {
			msg.CreatedAt = core.Now()
		}
		m.log = append(m.log, msg)
		out.Messages = append(out.Messages, msg)
	}
	out.LastSeq = m.session.LastSeq
	out.Events = []core.Event{core.NewEvent(m.session.ID, "", core.EventMessagesImported, nil)}
	return out, nil
}

func (m messages) List(_ context.Context, _ core.Tenant, _ core.SessionID, q core.MessageQuery) (core.Page[core.Message], error) {
	m.pages++
	if m.fail != nil && m.pages > 1 {
		return core.Page[core.Message]{}, m.fail
	}
	from := 0
	if q.Cursor != "" {
		_, _ = fmt.Sscan(q.Cursor, &from)
	}
	var p core.Page[core.Message]
	for i := from; i < len(m.log) && p.NextCursor == nil; i++ {
		if m.log[i].OnPath || q.AllBranches {
			p.Items = append(p.Items, m.log[i])
		}
		if len(p.Items) == q.Limit && i+1 < len(m.log) {
			p.NextCursor = new(fmt.Sprint(i + 1))
		}
	}
	return p, nil
}

type summaries struct {
	core.SummaryStore
	*world
}

func (s summaries) List(_ context.Context, _ core.Tenant, _ core.SessionID, q core.PageQuery) (core.Page[core.Summary], error) {
	if q.Cursor == "" && len(s.versions) > 1 {
		return core.Page[core.Summary]{Items: s.versions[:1], NextCursor: new("more")}, nil
	}
	return core.Page[core.Summary]{Items: s.versions[min(1, max(len(s.versions)-1, 0)):]}, nil
}

type feed struct {
	core.Publisher
	*world
}

func (f feed) Publish(_ context.Context, events []core.Event) { f.told = append(f.told, events...) }

// words counts the words of the text and the arguments.
type words struct{ llm.TokenCounter }

func (words) Message(m core.Message) int {
	n := len(strings.Fields(m.Content))
	for _, c := range m.ToolCalls {
		n += len(strings.Fields(c.Arguments))
	}
	return n
}
