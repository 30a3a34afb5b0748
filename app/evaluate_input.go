package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"bobbin/app/agents/catalog"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/eval"
	"bobbin/app/tools"
)

// read reads the conversation.
func (v *evaluator) read(ctx context.Context) ([]core.Message, error) {
	a := &App{cfg: v.cfg, counter: v.count}
	messages, about, err := a.buildTransfer().Read(ctx, core.ImportMessages{Body: bytes.NewReader(v.Data), Format: v.Format})
	if err != nil {
		return nil, err
	}
	v.talk = eval.Split(messages)
	if len(v.talk.Turns) == 0 {
		return nil, core.Errorf(core.ErrInvalid, "the conversation has no message of a user: there is nothing to replay")
	}
	if most := v.talk.Iterations(); most > maxReplayedSteps {
		return nil, core.Errorf(core.ErrInvalid, "a turn of the conversation has %d model calls, at most %d can be replayed", most, maxReplayedSteps)
	}
	all := v.talk.Messages()
	v.report = eval.Report{Source: v.Source, Messages: len(all), Turns: len(v.talk.Turns), StandIns: v.talk.StandIns}
	for _, m := range all {
		v.report.Tokens += v.count.Message(m)
	}
	v.note(about.Skipped, "one message of another branch, or a deleted one, is not replayed", "%d messages of other branches, or deleted ones, are not replayed")
	v.note(about.LeftOut, "one image or other file is not there; its message says so", "%d images or other files are not there; their messages say so")
	v.note(v.talk.StandIns, "one tool result or answer is not there; a word stands in for it", "%d tool results or answers are not there; a word stands in for each")
	return messages, nil
}

// maxReplayedSteps is the most model calls of a turn: what an agent can be given.
const maxReplayedSteps = 999

// note adds a notice about one or several of something.
func (v *evaluator) note(n int, one, several string) {
	switch {
	case n == 1:
		v.report.Notices = append(v.report.Notices, one)
	case n > 1:
		v.report.Notices = append(v.report.Notices, fmt.Sprintf(several, n))
	}
}

// readFacts reads or finds the facts.
func (v *evaluator) readFacts(messages []core.Message) (err error) {
	v.report.FactsFrom = eval.FactsGiven
	if v.Facts != nil {
		v.facts, err = eval.ReadFacts(bytes.NewReader(v.Facts))
	} else {
		v.report.FactsFrom = eval.FactsOfFile
		v.facts, err = eval.PlantedFacts(v.Data, messages)
	}
	if err != nil {
		return err
	}
	if len(v.facts) == 0 && v.Facts == nil {
		v.report.FactsFrom = eval.FactsOfLedger
		v.facts = eval.LedgerFacts(v.talk.Messages())
	}
	return eval.CheckFacts(v.facts, v.talk.Messages())
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
	builtin, err := newTools(v.cfg, time.Now, nil, nil)
	if err != nil {
		return err
	}
	var list []tools.Tool
	for _, spec := range builtin.Specs(builtin.Names()) {
		list = append(list, recorded{spec, results})
	}
	for _, name := range v.talk.Tools {
		if _, ok := builtin.Lookup(name); !ok {
			spec := llm.ToolSpec{Name: name, Description: "A tool of the recorded conversation.", Parameters: json.RawMessage(`{"type":"object"}`)}
			list = append(list, recorded{spec, results})
		}
	}
	v.tools, err = tools.NewSet(list...)
	return err
}

// agent returns the agent that has the conversation: of the file, with the tools
// that the conversation called; else one with the conversation's own prompt.
func (v *evaluator) agent() (core.Agent, error) {
	var agent core.Agent
	var err error
	if v.Agent != "" {
		agent, err = catalog.LoadFile(v.Agent, catalog.Known{Tools: v.tools.Names(), Validate: func(a core.Agent) error {
			_, err := contextwindow.Resolve(globalContext(v.cfg, false), a.Context)
			return err
		}})
		if err != nil {
			return agent, core.Errorf(core.ErrInvalid, "--agent: %v", err)
		}
	} else {
		var shipped *catalog.Catalog
		if shipped, err = catalog.Load("", catalog.Known{}); err != nil {
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
		v.report.Notices = append(v.report.Notices, "the agent does not have the tool search_history: what it could find counts as lost")
	}
	agent.FallbackModels, agent.MaxIterations = nil, max(agent.MaxIterations, v.talk.Iterations()+1)
	return agent, nil
}
