package transfer

import (
	"cmp"
	"context"
	"iter"

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

// Append puts one message at the end of the session without running the agent, and
// returns it as it is in the log. A client_message_id that the session knows gives
// the message of the first time; repeated says so.
//
// ErrInvalid says what is wrong with which field. ErrConflict is for a session that
// is answering a message, or archived; ErrUnprocessable for a tool result whose call
// is not the last that was said.
func (s *Service) Append(ctx context.Context, tenant core.Tenant, id core.SessionID, m core.Message) (stored core.Message, repeated bool, err error) {
	if size := len(core.CleanText(m.Content)); size > s.Limits.maxContent(m.Role) {
		return core.Message{}, false, core.Errorf(core.ErrTooLarge,
			"the message has %d bytes, at most %d are allowed: shorten it or send it in parts", size, s.Limits.maxContent(m.Role))
	}
	m.Role, m.Source = cmp.Or(m.Role, core.RoleUser), cmp.Or(m.Source, core.SourceAPI)
	m, err = s.checkHistory(m)
	if err != nil {
		return core.Message{}, false, err
	}
	if err := s.Stored.Admit(ctx, tenant, m.StoredBytes()); err != nil {
		return core.Message{}, false, err
	}
	m.TokenCount = s.countTokens(m)
	out, err := s.storeMessages(ctx, tenant, core.AppendMessages{SessionID: id, Messages: []core.Message{m}})
	if err != nil {
		return core.Message{}, false, err
	}
	return out.Messages[0], out.Repeated, nil
}

// How many messages, and bytes of them, one transaction of AppendHistory stores.
const (
	historyRows  = 200
	historyBytes = 1 << 20
)

// AppendHistory stores the messages of a history that a client has and the log has not: at the end
// of the session, or on a branch as in.Branch says. It goes through them twice, and no more than one
// transaction stores are in memory. It returns the seq of the last one. If it fails, the messages before
// are stored, and they are the end of the current path. Errors as of Append.
func (s *Service) AppendHistory(ctx context.Context, tenant core.Tenant, in core.AppendMessages, history iter.Seq[core.Message]) (last int64, err error) {
	more, size := int64(0), 0
	for m := range history {
		m, err := s.checkHistory(m)
		if err != nil {
			return 0, err
		}
		more += m.StoredBytes()
	}
	if err := s.Stored.Admit(ctx, tenant, more); err != nil {
		return 0, err
	}
	_, repeated, err := core.CommittedResult(ctx)
	if err != nil {
		return 0, err
	}
	store := func(ctx context.Context) error {
		if _, keyed := core.KeyedWorkFrom(ctx); len(in.Messages) == 0 || repeated && !keyed {
			return nil
		}
		stored, err := s.storeMessages(ctx, tenant, in)
		in.Branch, last = nil, stored.LastSeq
		return err
	}
	for m := range history {
		m, err := s.checkHistory(m)
		if err != nil {
			return 0, err
		}
		if size += len(m.Content); len(in.Messages) == historyRows || size > historyBytes {
			if err := store(core.WithoutKeyedWork(ctx)); err != nil {
				return 0, err
			}
			in.Messages = nil
			size = len(m.Content)
		}
		m.TokenCount = s.countTokens(m)
		in.Messages = append(in.Messages, m)
	}
	err = store(ctx) // the last step is the result of a request with a key
	return last, err
}

// checkHistory returns a message as it is stored.
func (s *Service) checkHistory(m core.Message) (core.Message, error) {
	m, faults := s.Limits.checkMessage(m)
	return m, faults.Err()
}
