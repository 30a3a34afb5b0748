package ops

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"bobbin/app/core"
)

// InRun are the fields of operations on a run.
type InRun struct {
	RunID core.RunID `path:"id,run" doc:"The run." example:"01a1fd1c-7a10-7000-8000-000000000002"`
}

// SessionPage asks for a page of a list of a session.
type SessionPage struct {
	InSession
	core.PageQuery
}

// Resume says where a stream of events continues; the header Last-Event-ID says it as well.
type Resume struct {
	After *int64 `query:"after" min:"0" doc:"Number of the last event that the client has; 0 = from the first. For clients that cannot set headers."`
}

// Cancel asks to cancel a run.
type Cancel struct {
	InRun
	Wait bool `json:"wait" default:"false" doc:"Wait until the run has ended."`
}

// Decision is the answer to an approval: Decision, Respond or Result.
type Decision struct {
	InRun
	ApprovalID core.ApprovalID `path:"approval,approval" doc:"The approval." example:"01a1fd1c-7a10-7000-8000-000000000009"`
	Decision   string          `json:"decision" doc:"'approve' or 'deny'. A 'client_tool' can only be denied."`
	Arguments  json.RawMessage `json:"arguments" schema:"Object" doc:"With 'approve': the tool starts with these arguments instead of the model's."`
	Respond    string          `json:"respond" doc:"Answers in place of the tool, which does not start: the model reads this text as its result."`
	Result     *string         `json:"result" doc:"The result of a 'client_tool'."`
	IsError    bool            `json:"is_error" doc:"With 'result': the call failed."`
	Comment    string          `json:"comment" max:"2000" doc:"For a denial the model gets it: not approved: …."`
}

// InDelivery are the fields of operations on a webhook delivery.
type InDelivery struct {
	InRun
	DeliveryID core.DeliveryID `path:"did,delivery" doc:"The delivery." example:"01a1fd1c-7a10-7000-8000-000000000003"`
}

// RunEvents asks for the events of a run.
type RunEvents struct {
	InRun
	Resume
}

// SessionEvents asks for the events of a session.
type SessionEvents struct {
	InSession
	Resume
}

// The operations on runs. The document describes streams by hand.
//
//nolint:gochecknoglobals // a constant table
var (
	WatchSessions = describe[struct{}, Nothing](Operation{ID: "watchSessions", Route: "GET /api/v1/events", Scope: core.CanRead})
	WatchSession  = describe[SessionEvents, Nothing](Operation{ID: "watchSession", Route: "GET /api/v1/sessions/{id}/events", Scope: core.CanRead})
	WatchRun      = describe[RunEvents, Nothing](Operation{ID: "watchRun", Route: "GET /api/v1/runs/{id}/events", Scope: core.CanRead})
	ListRuns      = describe[SessionPage, core.Page[core.Run]](Operation{
		ID: "listRuns", Route: "GET /api/v1/sessions/{id}/runs", Tag: "Runs", Scope: core.CanRead, Returns: "A page of runs",
		Summary: "List a session's runs, newest first",
	})
	ListAllRuns = describe[core.RunQuery, core.RunList](Operation{
		ID: "listAllRuns", Route: "GET /api/v1/runs", Tag: "Runs", Scope: core.CanRead, OwnersOnly: true, Returns: "A page of runs",
		Summary: "List the runs of all sessions", Description: "Without their messages and reports; those of temporary sessions as well. The totals are of all pages.",
	})
	GetRun = describe[InRun, core.Run](Operation{
		ID: "getRun", Route: "GET /api/v1/runs/{id}", Tag: "Runs", Scope: core.CanRead, Returns: "The run",
		Summary: "Get a run",
	})
	ListModelCalls = describe[InRun, core.Page[core.ModelCall]](Operation{
		ID: "listModelCalls", Route: "GET /api/v1/runs/{id}/calls", Tag: "Runs", Scope: core.CanRead, OwnersOnly: true, Returns: "All model calls",
		Summary: "List the model calls of a run", Description: "In the order in which they ended: its answers, and the summaries that it waited for.",
	})
	CancelRun = until(describe[Cancel, core.Run](Operation{
		ID: "cancelRun", Route: "POST /api/v1/runs/{id}/cancel", Tag: "Runs", Scope: core.CanWrite, Location: "/api/v1/runs/", Returns: "The ended run", Accepted: "The run, which has not ended yet",
		Summary: "Cancel a run", Description: "The partial answer is kept. May be repeated.", Example: `{"wait": true}`,
	}), func(r core.Run) bool { return r.Status.Ended() })
	DecideApproval = describe[Decision, core.Approval](Operation{
		ID: "decideApproval", Route: "POST /api/v1/runs/{id}/approvals/{approval}", Tag: "Runs", Scope: core.CanWrite, Returns: "The approval",
		Summary: "Decide about a tool call, or answer it", Example: `{"decision": "deny", "comment": "Ask me again tomorrow."}`,
		Description: "For a run that is `waiting`. One answer: `decision`, `respond` or `result`. The first one wins; the same one may be repeated, a different one is a conflict that names the decision. " +
			"The run resumes after its last decision.",
	})
	ListDeliveries = describe[InRun, core.Page[core.Delivery]](Operation{
		ID: "listDeliveries", Route: "GET /api/v1/runs/{id}/deliveries", Tag: "Runs", Scope: core.CanRead, OwnersOnly: true, Returns: "All deliveries",
		Summary: "List the webhook deliveries of a run", Description: "Oldest first.",
	})
	ListAllDeliveries = describe[core.DeliveryQuery, core.Page[core.Delivery]](Operation{
		ID: "listAllDeliveries", Route: "GET /api/v1/deliveries", Tag: "Runs", Scope: core.CanRead, OwnersOnly: true, Returns: "A page of deliveries",
		Summary: "List the webhook deliveries of all runs", Description: "Newest first.",
	})
	RetryDelivery = until(describe[InDelivery, core.Delivery](Operation{
		ID: "retryDelivery", Route: "POST /api/v1/runs/{id}/deliveries/{did}/retry", Tag: "Runs", Scope: core.CanWrite, OwnersOnly: true, Accepted: "The delivery",
		Summary: "Retry a webhook delivery", Description: "The delivery, in any state, is due immediately and gets all its attempts again. The receiver gets the same `webhook-id`. 409 while it is being delivered.",
	}), func(core.Delivery) bool { return false })
)

// ExplainType says what a value should have been.
func ExplainType(err error) string {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return strings.Replace(err.Error(), "json: unknown", "has the unknown", 1) // or of our own UnmarshalJSON methods
	}
	want := map[reflect.Kind]string{
		reflect.String: "a string", reflect.Bool: "true or false", reflect.Slice: "a list",
		reflect.Int: "a whole number", reflect.Int32: "a whole number", reflect.Int64: "a whole number", reflect.Float32: "a number", reflect.Float64: "a number",
	}[wrong.Type.Kind()]
	if want == "" {
		want = "an object"
	}
	return strings.TrimSpace(fmt.Sprintf("%s must be %s, not %s", strings.TrimPrefix(wrong.Field, "ModelParameters."), want, wrong.Value))
}
