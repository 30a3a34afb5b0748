package eval

import (
	"slices"

	"bobbin/app/core"
)

// Report is what a replay came to, under each policy. All numbers of tokens are the
// model's, by the model table's factor. This is the document of --json.
type Report struct {
	Source     string     `json:"source"` // the file, or the sample
	Messages   int        `json:"messages"`
	Turns      int        `json:"turns"`
	Tokens     int        `json:"tokens"` // of all messages
	Model      string     `json:"model"`
	Window     int        `json:"window"`
	FactsFrom  string     `json:"facts_from"` // file, given or ledger
	StandIns   int        `json:"stand_ins"`  // results and answers that the file does not have
	Notices    []string   `json:"notices"`
	Everything Everything `json:"everything"` // what it were to send all of it each time
	Policies   []Result   `json:"policies"`
}

// Everything is what it would be to send the whole conversation with every prompt.
type Everything struct {
	Prompts      int     `json:"prompts"`
	Largest      int     `json:"largest_prompt"`
	Tokens       int     `json:"tokens_sent"`
	CachedTokens int     `json:"cached_tokens"`
	CacheShare   float64 `json:"cache_share"`
	// TooLargeFrom is the first turn with a prompt over usable; 0 = all fit.
	TooLargeFrom int `json:"too_large_from_turn"`
}

// Result is what a replay came to under one policy.
type Result struct {
	Policy       string        `json:"policy"`
	Budget       Budget        `json:"budget"`
	Prompts      int           `json:"prompts"` // sent: the model calls that answered
	Largest      int           `json:"largest_prompt"`
	LargestTurn  int           `json:"largest_turn"`
	Last         int           `json:"last_prompt"`
	Tokens       int           `json:"tokens_sent"`
	CachedTokens int           `json:"cached_tokens"` // of those: what the prompt before began with, too
	CacheShare   float64       `json:"cache_share"`   // cached_tokens of tokens_sent
	Summaries    int           `json:"summaries"`
	Summarizer   Summarizer    `json:"summarizer"`
	Facts        Found         `json:"facts"`
	Coverage     core.Coverage `json:"coverage"`         // where the messages are at the end
	Failed       *Failure      `json:"failed,omitempty"` // why the conversation could not go on
	Turns        []Turned      `json:"turns"`
}

// Budget is the arithmetic of the window (core.ContextReport).
type Budget struct {
	Window  int `json:"window"`
	Reserve int `json:"reserve"`
	Usable  int `json:"usable"`
	Trigger int `json:"trigger"` // 0 = this policy has no share trigger
	Landing int `json:"landing"`
}

// Summarizer is who made the summaries, and what that took.
type Summarizer struct {
	Name         string `json:"name"`
	Calls        int64  `json:"calls"`
	InputTokens  int64  `json:"input_tokens"`
	OutputTokens int64  `json:"output_tokens"`
}

// Found says where the facts are at the end; each is in the first place that has it.
// What search finds is found by the facts' questions: one without is never found by it.
type Found struct {
	Planted     int    `json:"planted"`
	Asked       int    `json:"asked"` // of them: those that have a question
	Reachable   int    `json:"reachable"`
	Prompt      int    `json:"in_prompt"`    // word for word among the messages of the last prompt
	Summary     int    `json:"in_summary"`   // in its summary, which has the ledger
	First5      int    `json:"by_search_5"`  // told by one of the first five quotations of search_history
	First20     int    `json:"by_search_20"` // by one of the next fifteen
	Unreachable []Fact `json:"unreachable"`
	SearchAlone Ranked `json:"search_alone"`
}

// countUnasked returns how many of the unreachable facts have no question, so that the search was not asked for them.
func (f Found) countUnasked() int {
	n := 0
	for _, fact := range f.Unreachable {
		if fact.Ask == "" {
			n++
		}
	}
	return n
}

// Ranked says how many of the facts with a question search finds, those included that
// are in the prompt or the summary.
type Ranked struct {
	First5  int `json:"first_5"`
	First20 int `json:"first_20"` // with those of First5
}

// Failure is a run that did not end well.
type Failure struct {
	Turn int `json:"turn"`
	core.RunError
}

// Turned is one turn of a replay.
type Turned struct {
	Turn        int          `json:"turn"`
	Prompts     []Prompt     `json:"prompts"` // none = nobody answered
	Compactions []Compaction `json:"compactions"`
	Rungs       []string     `json:"rungs,omitempty"` // what of the ladder its last prompt needed
}

// Compaction is one event of context management.
type Compaction struct {
	Event string `json:"event"`
	After bool   `json:"after_turn"` // when the answer had been given: the next turn has what came of it
	core.ContextData
}

// addTurns adds up the turns.
func (r *Result) addTurns() {
	for _, t := range r.Turns {
		for _, p := range t.Prompts {
			r.Prompts, r.Last = r.Prompts+1, p.Tokens
			r.Tokens += p.Tokens
			r.CachedTokens += p.CachedTokens
			if p.Tokens > r.Largest {
				r.Largest, r.LargestTurn = p.Tokens, t.Turn
			}
		}
	}
	r.CacheShare = ratioOf(r.CachedTokens, r.Tokens)
}

// ratioOf returns a of b, to four digits.
func ratioOf(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(int(10_000*float64(a)/float64(b)+0.5)) / 10_000
}

// Complete fills in what follows from the results, which must be some.
func (r *Report) Complete() {
	var e Everything
	whole, before := slices.MaxFunc(r.Policies, func(a, b Result) int { return a.Prompts - b.Prompts }), 0
	for _, t := range whole.Turns {
		for _, p := range t.Prompts {
			e.Prompts++
			e.Tokens += p.Everything
			e.CachedTokens += before // the prompt before is its beginning
			e.Largest, before = max(e.Largest, p.Everything), p.Everything
			if e.TooLargeFrom == 0 && p.Everything > whole.Budget.Usable {
				e.TooLargeFrom = t.Turn
			}
		}
	}
	e.CacheShare = ratioOf(e.CachedTokens, e.Tokens)
	r.Everything = e
	if r.Notices == nil {
		r.Notices = []string{}
	}
}

// Failed reports whether the conversation could not go on under one of the policies.
func (r Report) Failed() bool {
	return slices.ContainsFunc(r.Policies, func(p Result) bool { return p.Failed != nil })
}
