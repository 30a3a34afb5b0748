package recall

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"bobbin/app/core"
	"bobbin/app/eval"
)

// Report says where the evidence of questions is, under each policy in each window.
type Report struct {
	Source        string
	Conversations int
	Messages      int
	Questions     int
	Model         string
	Summarizer    string
	Notices       []string
	Rows          []Row
}

// Row counts the questions by where their evidence is: InPrompt, InSummary, BySearch1,
// BySearch5, BySearch20 and NotAtAll add up to Questions, each question in the first that has
// it. First1, First5, First20 and Quoted count it wherever else it may be.
type Row struct {
	Window     int
	Policy     string
	Recall     string // auto, tool or off
	Questions  int
	InPrompt   int // word for word in a message of the prompt that asks the question
	Recalled   int // of InPrompt: only in its recalled passages
	InSummary  int // told by its summary, or by its notes on tool loops
	BySearch1  int // the first message that search finds for the question
	BySearch5  int // one of the next four
	BySearch20 int // one of the next fifteen
	NotAtAll   int
	First1     int // search alone
	First5     int
	First20    int
	Quoted     int // by search_history, asked the question once

	PromptTokens   int // of the prompts that ask the questions, all together
	RecalledTokens int // of these, in recalled passages
	Largest        int
	Prompts        int // of the replay
	Tokens         int
	CachedTokens   int
	Failed         *eval.Failure
}

// addQuestion counts what there is for a question.
func (r *Row) addQuestion(q Question, a asked) {
	said, recalled, summary := "", "", ""
	for _, block := range a.prompt.System {
		if isSummary(block) {
			summary += block + "\n"
		}
	}
	for _, m := range a.prompt.Messages {
		switch {
		case m.Placement == core.PlaceRecalled:
			recalled += plainText(m.Content) + "\n"
			r.RecalledTokens += m.Tokens
		case isSummary(m.Content):
			summary += m.Content + "\n"
		default:
			said += plainText(m.Content) + "\n"
		}
	}
	first := func(n int) bool { return a.rank > 0 && a.rank <= n }
	for n, count := range map[int]*int{1: &r.First1, firstHits: &r.First5, allHits: &r.First20} {
		if first(n) {
			*count++
		}
	}
	if q.isTold(a.quoted) {
		r.Quoted++
	}
	switch {
	case q.isSaid(said):
		r.InPrompt++
	case q.isSaid(recalled):
		r.InPrompt++
		r.Recalled++
	case q.isTold(summary):
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

// isTold reports whether the text has the evidence word for word, or in other words.
func (q Question) isTold(s string) bool {
	return q.isSaid(plainText(s)) || slices.ContainsFunc(splitPassages(s), func(p passage) bool { return p.coversEvidence(q) })
}

// isSaid reports whether the text (plainText) has a whole message of the evidence.
func (q Question) isSaid(text string) bool {
	return slices.ContainsFunc(q.Evidence, func(e Evidence) bool { return strings.Contains(text, plainText(e.Text)) })
}

// isSummary reports whether the block of a prompt stands for messages that are not in it.
func isSummary(block string) bool {
	return strings.Contains(block, "<conversation_summary>") || strings.Contains(block, "<work_notes>")
}

// Held returns how many questions have their evidence in the prompt or the summary.
func (r Row) Held() int { return r.InPrompt + r.InSummary }

// joinRows adds the rows of the next conversation to those of the ones before; nil = there
// are none.
func joinRows(rows, next []Row) []Row {
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
func (r *Report) addConversation(c Talk, about eval.Report) {
	r.Model = about.Model
	r.Messages += about.Messages
	r.Questions += len(c.Questions)
	if c.Skipped > 0 {
		r.Notices = append(r.Notices, fmt.Sprintf("%s: %d questions name no message that answers them, and are passed over", c.ID, c.Skipped))
	}
	for _, n := range about.Notices {
		r.Notices = append(r.Notices, c.ID+": "+n)
	}
}

// Failed reports whether a conversation could not go on under one of the policies.
func (r Report) Failed() bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Failed != nil })
}

// WriteTable writes the report for people, a line for each window and policy.
func (r Report) WriteTable(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s questions about %s messages in %s conversations; model %s, summarizer %s\n\n", r.Source, core.Number(r.Questions),
		core.Number(r.Messages), core.Number(r.Conversations), r.Model, r.Summarizer)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "WINDOW\tPOLICY\tRECALL\tPROMPT\tRECALLED\tSUMMARY\tBOTH\tFIRST 1\tFIRST 5\tFIRST 20\tQUOTED\tNOWHERE\tPROMPT TOKENS\tCACHEABLE\t")
	for _, row := range r.Rows {
		share := func(n int) string { return percent(n, row.Questions) }
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", core.Number(row.Window), row.Policy, row.Recall,
			share(row.InPrompt), share(row.Recalled), share(row.InSummary), share(row.Held()), share(row.First1), share(row.First5), share(row.First20),
			share(row.Quoted), share(row.NotAtAll), core.Number(row.PromptTokens/max(row.Questions, 1)), percent(row.CachedTokens, row.Tokens))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	b := &strings.Builder{}
	for _, row := range r.Rows {
		if row.Failed != nil {
			fmt.Fprintf(b, "\n%s, %s, %s: a conversation ends in turn %d: %s (%s)\n", core.Number(row.Window), row.Policy, row.Recall, row.Failed.Turn, row.Failed.Message, row.Failed.Code)
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

// percent writes a share of b.
func percent(a, b int) string { return fmt.Sprintf("%.1f %%", 100*float64(a)/float64(max(b, 1))) }
