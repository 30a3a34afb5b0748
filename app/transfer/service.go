package transfer

import (
	"context"
	"time"

	"bobbin/app/core"
)

// sessionStore finds sessions.
type sessionStore interface {
	Get(ctx context.Context, scope core.Scope, id core.SessionID) (core.Session, error)
}

// messageStore reads and extends the logs of sessions.
type messageStore interface {
	Append(ctx context.Context, scope core.Scope, in core.AppendMessages) (core.Appended, error)
	List(ctx context.Context, scope core.Scope, session core.SessionID, q core.MessageQuery) (core.Page[core.Message], error)
}

// summaryStore reads the versions of a session's summary, newest first.
type summaryStore interface {
	List(ctx context.Context, scope core.Scope, session core.SessionID, q core.PageQuery) (core.Page[core.Summary], error)
}

// publisher tells those who watch what was committed.
type publisher interface {
	Publish(ctx context.Context, events []core.Event)
}

// counter counts the tokens of a message for the log.
type counter interface {
	Message(m core.Message) int
}

// Limits bound what callers may bring in. Sizes are bytes of UTF-8; zero values
// mean the defaults.
type Limits struct {
	Message  int   // text of a user's message; default 1 MiB
	Output   int   // text of any other message, and the arguments of its tool calls; default 1 MiB
	Line     int   // of an import; default 8 MiB
	Import   int64 // all of an import; default 64 MiB
	Messages int   // of an import; default 100,000
	Metadata int   // default 16 KiB
	Name     int   // names and ids that callers choose; default 200
	Imports  int   // at once in this process; default 2
}

func (l Limits) withDefaults() Limits {
	for field, value := range map[*int]int{
		&l.Message: 1 << 20, &l.Output: 1 << 20, &l.Line: 8 << 20, &l.Messages: 100_000,
		&l.Metadata: 16 << 10, &l.Name: 200, &l.Imports: 2,
	} {
		if *field <= 0 {
			*field = value
		}
	}
	if l.Import <= 0 {
		l.Import = 64 << 20
	}
	return l
}

// Options are what a Service is made of. All but Added and Limits are required.
type Options struct {
	Sessions  sessionStore
	Messages  messageStore
	Summaries summaryStore
	Feed      publisher
	Counter   counter
	// Added is told of sessions that have new messages; it must not wait for anything.
	// Nil = nobody is.
	Added  func(scope core.Scope, session core.SessionID)
	Limits Limits
}

// Service is the use cases. Safe for concurrent use.
type Service struct {
	sessions  sessionStore
	messages  messageStore
	summaries summaryStore
	feed      publisher
	counter   counter
	added     func(scope core.Scope, session core.SessionID)
	limits    Limits
	imports   chan struct{} // a place for each import at once
}

// New returns a Service.
func New(o Options) *Service {
	limits := o.Limits.withDefaults()
	return &Service{
		sessions: o.Sessions, messages: o.Messages, summaries: o.Summaries, feed: o.Feed, counter: o.Counter,
		added: o.Added, limits: limits, imports: make(chan struct{}, limits.Imports),
	}
}

// How long the transactions may take that nobody who goes away breaks off, so that
// it never remains unknown what came of them.
const (
	appendTime = 15 * time.Second
	importTime = 5 * time.Minute
)

// store commits the messages and tells those who watch.
func (s *Service) store(ctx context.Context, scope core.Scope, in core.AppendMessages, most time.Duration) (core.Appended, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	out, err := s.messages.Append(ctx, scope, in)
	if err != nil {
		return core.Appended{}, err
	}
	s.feed.Publish(ctx, out.Events)
	if s.added != nil && !out.Repeated {
		s.added(scope, in.SessionID)
	}
	return out, nil
}
