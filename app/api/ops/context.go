package ops

import "bobbin/app/core"

// Plan asks for a preview of the next prompt.
type Plan struct {
	InSession
	core.PlanPreview
	Parts []FilePart `json:"parts" doc:"The files of the next message."`
}

// Summarize asks for a summary.
type Summarize struct {
	InSession
	Focus string `json:"focus" max:"2000" doc:"What the summary must keep."`
}

// InSummary are the fields of operations on a version of a summary.
type InSummary struct {
	InSession
	Version int `path:"version,summary version" min:"1" max:"2147483647" doc:"The version; 1 is the first." example:"1"`
}

// SummaryDiff asks for the differences of two versions.
type SummaryDiff struct {
	InSummary
	Against *int `query:"against" min:"0" max:"2147483647" doc:"The other version; 0 = none; by default the previous one."`
}

// SummaryRestore asks for an earlier version.
type SummaryRestore struct {
	InSession
	Version int `path:"version,summary version" min:"0" max:"2147483647" doc:"The version; 0 = no summary." example:"1"`
}

// SummaryEdit replaces the text of the active summary.
type SummaryEdit struct {
	InSession
	core.SummaryEdit
}

// NewInstruction is a standing instruction to add.
type NewInstruction struct {
	InSession
	Text string `json:"text" required:"true" min:"1" doc:"At most 500 characters."`
}

// InInstruction are the fields of operations on a standing instruction.
type InInstruction struct {
	InSession
	InstructionID core.InstructionID `path:"iid,standing instruction" doc:"The instruction." example:"01920000-0000-7000-8000-000000000061"`
}

// InstructionEdit replaces the text of a standing instruction.
type InstructionEdit struct {
	InInstruction
	Text string `json:"text" required:"true" min:"1" doc:"At most 500 characters."`
}

// The operations on what prompts are made of.
//
//nolint:gochecknoglobals // a constant table
var (
	GetContext = describe[InSession, core.ContextReport](Operation{
		ID: "getContext", Route: "GET /api/v1/sessions/{id}/context", Tag: "Context", Scope: core.CanRead,
		Summary: "Show the plan for the next turn", Returns: "The plan, in the model's own tokens as far as they are known",
	})
	GetContextTurns = describe[InSession, core.ContextTurns](Operation{
		ID: "getContextTurns", Route: "GET /api/v1/sessions/{id}/context/turns", Tag: "Context", Scope: core.CanRead, Returns: "The places and the turns",
		Summary: "Get the places of all messages, and the sizes of earlier prompts",
		Description: "`ranges`: where the messages of the current path are in the next prompt, as `placement` of a single message; neighbors of the same place are one range, and messages of other branches " +
			"that lie between them do not count. At most 1,000, the newest. `turns`: the last prompt of each of the newest 240 runs, oldest first; imported messages have none.",
	})
	GetPrompt = describe[InSession, core.PromptView](Operation{
		ID: "getPrompt", Route: "GET /api/v1/sessions/{id}/context/prompt", Tag: "Context", Scope: core.CanRead, OwnersOnly: true, Returns: "The prompt",
		Summary: "Show the next prompt",
	})
	WhereIsMessage = describe[InMessage, core.MessageLocation](Operation{
		ID: "whereIsMessage", Route: "GET /api/v1/sessions/{id}/context/messages/{mid}", Tag: "Context", Scope: core.CanRead, Returns: "The location of the message",
		Summary: "Show whether and how a message is in the next prompt", Description: "For any message of the session, on any branch, including deleted ones.",
	})
	PlanContext = describe[Plan, core.ContextPlan](Operation{
		ID: "planContext", Route: "POST /api/v1/sessions/{id}/context/plan", Tag: "Context", Scope: core.CanRead, Returns: "The plan",
		Summary: "Preview the plan of the next prompt", Example: `{"model": "demo", "policy": "budget", "content": "And then?"}`,
		Description: "A dry run with another agent, model, policy or message: it changes nothing and calls no model. The plan is that of a model call, with each summary at its maximum length. " +
			"If nothing can be sent, the answer has `floor` instead of an error.",
	})
	SummarizeSession = describe[Summarize, core.Summary](Operation{
		ID: "summarize", Route: "POST /api/v1/sessions/{id}/summarize", Tag: "Context", Scope: core.CanWrite, Returns: "The new summary", CallsModel: true,
		Summary: "Summarize now", Example: `{"focus": "prices and dates"}`,
		Description: "A summary that takes several model calls gets a version for each. The answer is the last version, or after `limits.background_summary_time` the latest: then through_seq is before " +
			"ordered_seq, and the rest continues in the background. 409 while a summary is in progress, 422 if there is nothing to summarize, 503 if the model failed before the first of several versions.",
	})
	ListSummaries = describe[SessionPage, core.Page[core.Summary]](Operation{
		ID: "listSummaries", Route: "GET /api/v1/sessions/{id}/summaries", Tag: "Context", Scope: core.CanRead, Returns: "A page of summaries",
		Summary: "List the versions of a session's summary, newest first",
	})
	GetSummary = describe[InSummary, core.Summary](Operation{
		ID: "getSummary", Route: "GET /api/v1/sessions/{id}/summaries/{version}", Tag: "Context", Scope: core.CanRead, Returns: "The summary",
		Summary: "Get a version of the summary",
	})
	DiffSummary = describe[SummaryDiff, core.SummaryDiff](Operation{
		ID: "diffSummary", Route: "GET /api/v1/sessions/{id}/summaries/{version}/diff", Tag: "Context", Scope: core.CanRead, Returns: "The differences, in the order of the text",
		Summary: "Compare two versions of the summary",
	})
	EditSummary = describe[SummaryEdit, core.Summary](Operation{
		ID: "editSummary", Route: "PUT /api/v1/sessions/{id}/summary", Tag: "Context", Scope: core.CanWrite, Returns: "The new version",
		Summary: "Edit the active summary", Example: `{"content": "They greeted each other.", "version": 1}`,
		Description: "Creates a new version that covers the same messages. The same text changes nothing. 422 if there is no summary, or if the text is empty or longer than the policy and the model allow; " +
			"409 if `version` is not the active one.",
	})
	RestoreSummary = describe[SummaryRestore, core.Session](Operation{
		ID: "restoreSummary", Route: "POST /api/v1/sessions/{id}/summaries/{version}/restore", Tag: "Context", Scope: core.CanWrite, Returns: "The session",
		Summary: "Restore an earlier version of the summary",
		Description: "Creates a new version with the same text and coverage: the messages after it are sent verbatim again. Restoring the active version changes nothing. 422 for versions that cannot be " +
			"restored: of another branch, erased, only prepared, or of one run. 409 if the current run answers a message that the version covers.",
	})
	ListStandingInstructions = describe[SessionPage, core.Page[core.StandingInstruction]](Operation{
		ID: "listStandingInstructions", Route: "GET /api/v1/sessions/{id}/standing-instructions", Tag: "Context", Scope: core.CanRead, Returns: "A page of standing instructions",
		Summary:     "List what users set for the whole conversation, newest first",
		Description: "Those that were recognized in users' messages on the current branch, and those that were added by hand. `GET …/context` says where the next prompt has them.",
	})
	AddStandingInstruction = describe[NewInstruction, core.StandingInstruction](Operation{
		ID: "addStandingInstruction", Route: "POST /api/v1/sessions/{id}/standing-instructions", Tag: "Context", Scope: core.CanWrite, Created: true, Returns: "The instruction",
		Summary: "Add a standing instruction", Example: `{"text": "Always answer in Dutch."}`,
		Description: "It stands in every later prompt of the conversation, as a text of the user. One of the same topic that stood before is replaced. " +
			"422 if the text is empty or longer than 500 characters, or if 200 were added already.",
	})
	EditStandingInstruction = describe[InstructionEdit, core.StandingInstruction](Operation{
		ID: "editStandingInstruction", Route: "PATCH /api/v1/sessions/{id}/standing-instructions/{iid}", Tag: "Context", Scope: core.CanWrite, Returns: "The instruction",
		Summary: "Edit a standing instruction", Example: `{"text": "Always answer in Dutch."}`,
		Description: "The message in which it was recognized stays as it is. 422 if the instruction no longer stands.",
	})
	RemoveStandingInstruction = describe[InInstruction, Nothing](Operation{
		ID: "removeStandingInstruction", Route: "DELETE /api/v1/sessions/{id}/standing-instructions/{iid}", Tag: "Context", Scope: core.CanWrite, Returns: "Removed",
		Summary: "Remove a standing instruction", Description: "The message in which it was recognized stays: while the prompt has that message, the model reads it there.",
	})
)
