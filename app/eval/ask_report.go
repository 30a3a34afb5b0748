package eval

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"bobbin/app/core"
)

// RecallEvaluation is what EvaluateRecall is to do. Of the Evaluation it takes everything but
// Facts, Format and Window.
type RecallEvaluation struct {
	Evaluation
	Windows []int    // to compare; empty = the model's
	Recall  []string // to compare: auto, tool, off; empty = the agent's
}

// RecallReport says where the evidence of questions is, under each policy in each window.
// This is the document of --json.
type RecallReport struct {
	Source        string      `json:"source"`
	Conversations int         `json:"conversations"`
	Messages      int         `json:"messages"`
	Questions     int         `json:"questions"`
	Model         string      `json:"model"`
	Summarizer    string      `json:"summarizer"`
	Notices       []string    `json:"notices"`
	Rows          []RecallRow `json:"rows"`
}

// RecallRow counts the questions by where their evidence is: InPrompt, InSummary, BySearch1,
// BySearch5, BySearch20 and NotAtAll add up to Questions, each question in the first that has
// it. First1, First5, First20 and Quoted count it wherever else it may be.
type RecallRow struct {
	Window     int    `json:"window"`
	Policy     string `json:"policy"`
	Recall     string `json:"recall"` // auto, tool or off
	Questions  int    `json:"questions"`
	InPrompt   int    `json:"in_prompt"`    // word for word in a message of the prompt that asks the question
	Recalled   int    `json:"recalled"`     // of InPrompt: only in its recalled passages
	InSummary  int    `json:"in_summary"`   // told by its summary, or by its notes on tool loops
	BySearch1  int    `json:"by_search_1"`  // the first message that search finds for the question
	BySearch5  int    `json:"by_search_5"`  // one of the next four
	BySearch20 int    `json:"by_search_20"` // one of the next fifteen
	NotAtAll   int    `json:"not_at_all"`
	First1     int    `json:"first_1"` // search alone
	First5     int    `json:"first_5"`
	First20    int    `json:"first_20"`
	Quoted     int    `json:"quoted"` // by search_history, asked the question once

	PromptTokens   int      `json:"prompt_tokens"`   // of the prompts that ask the questions, all together
	RecalledTokens int      `json:"recalled_tokens"` // of these, in recalled passages
	Largest        int      `json:"largest_prompt"`
	Prompts        int      `json:"prompts"` // of the replay
	Tokens         int      `json:"tokens_sent"`
	CachedTokens   int      `json:"cached_tokens"`
	Failed         *Failure `json:"failed,omitempty"`
}

// addQuestion counts what there is for a question.
func (r *RecallRow) addQuestion(f Fact, a asked) {
	said, recalled := newText(""), newText("")
	for _, m := range a.prompt.Messages {
		switch {
		case m.Placement == core.PlaceRecalled:
			recalled.addPiece(m.Content)
			r.RecalledTokens += m.Tokens
		case !isSummary(m.Content):
			said.addPiece(messageTexts(m.Content, m.ToolCalls))
		}
	}
	summary := summariesOf(a.prompt.System, a.prompt.Messages, func(m core.PromptMessage) string { return m.Content })
	first := func(n int) bool { return a.rank > 0 && a.rank <= n }
	for n, count := range map[int]*int{1: &r.First1, firstHits: &r.First5, allHits: &r.First20} {
		if first(n) {
			*count++
		}
	}
	if f.isTold(a.quoted) {
		r.Quoted++
	}
	switch {
	case said.hasFact(f):
		r.InPrompt++
	case recalled.hasFact(f):
		r.InPrompt++
		r.Recalled++
	case f.isTold(summary):
		r.InSummary++
	case first(1):
		r.BySearch1++
	case first(firstHits):
		r.BySearch5++
	case first(allHits):
		r.BySearch20++
	default:
		r.NotAtAll++
	}
	r.PromptTokens += a.prompt.Tokens
	r.Largest = max(r.Largest, a.prompt.Tokens)
}

// isTold reports whether the text has the fact word for word, or in other words.
func (f Fact) isTold(s string) bool {
	return newText(s).hasFact(f) || slices.ContainsFunc(splitPassages(s), func(p passage) bool { return p.coversEvidence(f) })
}

// Held returns how many questions have their evidence in the prompt or the summary.
func (r RecallRow) Held() int { return r.InPrompt + r.InSummary }

// joinRows adds the rows of the next conversation to those of the ones before; nil = there
// are none.
func joinRows(rows, next []RecallRow) []RecallRow {
	if rows == nil {
		return next
	}
	for i, n := range next {
		r := &rows[i]
		for _, sum := range [][2]*int{
			{&r.Questions, &n.Questions}, {&r.InPrompt, &n.InPrompt}, {&r.Recalled, &n.Recalled}, {&r.RecalledTokens, &n.RecalledTokens}, {&r.InSummary, &n.InSummary}, {&r.BySearch1, &n.BySearch1},
			{&r.BySearch5, &n.BySearch5}, {&r.BySearch20, &n.BySearch20}, {&r.NotAtAll, &n.NotAtAll}, {&r.First1, &n.First1},
			{&r.First5, &n.First5}, {&r.First20, &n.First20}, {&r.Quoted, &n.Quoted}, {&r.PromptTokens, &n.PromptTokens},
			{&r.Prompts, &n.Prompts}, {&r.Tokens, &n.Tokens}, {&r.CachedTokens, &n.CachedTokens},
		} {
			*sum[0] += *sum[1]
		}
		r.Largest = max(r.Largest, n.Largest)
		if r.Failed == nil {
			r.Failed = n.Failed
		}
	}
	return rows
}

// addConversation adds what is to be known of one conversation.
func (r *RecallReport) addConversation(c Recall, about Report) {
	r.Model = about.Model
	r.Messages += about.Messages
	r.Questions += len(c.Facts)
	for _, n := range about.Notices {
		r.Notices = append(r.Notices, c.ID+": "+n)
	}
}

// Failed reports whether a conversation could not go on under one of the policies.
func (r RecallReport) Failed() bool {
	return slices.ContainsFunc(r.Rows, func(row RecallRow) bool { return row.Failed != nil })
}

// WriteTable writes the report for people, a line for each window and policy.
func (r RecallReport) WriteTable(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s about %s in %s; model %s, summarizer %s\n\n", r.Source, formatCount(r.Questions, "question"),
		formatCount(r.Messages, "message"), formatCount(r.Conversations, "conversation"), r.Model, r.Summarizer)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "WINDOW\tPOLICY\tRECALL\tPROMPT\tRECALLED\tSUMMARY\tBOTH\tFIRST 1\tFIRST 5\tFIRST 20\tQUOTED\tNOWHERE\tPROMPT TOKENS\tCACHEABLE\t")
	for _, row := range r.Rows {
		share := func(n int) string { return formatPercent(ratioOf(n, row.Questions)) }
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", formatNumber(row.Window), row.Policy, row.Recall,
			share(row.InPrompt), share(row.Recalled), share(row.InSummary), share(row.Held()), share(row.First1), share(row.First5), share(row.First20),
			share(row.Quoted), share(row.NotAtAll), formatNumber(row.PromptTokens/max(row.Questions, 1)), formatPercent(ratioOf(row.CachedTokens, row.Tokens)))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	b := &strings.Builder{}
	for _, row := range r.Rows {
		if row.Failed != nil {
			fmt.Fprintf(b, "\n%s, %s, %s: a conversation ends in turn %d: %s (%s)\n", formatNumber(row.Window), row.Policy, row.Recall, row.Failed.Turn, row.Failed.Message, row.Failed.Code)
		}
	}
	for i, n := range r.Notices {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(b, "note: %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// SVG returns a chart of the report: a bar for each window and policy.
func (r RecallReport) SVG() []byte {
	bars := Bars{
		Title:    fmt.Sprintf("%s: where the evidence is", r.Source),
		Subtitle: fmt.Sprintf("%s about %s in %s", formatCount(r.Questions, "question"), formatCount(r.Messages, "message"), formatCount(r.Conversations, "conversation")),
		Parts:    []string{"in the prompt", "recalled", "in the summary", "by search, first 1", "first 5", "first 20"},
	}
	for _, row := range r.Rows {
		var values []float64
		for _, n := range []int{row.InPrompt - row.Recalled, row.Recalled, row.InSummary, row.BySearch1, row.BySearch5, row.BySearch20} {
			values = append(values, ratioOf(n, row.Questions))
		}
		bars.Rows = append(bars.Rows, Bar{Name: formatNumber(row.Window) + " " + row.Policy + " " + row.Recall, Values: values})
	}
	return bars.SVG()
}
