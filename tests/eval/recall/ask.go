// Package recall asks questions about replayed conversations and measures where their evidence
// is: in the prompt, in the summary, or among what search finds.
package recall

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/contextwindow"
	"bobbin/app/eval"
)

// Sample is two conversations between friends with questions, in the format of Read, written by
// sample.json.
//
//go:embed sample.json
var Sample []byte

// SampleWindow is the window in which the sample is worth looking at, in tokens.
const SampleWindow = 4_096

// How far down the search counts.
const (
	firstHits = 5
	allHits   = 20
)

// Evaluation is what Evaluate is to do. Of eval.Evaluation it takes everything but Facts, Format,
// Window and Recall.
type Evaluation struct {
	eval.Evaluation

	Windows []int    // to compare
	Recalls []string // to compare: auto, tool, off; empty = the agent's
}

// Evaluate replays conversations with questions (Read) under each policy in each window, and asks
// every question at the end: what would its prompt hold, and what does search find? Nobody answers.
func Evaluate(ctx context.Context, cfg config.Config, logger *slog.Logger, e Evaluation) (Report, error) {
	talks, err := Read(e.Data)
	if err != nil {
		return Report{}, err
	}
	if len(e.Recalls) == 0 {
		e.Recalls = []string{""}
	}
	report := Report{Source: e.Source, Conversations: len(talks), Summarizer: cmp.Or(e.Summarizer, eval.SummarizerScripted)}
	for n, window := range e.Windows {
		var rows []Row
		for _, talk := range talks {
			var asked []Row
			for i, mode := range e.Recalls {
				v := e.Evaluation
				v.Data, v.Format, v.Facts, v.Window, v.Recall = talk.Data, core.ImportLines, []byte("[]"), window, mode
				next, about, err := ask(ctx, cfg, logger, v, talk)
				if err != nil {
					return Report{}, fmt.Errorf("conversation %s: %w", talk.ID, err)
				}
				for j, row := range next { // by policy, then by recall
					asked = slices.Insert(asked, j*(i+1)+i, row)
				}
				if n == 0 && i == 0 {
					report.addConversation(talk, about)
				}
			}
			rows = joinRows(rows, asked)
		}
		report.Rows = append(report.Rows, rows...)
	}
	return report, nil
}

// ask replays one conversation under each policy and asks its questions.
func ask(ctx context.Context, cfg config.Config, logger *slog.Logger, v eval.Evaluation, talk Talk) ([]Row, eval.Report, error) {
	var mu sync.Mutex
	rows := map[string]Row{} // guarded by mu; by policy
	v.Inspect = func(ctx context.Context, p eval.Played) error {
		row := Row{
			Window: p.Window, Policy: p.Policy, Recall: cmp.Or(v.Recall, string(contextwindow.RecallTool)), Questions: len(talk.Questions),
			Prompts: p.Result.Prompts, Tokens: p.Result.Tokens, CachedTokens: p.Result.CachedTokens, Failed: p.Result.Failed,
		}
		for _, q := range talk.Questions {
			a, err := askQuestion(ctx, p, q)
			if err != nil {
				return fmt.Errorf("question %q: %w", q.Ask, err)
			}
			row.addQuestion(q, a)
		}
		mu.Lock()
		defer mu.Unlock()
		rows[p.Policy] = row
		return nil
	}
	report, err := eval.Evaluate(ctx, cfg, logger, v)
	var list []Row
	for _, p := range report.Policies {
		list = append(list, rows[p.Policy])
	}
	return list, report, err
}

// asked is what there is for one question.
type asked struct {
	prompt core.PromptView
	rank   int    // of the first message among the results of search that is evidence; 0 = none of allHits
	quoted string // by search_history, asked the question; empty = the agent does not have the tool
}

// askQuestion returns what there would be for the question as the next message.
func askQuestion(ctx context.Context, p eval.Played, q Question) (a asked, err error) {
	preview := core.PlanPreview{Content: q.Ask, Tokens: p.Counter.Message(core.Message{Role: core.RoleUser, Content: q.Ask})}
	if a.prompt, err = p.Inspector.Prompt(ctx, p.Tenant, p.Session, preview); err != nil {
		return a, err
	}
	if a.rank, err = rankEvidence(ctx, p, q); err != nil {
		return a, err
	}
	a.quoted, err = callSearch(ctx, p, q.Ask)
	return a, err
}

// callSearch returns what search_history answers to a model that asks with the text; empty =
// the agent does not have the tool, or the text cannot be looked for.
func callSearch(ctx context.Context, p eval.Played, text string) (string, error) {
	if p.SearchHistory == nil {
		return "", nil
	}
	arguments, err := json.Marshal(map[string]string{"query": text})
	if err != nil {
		return "", err
	}
	session, err := p.Stores.Sessions.Get(ctx, p.Tenant, p.Session)
	if err != nil {
		return "", err
	}
	answer, err := p.SearchHistory.Call(ctx, tools.Call{ID: "recall", Arguments: string(arguments), Session: session, AskedAt: time.Now().Add(time.Minute)})
	if err != nil {
		return "", ctx.Err() // the model would read why and ask in other words
	}
	return answer, nil
}

// rankEvidence returns the place among the first allHits messages that search finds for the
// question of the first one that is evidence; 0 = none is.
func rankEvidence(ctx context.Context, p eval.Played, q Question) (int, error) {
	page, err := p.Stores.Search.Messages(ctx, p.Tenant, core.SearchQuery{PageQuery: core.PageQuery{Limit: allHits}, SessionID: p.Session, Text: q.Ask})
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
	messages, err := p.Stores.Messages.GetMessages(ctx, p.Tenant, p.Session, ids)
	evidence := map[core.MessageID]bool{}
	for _, m := range messages {
		text := plainText(m.Content)
		evidence[m.ID] = text != "" && slices.ContainsFunc(q.Evidence, func(e Evidence) bool { return plainText(e.Text) == text })
	}
	return 1 + slices.IndexFunc(ids, func(id core.MessageID) bool { return evidence[id] }), err
}

// plainText returns the text in lower case, its blanks and line breaks as single blanks.
func plainText(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }
