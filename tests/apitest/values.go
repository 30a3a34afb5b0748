package apitest

import "bobbin/app/core"

func sampleMessages(run core.Run) []core.Message {
	question := run.UserMessage()
	question.Seq = 1
	return []core.Message{question, {
		ID: AnswerID, SessionID: SessionID, Seq: 2, ParentID: UserID, OnPath: true, Role: core.RoleAssistant, Content: "Hi <there>",
		Status: core.MessageComplete, Model: "demo", FinishReason: core.FinishStop, TokenCount: 6, Source: core.SourceAPI,
		RunID: RunID, CreatedAt: Time(),
	}}
}

// sampleEvents returns the events of the run.
func sampleEvents(run core.Run) []core.Event {
	running := run
	running.Status, running.FinishedAt, running.AnswerID, running.Usage = core.RunRunning, nil, "", core.Usage{}
	log := sampleMessages(run)
	list := []core.Event{
		newEvent(1, core.EventRunStarted, core.RunData{Run: running}),
		newEvent(2, core.EventMessageCreated, core.MessageData{Message: log[0]}),
		newEvent(0, core.EventNodeStarted, core.NodeData{Node: "llm_node", Step: 4}),
		newEvent(0, core.EventMessageStarted, core.StartedData{MessageID: AnswerID, Role: core.RoleAssistant, ParentID: UserID, Attempt: 1}),
		newEvent(0, core.EventMessageDelta, core.DeltaData{MessageID: AnswerID, ParentID: UserID, Attempt: 1, Text: "Hi "}),
		newEvent(0, core.EventMessageDelta, core.DeltaData{MessageID: AnswerID, ParentID: UserID, Attempt: 1, Offset: 3, OffsetUTF16: 3, Text: "<there>"}),
		newEvent(3, core.EventMessageCreated, core.MessageData{Message: log[1]}),
		newEvent(4, core.EventRunSucceeded, core.RunData{Run: run}),
	}
	return list
}

func newEvent(seq int64, kind core.EventType, data any) core.Event {
	e := core.NewEvent(SessionID, RunID, kind, data)
	e.Seq, e.At = seq, Time()
	return e
}

func sampleReport() core.ContextReport {
	turns := 50
	return core.ContextReport{
		TurnsLeft: &turns,
		Model:     "demo", Policy: "window", Window: 8192, WindowFrom: "model", Reserve: 1024, Usable: 7168, Trigger: 6553, Landing: 4096, Used: 120, Planned: 130, Free: 7048, MaxOutput: 1024,
		Sections:    []core.ContextPart{{Name: "system", Tokens: 100}, {Name: "tail", Tokens: 20, Messages: 2}},
		Triggers:    []core.TriggerStatus{{Name: "share", Value: 120, Threshold: 6553, Percent: 1}},
		Coverage:    core.Coverage{Messages: 2, Summarized: 1, Verbatim: 1},
		Calibration: core.CalibrationView{Factor: 1.1, Deviation: 0.1},
		Breaker:     "closed", Rungs: []string{}, Reasons: []string{"under the trigger"}, Summaries: []core.Summary{},
	}
}

func sampleAgent() core.Agent {
	return core.Agent{Name: "assistant", Description: "Helps.", Model: "demo", SystemPrompt: "You are helpful.",
		Tools: []string{"current_time"}, MaxIterations: 10, Context: core.ContextSettings{Policy: "window"}, Version: "v1"}
}
