package transfer

import (
	"context"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/llm"
	"bobbin/app/core/quota"
)

// Limits bound what callers may bring in. Sizes are bytes of UTF-8.
type Limits struct {
	Message  int   // text of a user's message
	Output   int   // text of any other message, and the arguments of its tool calls
	Shown    int   // of a tool's result in prompts; 0 = all
	Line     int   // of an import
	Import   int64 // all of an import
	Messages int   // of an import
}

// What is done at once in this process.
const (
	maxImports = 4 // one of each owner
	maxExports = 4 // of users and sessions, half of them of one owner, one of an end user
)

// Options are what a Service is made of. All but Instructions and Added are required,
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
	return &Service{
		Options: o,
		places:  quota.New(quota.Limits{Total: maxImports, Owner: 1, User: 1, What: "places for imports"}),
		memory:  quota.New(quota.Limits{Total: 2 * o.Limits.Import, Owner: o.Limits.Import, User: o.Limits.Import, What: "memory for imports"}),
		exports: quota.New(quota.Limits{Total: maxExports, Owner: maxExports / 2, User: 1, What: "places for exports"}),
	}
}

// countTokens returns the tokens of a message as prompts show it.
func (s *Service) countTokens(m core.Message) int {
	m.Content = m.Shown(true)
	return s.Counter.Message(m)
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
