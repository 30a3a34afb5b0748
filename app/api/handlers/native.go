package handlers

import (
	"context"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

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
//
//nolint:funlen // a table
func (h Native) Register(r Router) {
	bind(r, ops.CreateSession, h.createSession)
	bind(r, ops.ListSessions, h.listSessions)
	bind(r, ops.GetSession, h.getSession)
	bind(r, ops.UpdateSession, h.updateSession)
	bind(r, ops.ArchiveSession, h.archiveSession)
	bind(r, ops.ForkSession, h.forkSession)
	bind(r, ops.GetSlackThread, h.getSlackThread)
	bind(r, ops.PutSlackThread, h.putSlackThread)
	bind(r, ops.DeleteSlackThread, h.deleteSlackThread)
	bind(r, ops.FixSlackPost, h.fixSlackPost)
	bindRaw(r, ops.ExportSession, h.exportSession)
	bindRaw(r, ops.WatchSessions, h.watchSessions)
	bindRaw(r, ops.WatchSession, h.watchSession)

	r.Handle(ops.SendMessage.Operation, h.sendMessage)
	r.Handle(ops.EditMessage.Operation, h.editMessage)
	bindRaw(r, ops.RegenerateMessage, h.regenerateMessage)
	r.Handle(ops.ImportMessages.Operation, h.importMessages)
	bindRaw(r, ops.ListMessages, h.listMessages)
	bind(r, ops.GetMessage, h.getMessage)
	bind(r, ops.DeleteMessage, h.deleteMessage)
	bind(r, ops.SelectMessage, h.selectMessage)
	bind(r, ops.PinMessage, h.pinMessage)
	bind(r, ops.UnpinMessage, h.unpinMessage)
	bind(r, ops.PutMessageMetadata, h.putMetadata)
	bind(r, ops.PutFeedback, h.putFeedback)
	bind(r, ops.DeleteFeedback, h.deleteFeedback)

	bind(r, ops.GetContext, h.getContext)
	bind(r, ops.GetContextTurns, h.getContextTurns)
	bind(r, ops.GetPrompt, h.getPrompt)
	bind(r, ops.WhereIsMessage, h.whereIsMessage)
	bind(r, ops.PlanContext, h.planContext)
	bind(r, ops.SummarizeSession, h.summarize)
	bind(r, ops.ListSummaries, h.listSummaries)
	bind(r, ops.GetSummary, h.getSummary)
	bind(r, ops.DiffSummary, h.diffSummary)
	bind(r, ops.EditSummary, h.editSummary)
	bind(r, ops.RestoreSummary, h.restoreSummary)
	bind(r, ops.ListStandingInstructions, h.listInstructions)
	bind(r, ops.AddStandingInstruction, h.addInstruction)
	bind(r, ops.EditStandingInstruction, h.editInstruction)
	bind(r, ops.RemoveStandingInstruction, h.removeInstruction)

	bind(r, ops.ListRuns, h.listRuns)
	bind(r, ops.ListAllRuns, h.listAllRuns)
	bind(r, ops.GetRun, h.getRun)
	bindRaw(r, ops.WatchRun, h.watchRun)
	bind(r, ops.CancelRun, h.cancelRun)
	bind(r, ops.DecideApproval, h.decideApproval)
	bind(r, ops.ListDeliveries, h.listDeliveries)
	bind(r, ops.ListAllDeliveries, h.listAllDeliveries)
	bind(r, ops.RetryDelivery, h.retryDelivery)

	r.Handle(ops.UploadFile.Operation, h.uploadFile)
	bind(r, ops.ListFiles, h.listFiles)
	bindRaw(r, ops.GetFile, h.getFile)
	bind(r, ops.DescribeFile, h.describeFile)
	bind(r, ops.LinkFile, h.linkFile)
	bind(r, ops.DeleteFile, h.deleteFile)

	bindRaw(r, ops.Search, h.search)
	bind(r, ops.CreateMemory, h.createMemory)
	bind(r, ops.ListMemories, h.listMemories)
	bind(r, ops.SearchMemories, h.searchMemories)
	bind(r, ops.ReindexMemories, h.reindexMemories)
	bind(r, ops.GetMemory, h.getMemory)
	bind(r, ops.UpdateMemory, h.updateMemory)
	bind(r, ops.DeleteMemory, h.deleteMemory)
	bind(r, ops.GetWebhook, h.getWebhook)
	bind(r, ops.PutWebhook, h.putWebhook)
	bind(r, ops.DeleteWebhook, h.deleteWebhook)
	bind(r, ops.GetUsage, h.getUsage)
	bind(r, ops.ListAgents, h.listAgents)
	bind(r, ops.GetAgent, h.getAgent)
	bindRaw(r, ops.GetAgentGraph, h.getAgentGraph)

	bind(r, ops.CreateDeletion, h.createDeletion)
	bind(r, ops.GetDeletion, h.getDeletion)
	bindRaw(r, ops.ExportUser, h.exportUser)
	h.registerOperator(r)
}

// registerOperator registers what the command line calls in the process that holds the data folder.
// It is not part of the public API, and API keys have no access.
func (h Native) registerOperator(r Router) {
	if h.Own.PurgeSessions != nil {
		bind(r, ops.PurgeSessions, func(c *gin.Context, in core.PurgeSessions) (core.PurgeReport, error) {
			return h.Own.PurgeSessions(c.Request.Context(), in)
		})
		bind(r, ops.PurgeUser, func(c *gin.Context, in core.PurgeUser) (core.PurgeReport, error) {
			return h.Own.PurgeUser(c.Request.Context(), in)
		})
		bindRaw(r, ops.ExportAnyUser, h.exportAnyUser)
	}
	if h.Own.ReloadAgents != nil {
		bind(r, ops.ReloadAgents, func(c *gin.Context, _ struct{}) (core.Page[core.AgentFile], error) {
			files, err := h.Own.ReloadAgents(c.Request.Context())
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
