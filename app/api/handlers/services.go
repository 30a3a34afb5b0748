package handlers

import (
	"context"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/blobs"
	"bobbin/app/chat"
	"bobbin/app/chat/memories"
	"bobbin/app/chat/transfer"
	"bobbin/app/core"
	"bobbin/app/core/quota"
	"bobbin/app/purge"
)

// Services are the other parts that the handlers use. All fields are required, and all
// must be safe for concurrent use.
type Services struct {
	Chat       *chat.Service // every write goes through it
	Sessions   core.SessionStore
	Messages   core.MessageStore
	Runs       core.RunStore
	Summaries  core.SummaryStore
	Agents     core.AgentCatalog
	Graph      func(agent string) (core.GraphView, error)
	Mermaid    func(agent string) (string, error)        // a drawing of the graph
	Models     func(preferred string) []core.ModelChoice // that a message may choose; empty = the default model is preferred
	Memories   *memories.Service
	Search     core.SearchStore
	Searches   *quota.Quota // places for searches at once; nil = no limit
	Transfer   *transfer.Service
	Usage      core.UsageStore
	Files      *blobs.Service
	Blobs      core.BlobStore
	Deliveries core.DeliveryStore
	Redeliver  func(ctx context.Context, tenant core.Tenant, run core.RunID, id core.DeliveryID) (core.Delivery, error)
	Purges     *purge.Service

	// What the command line asks of the process that holds the data folder.
	ReloadAgents func(ctx context.Context) ([]core.AgentFile, error)
}

// Limits bound the open requests: streams, and requests that wait for a run.
type Limits struct {
	Wait            time.Duration // longest time that a request waits for its run
	Streams         int           // open requests of all callers
	StreamsPerOwner int           // open requests of one owner
	StreamsPerUser  int           // open requests of one end user
	Stream          StreamOptions
}

// Native answers the operations of the native API, which Register lists.
type Native struct {
	Services
	Streams *StreamLimiter
	Space   Space
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
	bind(r, ops.Purge, func(ctx context.Context, _ core.Tenant, in core.Purge) (core.PurgeReport, error) {
		return h.Purges.Purge(ctx, in)
	})
	bindRaw(r, ops.ExportAnyUser, func(c *gin.Context, in ops.OwnersExport) error {
		return h.sendExport(c, core.UserExport{Owner: in.Owner, User: in.UserID, OwnersView: true})
	})
	bind(r, ops.ReloadAgents, func(ctx context.Context, _ core.Tenant, _ struct{}) (core.Page[core.AgentFile], error) {
		files, err := h.ReloadAgents(ctx)
		return core.Page[core.AgentFile]{Items: files}, err
	})
}

// Operator admits only the command line with access to the data folder.
func Operator(c *gin.Context) error {
	if id, ok := core.IdentityFrom(c.Request.Context()); !ok || !id.Operator {
		return core.Errorf(core.ErrForbidden, "this is only for the bobbin command line on this machine, with access to the data folder")
	}
	return nil
}
