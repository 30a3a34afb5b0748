package eval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/contextwindow"
	"bobbin/app/wire"
)

// EvaluateRecall replays conversations with questions (ReadRecalls) under each policy in
// each window, and asks every question at the end: what would its prompt hold, and what does
// search find? Nobody answers. Errors are those of Evaluate.
func EvaluateRecall(ctx context.Context, cfg config.Config, logger *slog.Logger, e RecallEvaluation) (RecallReport, error) {
	if int64(len(e.Data)) > int64(cfg.Limits.ImportBytes) {
		return RecallReport{}, core.Errorf(core.ErrTooLarge, "the file is larger than %s (limits.import_bytes)", cfg.Limits.ImportBytes)
	}
	recalls, err := ReadRecalls(e.Data)
	if err != nil {
		return RecallReport{}, err
	}
	if len(recalls) == 0 {
		return RecallReport{}, core.Errorf(core.ErrInvalid, "the file has no conversations with questions: a JSON list of {id, speakers, messages, questions}")
	}
	if len(e.Windows) == 0 {
		e.Windows = []int{0}
	}
	report := RecallReport{Source: e.Source, Conversations: len(recalls), Summarizer: cmp.Or(e.Summarizer, SummarizerScripted), Notices: []string{}}
	for n, window := range e.Windows {
		var rows []RecallRow
		for i, r := range recalls {
			v := &evaluator{Evaluation: e.Evaluation, cfg: cfg, log: logger, recall: &r}
			v.Data, v.Format, v.Policies, v.Window = r.Data, core.ImportLines, slices.Clone(e.Policies), window
			if e.Progress != nil {
				v.Progress = func(done, turns int) {
					e.Progress((n*len(recalls)+i)*turns+done, len(e.Windows)*len(recalls)*turns)
				}
			}
			asked, err := v.askPolicies(ctx, e.Recall)
			if err != nil {
				return RecallReport{}, conversationError(fmt.Sprintf("conversation %d (%s): ", i+1, core.Clip(r.ID, 40)), err)
			}
			rows = joinRows(rows, asked)
			if n == 0 {
				report.addConversation(r, v.report)
			}
		}
		report.Rows = append(report.Rows, rows...)
	}
	return report, nil
}

// setRecall makes an agent for each policy with each way of recall.
func (v *evaluator) setRecall(modes []string) error {
	var agents []core.Agent
	var policies []string
	for i, a := range v.agents {
		for _, mode := range modes {
			a.Context.Recall = &mode
			if _, err := contextwindow.Resolve(wire.GlobalContext(v.cfg, false), a.Context); err != nil {
				return core.Errorf(core.ErrInvalid, "--recall %s: %v", mode, err)
			}
			agents, policies = append(agents, a), append(policies, v.Policies[i])
		}
	}
	if len(modes) > 0 {
		v.agents, v.Policies = agents, policies
	}
	return nil
}

// askPolicies replays one conversation under each policy and asks its questions.
func (v *evaluator) askPolicies(ctx context.Context, modes []string) ([]RecallRow, error) {
	if err := v.prepareInput(ctx); err != nil {
		return nil, err
	}
	if err := v.setRecall(modes); err != nil {
		return nil, err
	}
	rows := make([]RecallRow, len(v.agents))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(runtime.GOMAXPROCS(0), 1))
	for i := range v.agents {
		group.Go(func() error {
			return v.withStage(ctx, i, func(st *stage, r Replayed) (err error) {
				rows[i], err = v.askQuestions(ctx, st, r)
				return err
			})
		})
	}
	return rows, group.Wait()
}

// askQuestions replays the conversation and places the evidence of each question.
func (v *evaluator) askQuestions(ctx context.Context, st *stage, r Replayed) (RecallRow, error) {
	result, err := r.playTurns(ctx)
	if err != nil {
		return RecallRow{}, err
	}
	result.addTurns()
	row := RecallRow{
		Window: v.info.Window, Policy: r.Policy, Recall: cmp.Or(*cmp.Or(st.agent.Context.Recall, new("")), string(contextwindow.RecallTool)), Questions: len(v.facts), Prompts: result.Prompts, Tokens: result.Tokens,
		CachedTokens: result.CachedTokens, Failed: result.Failed,
	}
	for _, f := range v.facts {
		asked, err := st.askQuestion(ctx, f)
		if err != nil {
			return row, fmt.Errorf("question %q: %w", core.Clip(f.Ask, 80), err)
		}
		row.addQuestion(f, asked)
	}
	return row, nil
}

// asked is what there is for one question.
type asked struct {
	prompt core.PromptView
	rank   int    // of the first message among the results of search that is evidence; 0 = none of allHits
	quoted string // by search_history, asked the question; empty = the agent does not have the tool
}

// askQuestion returns what there would be for the question as the next message.
func (st *stage) askQuestion(ctx context.Context, f Fact) (a asked, err error) {
	ask := core.PlanPreview{Content: f.Ask, Tokens: st.Counter.Message(core.Message{Role: core.RoleUser, Content: f.Ask})}
	if a.prompt, err = st.engine.Inspector.DryRunPrompt(ctx, st.tenant(), st.session.ID, ask); err != nil {
		return a, err
	}
	if a.rank, err = st.rankEvidence(ctx, f); err != nil {
		return a, err
	}
	a.quoted, err = st.callSearch(ctx, f.Ask)
	return a, err
}

// callSearch returns what search_history answers to a model that asks with the text; empty =
// the agent does not have the tool, or the text cannot be looked for.
func (st *stage) callSearch(ctx context.Context, text string) (string, error) {
	if st.search == nil {
		return "", nil
	}
	arguments, err := json.Marshal(map[string]string{"query": text})
	if err != nil {
		return "", err
	}
	session, err := st.Stores.Sessions.Get(ctx, st.tenant(), st.session.ID)
	if err != nil {
		return "", err
	}
	answer, err := st.search.Call(ctx, tools.Call{ID: "recall", Arguments: string(arguments), Session: session, AskedAt: time.Now().Add(time.Minute)})
	if err != nil {
		return "", ctx.Err() // the model would read why and ask in other words
	}
	return answer, nil
}

// rankEvidence returns the place among the first allHits messages that search finds for the
// question of the first one that is evidence; 0 = none is.
func (st *stage) rankEvidence(ctx context.Context, f Fact) (int, error) {
	page, err := st.Stores.Search.Messages(ctx, st.tenant(), core.SearchQuery{PageQuery: core.PageQuery{Limit: allHits}, SessionID: st.session.ID, Text: f.Ask})
	if errors.Is(err, core.ErrInvalid) || err == nil && len(page.Items) == 0 {
		return 0, nil // a question of stop words alone, for example
	}
	if err != nil {
		return 0, err
	}
	var ids []core.MessageID
	for _, h := range page.Items {
		ids = append(ids, h.MessageID)
	}
	messages, err := st.Stores.Messages.GetMessages(ctx, st.tenant(), st.session.ID, ids)
	evidence := map[core.MessageID]bool{}
	for _, m := range messages {
		evidence[m.ID] = f.isEvidence(plainText(m.Content))
	}
	return 1 + slices.IndexFunc(ids, func(id core.MessageID) bool { return evidence[id] }), err
}

// isEvidence reports whether a message with this text (plainText) answers the question.
func (f Fact) isEvidence(text string) bool {
	return text != "" && slices.ContainsFunc(f.Evidence, func(e Evidence) bool { return plainText(e.Text) == text })
}
