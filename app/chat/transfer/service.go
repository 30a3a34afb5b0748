package transfer

import (
	"context"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/llm"
	"bobbin/app/core/quota"
)

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
	Imports  int   // at once in this process, one of each owner; default 4
	Exports  int   // of users and sessions, half of them of one owner, one of an end user; default 4
}

func (l Limits) withDefaults() Limits {
	for field, value := range map[*int]int{
		&l.Message: 1 << 20, &l.Output: 1 << 20, &l.Line: 8 << 20, &l.Messages: 100_000,
		&l.Metadata: 16 << 10, &l.Name: 200, &l.Imports: 4, &l.Exports: 4,
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

// Options are what a Service is made of. All but Instructions, Added and Limits are required,
// and Users where users are exported.
type Options struct {
	Sessions     core.SessionStore
	Messages     core.MessageStore
	Summaries    core.SummaryStore
	Instructions compaction.InstructionReader // nil = exports have none
	Feed         core.Publisher
	Counter      llm.TokenCounter
	Users        UserStores
	// Added is told of sessions that have new messages; it must not wait for anything.
	// Nil = nobody is.
	Added  func(tenant core.Tenant, session core.SessionID)
	Worker string // names this process (core.NewWorker)
	Limits Limits
	Stored *quota.Stored // nil = no limits
}

// Service is the use cases. Safe for concurrent use.
type Service struct {
	Options

	places  *quota.Quota // for imports at once
	memory  *quota.Quota // for their histories, in bytes
	exports *quota.Quota // places for exports at once
}

// New returns a Service.
func New(o Options) *Service {
	o.Limits = o.Limits.withDefaults()
	l := o.Limits
	return &Service{
		Options: o,
		places:  quota.New(quota.Limits{Total: int64(l.Imports), Owner: 1, User: 1, What: "places for imports"}),
		memory:  quota.New(quota.Limits{Total: 2 * l.Import, Owner: l.Import, User: l.Import, What: "memory for imports"}),
		exports: quota.New(quota.Limits{Total: int64(l.Exports), Owner: int64(max(l.Exports/2, 1)), User: 1, What: "places for exports"}),
	}
}

// storeMessages commits the messages and notifies those who watch.
func (s *Service) storeMessages(ctx context.Context, tenant core.Tenant, in core.AppendMessages) (core.Appended, error) {
	if tenant.User != "" {
		// The authors of users' messages are the user's own, or nobody's if they name another.
		for i, m := range in.Messages {
			in.Messages[i].AuthorID = ""
			if m.Role == core.RoleUser && (m.AuthorID == "" || m.AuthorID == tenant.User) {
				in.Messages[i].AuthorID = tenant.User
			}
		}
	}
	out, err := s.Messages.Append(ctx, tenant, in)
	if err != nil {
		return core.Appended{}, err
	}
	s.Feed.Publish(context.WithoutCancel(ctx), out.Events)
	if s.Added != nil && !out.Repeated {
		s.Added(tenant, in.SessionID)
	}
	return out, nil
}
