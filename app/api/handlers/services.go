package handlers

import (
	"context"
	"io"
	"iter"
	"time"

	"bobbin/app/api/sse"
	"bobbin/app/core"
)

// Services is what the handlers need of the other parts. All fields are
// required, and all must be safe for concurrent use.
type Services struct {
	Chat       chatService
	Sessions   sessionStore
	Messages   messageStore
	Runs       runStore
	Summaries  summaryStore
	Agents     agentCatalog
	Memories   memoryService
	Search     searchStore
	Transfer   transferService
	Usage      usageStore
	Files      fileService
	Blobs      blobStore
	Deliveries deliveryService
}

// Limits bound the requests that are held open.
type Limits struct {
	Wait            time.Duration // longest time that a waiting request is held
	Streams         int           // held requests of all callers together
	StreamsPerOwner int           // held requests of one owner
	StreamsPerUser  int           // held requests of one user of an owner, where the caller is one
	Stream          sse.Options
}

// chatService is the use cases behind the API; every write goes through it.
type chatService interface {
	sessionService
	messageService
	contextService
}

type sessionService interface {
	CreateSession(ctx context.Context, scope core.Scope, s core.Session) (core.Session, error)
	UpdateSession(ctx context.Context, scope core.Scope, id core.SessionID, patch core.SessionPatch) (core.Session, error)
	ArchiveSession(ctx context.Context, scope core.Scope, id core.SessionID) error
	Fork(ctx context.Context, scope core.Scope, in core.ForkSession) (core.Session, error)
}

type messageService interface {
	Send(ctx context.Context, scope core.Scope, m core.SendMessage) (core.Accepted, error)
	branchService
	runService
}

type branchService interface {
	Regenerate(ctx context.Context, scope core.Scope, r core.Regenerate) (core.Accepted, error)
	Select(ctx context.Context, scope core.Scope, session core.SessionID, id core.MessageID) (core.Session, error)
	DeleteMessage(ctx context.Context, scope core.Scope, session core.SessionID, id core.MessageID) error
	Pin(ctx context.Context, scope core.Scope, session core.SessionID, id core.MessageID, pinned bool) (core.Message, error)
}

type runService interface {
	// Wait returns when the run has ended, or waits for a person's decision.
	Wait(ctx context.Context, scope core.Scope, id core.RunID) (core.Run, error)
	Cancel(ctx context.Context, scope core.Scope, id core.RunID, wait bool) (core.Run, error)
	Decide(ctx context.Context, scope core.Scope, run core.RunID, id core.ApprovalID, d core.ApprovalDecision) (core.Approval, error)
	Watch(ctx context.Context, scope core.Scope, id core.SessionID, from core.From) iter.Seq2[core.Event, error]
	// WatchRun ends after the event that ends the run.
	WatchRun(ctx context.Context, scope core.Scope, id core.RunID, from core.From) iter.Seq2[core.Event, error]
}

type contextService interface {
	Context(ctx context.Context, scope core.Scope, id core.SessionID) (core.ContextReport, error)
	Prompt(ctx context.Context, scope core.Scope, id core.SessionID) (core.PromptView, error)
	Summarize(ctx context.Context, scope core.Scope, id core.SessionID, focus string) (core.Summary, error)
	Where(ctx context.Context, scope core.Scope, id core.SessionID, message core.MessageID) (core.MessageWhere, error)
	DryRun(ctx context.Context, scope core.Scope, id core.SessionID, ask core.DryRun) (core.ContextPlan, error)
	summaryService
}

// summaryService changes and compares versions of summaries.
type summaryService interface {
	EditSummary(ctx context.Context, scope core.Scope, id core.SessionID, edit core.SummaryEdit) (core.Summary, error)
	RestoreSummary(ctx context.Context, scope core.Scope, id core.SessionID, version int) (core.Session, error)
	// DiffSummary compares with the version before when against is below 0.
	DiffSummary(ctx context.Context, scope core.Scope, id core.SessionID, version, against int) (core.SummaryDiff, error)
}

// transferService brings messages in without running an agent, and sessions out.
type transferService interface {
	Append(ctx context.Context, scope core.Scope, id core.SessionID, m core.Message) (stored core.Message, repeated bool, err error)
	Import(ctx context.Context, scope core.Scope, in core.ImportMessages) (core.Imported, error)
	Export(ctx context.Context, scope core.Scope, session core.Session, format core.ExportFormat, w io.Writer) error
}

type sessionStore interface {
	Get(ctx context.Context, scope core.Scope, id core.SessionID) (core.Session, error)
	List(ctx context.Context, scope core.Scope, q core.SessionQuery) (core.Page[core.Session], error)
}

type messageStore interface {
	Get(ctx context.Context, scope core.Scope, session core.SessionID, id core.MessageID) (core.Message, error)
	List(ctx context.Context, scope core.Scope, session core.SessionID, q core.MessageQuery) (core.Page[core.Message], error)
}

// searchStore finds messages by their words.
type searchStore interface {
	Messages(ctx context.Context, scope core.Scope, q core.SearchQuery) (core.SearchPage, error)
}

type runStore interface {
	Get(ctx context.Context, scope core.Scope, id core.RunID) (core.Run, error)
	List(ctx context.Context, scope core.Scope, session core.SessionID, q core.PageQuery) (core.Page[core.Run], error)
	Pending(ctx context.Context, scope core.Scope, session core.SessionID) ([]core.Run, error)
}

type summaryStore interface {
	Get(ctx context.Context, scope core.Scope, session core.SessionID, version int) (core.Summary, error)
	List(ctx context.Context, scope core.Scope, session core.SessionID, q core.PageQuery) (core.Page[core.Summary], error)
}

// memoryService is the use cases of memories.
type memoryService interface {
	Create(ctx context.Context, scope core.Scope, m core.Memory) (core.SavedMemory, error)
	Get(ctx context.Context, scope core.Scope, id core.MemoryID) (core.Memory, error)
	List(ctx context.Context, scope core.Scope, q core.PageQuery) (core.Page[core.Memory], error)
	Update(ctx context.Context, scope core.Scope, m core.Memory) (core.SavedMemory, error)
	Delete(ctx context.Context, scope core.Scope, id core.MemoryID) error
	Search(ctx context.Context, scope core.Scope, q core.MemorySearch) (core.MemoryMatches, error)
	Reindex(ctx context.Context, scope core.Scope, r core.Reindex) (core.Reindexed, error)
}

// deliveryService knows what was sent to webhooks, and sends it again.
type deliveryService interface {
	List(ctx context.Context, scope core.Scope, run core.RunID) ([]core.Delivery, error)
	Retry(ctx context.Context, scope core.Scope, run core.RunID, id core.DeliveryID) (core.Delivery, error)
}

type usageStore interface {
	SessionTotal(ctx context.Context, scope core.Scope, session core.SessionID) (core.UsageTotal, error)
	Usage(ctx context.Context, scope core.Scope, q core.UsageQuery) (core.UsageReport, error)
}

// agentCatalog is the configured agents. The methods with a name return
// core.ErrNotFound for one that does not exist.
type agentCatalog interface {
	List() []core.Agent
	Get(name string) (core.Agent, error)
	Graph(name string) (core.GraphView, error)
	Mermaid(name string) (string, error)
}
