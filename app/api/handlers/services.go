package handlers

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
	"bobbin/app/core/quota"
)

// Services are the other parts that the handlers use. All fields are required, and all
// must be safe for concurrent use.
type Services struct {
	Chat       chatService
	Sessions   core.SessionStore
	Messages   core.MessageStore
	Runs       core.RunStore
	Summaries  core.SummaryStore
	Agents     core.AgentCatalog
	Graph      func(agent string) (core.GraphView, error)
	Mermaid    func(agent string) (string, error)        // a drawing of the graph
	Models     func(preferred string) []core.ModelChoice // that a message may choose; empty = the default model is preferred
	Memories   memoryService
	Search     core.SearchStore
	Searches   *quota.Quota // places for searches at once; nil = no limit
	Transfer   transferService
	Usage      core.UsageStore
	Files      fileService
	Blobs      core.BlobStore
	Deliveries core.DeliveryStore
	Redeliver  func(ctx context.Context, tenant core.Tenant, run core.RunID, id core.DeliveryID) (core.Delivery, error)
	Deletions  deletionService
}

// Limits bound the open requests: streams, and requests that wait for a run.
type Limits struct {
	Wait            time.Duration // longest time that a request waits for its run
	Streams         int           // open requests of all callers
	StreamsPerOwner int           // open requests of one owner
	StreamsPerUser  int           // open requests of one end user
	Stream          StreamOptions
}

// chatService is the use cases behind the API; every write goes through it.
type chatService interface {
	// Sessions.

	CreateSession(ctx context.Context, tenant core.Tenant, s core.Session) (core.Session, error)
	// OpenSession returns the session of the alias, created if there is none.
	OpenSession(ctx context.Context, tenant core.Tenant, a core.Alias, s core.Session) (core.Session, error)
	UpdateSession(ctx context.Context, tenant core.Tenant, id core.SessionID, patch core.SessionPatch) (core.Session, error)
	Fork(ctx context.Context, tenant core.Tenant, in core.ForkSession) (core.Session, error)

	// Messages and branches.

	Send(ctx context.Context, tenant core.Tenant, m core.SendMessage) (core.Accepted, error)
	Regenerate(ctx context.Context, tenant core.Tenant, r core.Regenerate) (core.Accepted, error)
	Select(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.MessageID) (core.Session, error)
	DeleteMessage(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.MessageID) error
	Revise(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.MessageID, content string) (core.Message, error)
	Pin(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.MessageID, pinned bool) (core.Message, error)
	UpdateMessage(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.MessageID, p core.MessagePatch) (core.Message, error)

	// Runs.

	// Wait returns when the run has ended or waits for an approval.
	Wait(ctx context.Context, tenant core.Tenant, run core.Run) (core.Outcome, error)
	Cancel(ctx context.Context, tenant core.Tenant, id core.RunID, wait bool) (core.Run, error)
	Decide(ctx context.Context, tenant core.Tenant, run core.RunID, id core.ApprovalID, d core.ApprovalDecision) (core.Approval, error)
	// AnswerCalls gives calls of a client's tools their results.
	AnswerCalls(ctx context.Context, tenant core.Tenant, session core.SessionID, results []core.CallResult) (core.Run, error)
	WatchHeads(ctx context.Context, tenant core.Tenant) iter.Seq2[core.Event, error]
	Watch(ctx context.Context, tenant core.Tenant, id core.SessionID, from core.Cursor) iter.Seq2[core.Event, error]
	// WatchRun ends after the event that ends the run.
	WatchRun(ctx context.Context, tenant core.Tenant, id core.RunID, from core.Cursor) iter.Seq2[core.Event, error]
	// WatchAccepted is WatchRun for a run that Send or Regenerate has just returned.
	WatchAccepted(ctx context.Context, tenant core.Tenant, run core.Run) iter.Seq2[core.Event, error]

	// Context and summaries.

	Context(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.ContextReport, error)
	Prompt(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.PromptView, error)
	Summarize(ctx context.Context, tenant core.Tenant, id core.SessionID, focus string) (core.Summary, error)
	Where(ctx context.Context, tenant core.Tenant, id core.SessionID, message core.MessageID) (core.MessageLocation, error)
	Turns(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.ContextTurns, error)
	DryRun(ctx context.Context, tenant core.Tenant, id core.SessionID, ask core.PlanPreview) (core.ContextPlan, error)
	EditSummary(ctx context.Context, tenant core.Tenant, id core.SessionID, edit core.SummaryEdit) (core.Summary, error)
	Restore(ctx context.Context, tenant core.Tenant, id core.SessionID, version int) (core.Session, error)
	Diff(ctx context.Context, tenant core.Tenant, id core.SessionID, version, against int) (core.SummaryDiff, error)

	// What users set for whole conversations.

	StandingInstructions(ctx context.Context, tenant core.Tenant, id core.SessionID, q core.PageQuery) (core.Page[core.StandingInstruction], error)
	AddInstruction(ctx context.Context, tenant core.Tenant, session core.SessionID, text string) (core.StandingInstruction, error)
	EditInstruction(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.InstructionID, text string) (core.StandingInstruction, error)
	RemoveInstruction(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.InstructionID) error

	// Default webhooks of owners.

	DefaultWebhook(ctx context.Context, tenant core.Tenant) (core.Webhook, error)
	SetDefaultWebhook(ctx context.Context, tenant core.Tenant, hook core.Webhook) (core.Webhook, error)
	DeleteDefaultWebhook(ctx context.Context, tenant core.Tenant) error

	// Threads of Slack.

	SlackThread(ctx context.Context, tenant core.Tenant, session core.SessionID) (core.SlackThreadStatus, error)
	AttachSlack(ctx context.Context, tenant core.Tenant, t core.SlackThread) (core.SlackThread, error)
	DetachSlack(ctx context.Context, tenant core.Tenant, session core.SessionID) error
	FixSlackPost(ctx context.Context, tenant core.Tenant, fix core.SlackPostFix) error
}

// transferService adds messages without running an agent, and exports data.
type transferService interface {
	Append(ctx context.Context, tenant core.Tenant, id core.SessionID, m core.Message) (stored core.Message, repeated bool, err error)
	AppendHistory(ctx context.Context, tenant core.Tenant, in core.AppendMessages, history iter.Seq[core.Message]) (last int64, err error)
	Import(ctx context.Context, tenant core.Tenant, in core.ImportMessages) (core.Imported, error)
	Export(ctx context.Context, tenant core.Tenant, session core.Session, format core.ExportFormat, w io.Writer) error
	ExportUser(ctx context.Context, caller core.Tenant, in core.UserExport, w io.Writer) error
}

// memoryService manages memories.
type memoryService interface {
	Create(ctx context.Context, tenant core.Tenant, m core.Memory) (core.SavedMemory, error)
	Get(ctx context.Context, tenant core.Tenant, id core.MemoryID) (core.Memory, error)
	List(ctx context.Context, tenant core.Tenant, q core.PageQuery) (core.Page[core.Memory], error)
	Update(ctx context.Context, tenant core.Tenant, m core.Memory) (core.SavedMemory, error)
	Delete(ctx context.Context, tenant core.Tenant, id core.MemoryID) error
	Search(ctx context.Context, tenant core.Tenant, q core.MemorySearch) (core.MemoryMatches, error)
	Reindex(ctx context.Context, tenant core.Tenant, r core.Reindex) (core.Reindexed, error)
}

// deletionService permanently deletes sessions and users. An accepted deletion survives
// restarts.
type deletionService interface {
	Session(ctx context.Context, tenant core.Tenant, id core.SessionID, slackPosts bool) (core.Deletion, error)
	User(ctx context.Context, tenant core.Tenant, user string, slackPosts bool) (core.Deletion, error)
	Get(ctx context.Context, tenant core.Tenant, id core.DeletionID) (core.Deletion, error)
}

// Native answers the operations of the native API, which Register lists.
type Native struct {
	Services
	Streams *StreamLimiter
	Space   Space

	Own OperatorOperations
}

// OperatorOperations are what the command line asks of the process that holds the data folder; nil =
// there is no such operation.
type OperatorOperations struct {
	PurgeSessions func(ctx context.Context, in core.PurgeSessions) (core.PurgeReport, error)
	PurgeUser     func(ctx context.Context, in core.PurgeUser) (core.PurgeReport, error)
	ReloadAgents  func(ctx context.Context) ([]core.AgentFile, error)
}

// Register registers every operation. Those given to Handle read their bodies themselves.
func (h Native) Register(r Router) {
	h.registerSessions(r)
	h.registerMessages(r)
	h.registerContext(r)
	h.registerSummaries(r)
	h.registerRuns(r)
	h.registerFiles(r)
	h.registerMemories(r)
	h.registerOwner(r)
	h.registerOperator(r)
}

// registerOperator registers what the command line calls in the process that holds the data folder.
// It is not part of the public API, and API keys have no access.
func (h Native) registerOperator(r Router) {
	if h.Own.PurgeSessions != nil {
		bind(r, ops.PurgeSessions, func(ctx context.Context, _ core.Tenant, in core.PurgeSessions) (core.PurgeReport, error) {
			return h.Own.PurgeSessions(ctx, in)
		})
		bind(r, ops.PurgeUser, func(ctx context.Context, _ core.Tenant, in core.PurgeUser) (core.PurgeReport, error) {
			return h.Own.PurgeUser(ctx, in)
		})
		bindRaw(r, ops.ExportAnyUser, func(c *gin.Context, in ops.OwnersExport) error {
			return h.sendExport(c, core.UserExport{Owner: in.Owner, User: in.UserID, OwnersView: true})
		})
	}
	if h.Own.ReloadAgents != nil {
		bind(r, ops.ReloadAgents, func(ctx context.Context, _ core.Tenant, _ struct{}) (core.Page[core.AgentFile], error) {
			files, err := h.Own.ReloadAgents(ctx)
			return core.Page[core.AgentFile]{Items: files}, err
		})
	}
}

// Operator admits only the command line with access to the data folder.
func Operator(c *gin.Context) error {
	if id, ok := core.IdentityFrom(c.Request.Context()); !ok || !id.Operator {
		return core.Errorf(core.ErrForbidden, "this is only for the bobbin command line on this machine, with access to the data folder")
	}
	return nil
}
