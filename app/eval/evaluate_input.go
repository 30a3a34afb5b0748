package eval

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"bobbin/app/agents"
	"bobbin/app/agents/tools"
	"bobbin/app/chat/transfer"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/wire"
)

// readConversation reads the conversation.
func (v *evaluator) readConversation(ctx context.Context) ([]core.Message, error) {
	reader := transfer.New(transfer.Options{Counter: v.count, Limits: wire.TransferLimits(v.cfg)})
	messages, about, err := reader.Read(ctx, core.ImportMessages{Body: bytes.NewReader(v.Data), Format: v.Format})
	if err != nil {
		return nil, err
	}
	v.talk = Split(messages)
	if len(v.talk.Turns) == 0 {
		return nil, core.Errorf(core.ErrInvalid, "the conversation has no message of a user: there is nothing to replay")
	}
	if most := v.talk.Iterations(); most > maxReplayedSteps {
		return nil, core.Errorf(core.ErrInvalid, "a turn of the conversation has %d model calls, at most %d can be replayed", most, maxReplayedSteps)
	}
	all := v.talk.Messages()
	v.report = Report{Source: v.Source, Messages: len(all), Turns: len(v.talk.Turns), StandIns: v.talk.StandIns}
	for _, m := range all {
		v.report.Tokens += v.count.Message(m)
	}
	v.addNotice(about.Skipped, "one message of another branch, or a deleted one, is not replayed", "%d messages of other branches, or deleted ones, are not replayed")
	v.addNotice(about.LeftOut, "one image or other file is not there; its message says so", "%d images or other files are not there; their messages say so")
	v.addNotice(v.talk.StandIns, "one tool result or answer is not there; a word stands in for it", "%d tool results or answers are not there; a word stands in for each")
	return messages, nil
}

// maxReplayedSteps is the most model calls of a turn: what an agent can be given.
const maxReplayedSteps = 999

// addNotice adds a notice about one or several of something.
func (v *evaluator) addNotice(n int, one, several string) {
	switch {
	case n == 1:
		v.report.Notices = append(v.report.Notices, one)
	case n > 1:
		v.report.Notices = append(v.report.Notices, fmt.Sprintf(several, n))
	}
}

// readFacts reads or finds the facts.
func (v *evaluator) readFacts(messages []core.Message) (err error) {
	switch {
	case v.Facts != nil:
		v.report.FactsFrom = FactsGiven
		v.facts, err = ReadFacts(bytes.NewReader(v.Facts))
	default:
		v.report.FactsFrom = FactsOfFile
		v.facts, err = PlantedFacts(messages)
	}
	if err != nil {
		return err
	}
	if len(v.facts) == 0 && v.report.FactsFrom == FactsOfFile {
		v.report.FactsFrom = FactsOfLedger
		v.facts = LedgerFacts(v.talk.Messages())
	}
	return CheckFacts(v.facts, v.talk.Messages())
}

// setTools makes the built-in tools, and those that the conversation called, answer
// as recorded.
func (v *evaluator) setTools() error {
	results := map[string]string{}
	for _, t := range v.talk.Turns {
		for _, s := range t.Steps {
			for _, r := range s.Results {
				results[r.ToolCallID] = r.Content
			}
		}
	}
	builtin, err := wire.NewTools(v.cfg, wire.ToolParts{})
	if err != nil {
		return err
	}
	var list []tools.Tool
	for _, spec := range builtin.Specs(builtin.Names()) {
		list = append(list, recorded{spec, results})
	}
	for _, name := range v.talk.Tools {
		if !slices.Contains(builtin.Names(), name) {
			spec := llm.ToolSpec{Name: name, Description: "A tool of the recorded conversation.", Parameters: json.RawMessage(`{"type":"object"}`)}
			list = append(list, recorded{spec, results})
		}
	}
	v.tools, err = tools.NewSet(list...)
	return err
}

// makeAgent returns the agent that has the conversation: of the file, with the tools
// that the conversation called; else one with the conversation's own prompt.
func (v *evaluator) makeAgent() (core.Agent, error) {
	var agent core.Agent
	var err error
	if v.Agent != "" {
		agent, err = agents.LoadAgentFile(v.Agent, agents.KnownParts{Tools: v.tools.Names(), ToolsDir: wire.ToolsDir(v.cfg), Kinds: core.ToolKinds(), Validate: func(a core.Agent) error {
			_, err := contextwindow.Resolve(wire.GlobalContext(v.cfg, false), a.Context)
			return err
		}})
		if err != nil {
			return agent, core.Errorf(core.ErrInvalid, "--agent: %v", err)
		}
	} else {
		var shipped *agents.Catalog
		if shipped, err = agents.LoadCatalog("", agents.KnownParts{}); err != nil {
			return agent, err
		}
		if agent, err = shipped.Get(config.Default().DefaultAgent); err != nil {
			return agent, err
		}
		agent.SystemPrompt = cmp.Or(v.talk.System, agent.SystemPrompt)
		agent.Tools = []string{core.ToolReadResult, core.ToolSearchHistory}
	}
	for _, name := range v.talk.Tools {
		if !slices.Contains(agent.Tools, name) {
			agent.Tools = append(slices.Clone(agent.Tools), name)
		}
	}
	if !slices.Contains(agent.Tools, core.ToolSearchHistory) {
		v.report.Notices = append(v.report.Notices, "the agent does not have the tool search_history: nothing counts as found by search")
	}
	agent.FallbackModels, agent.MaxIterations = nil, max(agent.MaxIterations, v.talk.Iterations()+1)
	return agent, nil
}
