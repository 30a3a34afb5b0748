package handlers

import (
	"cmp"
	"fmt"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// CodeOwnersOnly means that the request needs an API key; end users cannot make it.
const CodeOwnersOnly = "owners_only"

// CheckScope refuses a caller without the scope.
func CheckScope(caller core.Identity, want core.Scopes) error {
	if caller.Rights.Has(want) {
		return nil
	}
	message := fmt.Sprintf("this requires the scope %s, and the key has %s; the operator creates a key with: bobbin keys create <name> --scopes …", want, cmp.Or(caller.Rights.String(), "none"))
	if caller.User != "" {
		message = fmt.Sprintf("this requires the scope %s, and the token has %s", want, cmp.Or(caller.Rights.String(), "none"))
	}
	if want == core.CanMetrics {
		message = "this key cannot read the metrics, which cover all owners: it lacks the scope metrics; the operator can create a key with it, add the name of a configured key to metrics.keys, or set metrics.open"
	}
	return &core.Error{Kind: core.ErrForbidden, Code: "missing_scope", Message: message}
}

// OwnersOnly refuses end users, whatever scopes their token has.
func OwnersOnly(c *gin.Context) error {
	if id, _ := core.IdentityFrom(c.Request.Context()); id.User != "" {
		return ownersOnlyError("this")
	}
	return nil
}

func ownersOnlyError(what string) error {
	return &core.Error{Kind: core.ErrForbidden, Code: CodeOwnersOnly, Message: what + " is for API keys, not for end users"}
}

// checkWebhook refuses a webhook of an end user: only the owner decides where the server
// sends requests.
func checkWebhook(tenant core.Tenant, w *ops.NewWebhook) error {
	if w != nil && tenant.User != "" {
		return ownersOnlyError("webhook")
	}
	return nil
}

// pager is a pointer to a core.Page of any items.
type pager interface {
	Replace(view func(item any) (any, error)) error
}

// viewOf returns what the caller may see of an answer, or of each item of a page. It refuses a
// type that userView does not list, for all callers, so that no new type is shown to end
// users by oversight.
func viewOf(c *gin.Context, body any) (any, error) {
	if page, ok := body.(pager); ok {
		return page, page.Replace(func(item any) (any, error) { return viewOf(c, item) })
	}
	view, err := userView(body)
	if id, _ := core.IdentityFrom(c.Request.Context()); err != nil || id.User == "" {
		return body, err
	}
	if view == nil {
		return nil, ownersOnlyError("this")
	}
	return view, nil
}

// userView returns what an end user may see of an answer or of an item of it; nil = nothing.
// Webhooks, prompts and tool settings are only for the owner.
func userView(body any) (any, error) {
	switch b := body.(type) {
	case core.Session:
		return userSession(b), nil
	case core.SessionDetail:
		b.Session = userSession(b.Session)
		return b, nil
	case core.Run:
		return userRun(b), nil
	case ops.RunAnswer:
		b.Run = userRun(b.Run)
		return b, nil
	case core.AgentDetail:
		b.SystemPrompt, b.ToolSettings = "", nil
		return b, nil
	case core.PromptView, core.ModelCall, core.Delivery, core.Webhook, core.SlackThread, core.SlackThreadStatus, core.Reindexed, core.PurgeReport, core.AgentFile, core.RunList:
		return nil, nil
	case core.Message, messageAnswer, core.MessageLocation, core.Imported, core.SearchHit, core.Blob, core.BlobLink, core.Approval,
		core.ContextReport, core.ContextPlan, core.ContextTurns, core.Summary, core.SummaryDiff, core.GraphView, core.UsageReport,
		core.StandingInstruction, core.Memory, core.SavedMemory, core.MemoryMatches, core.Deletion,
		Build, readiness:
		return b, nil // all of it
	default:
		return nil, fmt.Errorf("userView does not list the type %T", body)
	}
}

func userSession(s core.Session) core.Session {
	s.Webhook, s.Slack = nil, false
	return s
}

func userRun(r core.Run) core.Run {
	r.Webhook = nil
	return r
}

// userEvent returns what an end user may see of an event, and whether it is shown at all.
// It refuses types that it does not list, and data that it cannot narrow.
func userEvent(e core.Event) (core.Event, bool, error) {
	switch e.Type {
	case core.EventDeliveryUpdated:
		return e, false, nil
	case core.EventSessionUpdated:
		if d, ok := e.Data.(core.SessionData); ok {
			d.Session, d.Slack = userSession(d.Session), core.SlackChange{}
			return e.WithData(d), true, nil
		}
	case core.EventRunStarted, core.EventRunWaiting, core.EventRunSucceeded, core.EventRunFailed, core.EventRunCanceled:
		if d, ok := e.Data.(core.RunData); ok {
			d.Run = userRun(d.Run)
			return e.WithData(d), true, nil
		}
	case core.EventRunQueued, core.EventMessageCreated, core.EventMessageUpdated, core.EventMessageDiscarded, core.EventMessagesImported,
		core.EventToolStarted, core.EventToolFinished, core.EventApprovalRequested, core.EventApprovalDecided,
		core.EventContextStarted, core.EventContextCompleted, core.EventContextFailed, core.EventContextSkipped, core.EventContextWarning,
		core.EventNodeStarted, core.EventNodeFinished, core.EventMessageStarted, core.EventMessageDelta, core.EventReasoningDelta, core.EventArgumentsDelta, core.EventSessionHead, core.EventResync:
		return e, true, nil // all of it
	default:
	}
	return e, false, fmt.Errorf("userEvent does not list the event type %s with data of type %T", e.Type, e.Data)
}
