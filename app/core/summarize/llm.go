package summarize

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/prompttext"
)

// Defaults for a model that reports no sizes.
const (
	defaultWindow = 8_192 // tokens
	defaultFactor = 1.1
)

const (
	temperature       = 0.2
	reasoningTokens   = 2_048 // room for thoughts beside the summary
	promptOverhead    = 11    // tokens around a system block and a message
	minMaterialTokens = 64    // tokens of transcript under which a call is not worth it
)

// LLM is the strategy that asks a language model. Safe for concurrent use.
type LLM struct {
	model  llm.Model
	count  core.TextCounter
	factor func() float64 // nil = defaultFactor
}

// NewLLM returns the strategy for a model. factor returns how many of the model's tokens
// one cl100k_base token currently is, its margin included; nil = 1.1.
func NewLLM(model llm.Model, count core.TextCounter, factor func() float64) *LLM {
	return &LLM{model: model, count: count, factor: factor}
}

// ledgerHeading is the heading of a section of the ledger: those come from code alone.
var ledgerHeading = regexp.MustCompile(`(?mi)^## [#*: ]*(?:` + strings.Join([]string{userHeading, filesHeading, commandsHeading, errorsHeading, urlsHeading}, "|") + `)[#*: \t\r]*$`)

// Summarize asks the model for a summary, in one call: messages that do not fit it are
// cut (see Room). Errors come from the model, or say why its answers were refused.
func (l *LLM) Summarize(ctx context.Context, req Request) (Result, error) {
	res, err := l.writeSummary(ctx, req, false)
	res.Content = ledgerHeading.ReplaceAllString(res.Content, "#$0")
	res.Tokens = l.count.Text(res.Content)
	return res, err
}

// writeSummary is Summarize; with ledger the prompt says that code appends lists.
func (l *LLM) writeSummary(ctx context.Context, req Request, ledger bool) (Result, error) {
	j := l.newJob(req, ledger)
	err := j.summarizeMessages(ctx)
	res := Result{Strategy: StrategyLLM, Model: l.model.Info().Name, Calls: j.calls, Shortened: j.shortened}
	if err != nil {
		return res, err
	}
	res.Content, res.Tokens = j.summary, l.count.Text(j.summary)
	return res, nil
}

// job is the state of one summary. One goroutine owns it.
type job struct {
	*LLM
	req       Request
	system    string
	frame     string // our own words around the data
	language  string // of the conversation; empty = not sure
	fixed     int    // tokens of the system text and, at most, of the request around the data
	limit     int    // max tokens of the summary: the request's, or the model's max output
	ask       int    // tokens to ask for
	maxOutput int    // of a call, in the model's tokens
	window    int    // of the model, in its tokens
	scale     float64
	shortened int    // messages that were cut to fit the call
	summary   string // the previous one, then the new one
	calls     []core.ModelCall

	askedShorter bool // the request for a shorter answer was sent
}

// Room returns how many cl100k_base tokens of messages one call can summarize besides
// req.Previous, for a summary of req.Limit tokens; at least 1.
func (l *LLM) Room(req Request) int { return max(l.newJob(req, true).messageRoom(), 1) }

func (l *LLM) newJob(req Request, ledger bool) *job {
	info := l.model.Info()
	j := &job{LLM: l, req: req, language: languageOf(req.Messages, req.Previous), window: cmp.Or(req.Window, info.Window), scale: defaultFactor, summary: req.Previous}
	if l.factor != nil {
		j.scale = l.factor()
	}
	if j.window <= 0 {
		j.window = defaultWindow
	}
	j.req.Focus = makeHarmless(prompttext.Line(req.Focus, 1_000))
	wanted := int(float64(max(2*j.req.Limit, j.req.Limit+reasoningTokens)) * j.scale)
	j.maxOutput = max(min(wanted, j.window/4), 1)
	if limit := j.model.Info().MaxOutput; limit > 0 {
		j.maxOutput = min(j.maxOutput, limit)
	}
	j.limit = max(min(j.req.Limit, int(float64(j.maxOutput)/j.scale)), 1)
	j.ask = tokensToAskFor(j.limit)
	if j.req.TargetTokens > 0 {
		j.ask = min(j.req.TargetTokens, j.ask)
	}
	if j.req.Replaces > 0 { // a summary nearly as large as its material gains nothing
		j.ask = max(min(j.ask, j.req.Replaces*3/4), 1)
	}
	data := systemData{Tokens: cmp.Or(req.TargetTokens, tokensToAskFor(req.Limit)), Ledger: ledger}
	name := "summary_window.md"
	switch req.Preset {
	case PresetBudget, PresetSliding, PresetRatio:
		name = "summary_" + req.Preset + ".md"
	case PresetCompaction:
		name = "compaction.md"
	}
	j.system = renderFile(name, data)
	j.frame = renderRequest(requestData{Previous: "-", Focus: j.req.Focus, Speakers: j.req.Speakers, Language: j.language, Tokens: j.ask, Rejected: errNotSmaller.reason})
	j.fixed = l.count.Text(j.system) + l.count.Text(j.frame) + promptOverhead
	return j
}

// tokensToAskFor returns how many tokens to ask for under a limit: models write more than
// asked, and an answer that is cut off at the output limit is lost.
func tokensToAskFor(limit int) int { return max(limit*7/10, 1) }

// promptLimit returns how many tokens a prompt may have.
func (j *job) promptLimit() int { return int(float64(j.window-j.maxOutput) / j.scale) }

// callModel makes one call and records it. It counts the prompt as it is sent, as
// calibration compares that with the provider's count.
func (j *job) callModel(ctx context.Context, text string) (llm.Response, error) {
	info := j.model.Info()
	t := temperature
	start := time.Now()
	res, err := llm.Collect(j.model.Stream(ctx, llm.Request{
		System:          []string{j.system},
		Messages:        []llm.Message{{Role: core.RoleUser, Content: text}},
		MaxOutputTokens: j.maxOutput,
		Temperature:     &t,
		Background:      true,
	}), nil)
	j.calls = append(j.calls, info.NewCall(core.PurposeSummary, j.count.Text(j.system)+j.count.Text(text)+promptOverhead, res, err, start))
	if err != nil {
		return res, fmt.Errorf("summarize with %s: %w", info.Name, err)
	}
	return res, nil
}

// Hybrid is the strategy in which a model writes and code keeps what may not fade: a ledger of the
// users' newest messages, files, commands, errors and URLs follows the model's summary. It is
// merged with the ledger of the previous summary, so that no rewording loses facts. Safe for
// concurrent use.
type Hybrid struct {
	llm   *LLM
	count core.TextCounter
}

// NewHybrid returns the strategy that uses model for the text.
func NewHybrid(model *LLM) *Hybrid { return &Hybrid{llm: model, count: model.count} }

// Room returns LLM.Room of the model.
func (h *Hybrid) Room(req Request) int { return h.llm.Room(req) }

// summaryHeading is the heading of the model's part.
const summaryHeading = "## Conversation Summary"

const (
	joinTokens   = 8   // of the heading and the lines between the parts
	ledgerTokens = 600 // of the ledger inside the limit of the summary
)

// newLedger returns the sections of a ledger, empty.
func newLedger() outline {
	return append(outline{messageSection(userHeading, 1)}, factSections()...)
}

// Summarize asks the model for its part and appends the ledger. The ledger has at most
// ledgerTokens, two fifths of the limit, and half of what is replaced: that includes the
// previous ledger, so that a small summary does not shrink it. The users' messages have at most
// half of it. Errors are those of LLM.
func (h *Hybrid) Summarize(ctx context.Context, req Request) (Result, error) {
	ledger := newLedger()
	words := req
	words.Previous = withoutHeading(ledger.parse(req.Previous))
	req.Messages = core.WithoutRefused(req.Messages, core.FinishContentFilter, core.FinishRefused) // words that a provider may refuse
	ledger.addFacts(req.Messages)
	ledger.addUserMessages(req.quotable())
	ledger.dropInstructions(req.Instructions)
	budget := min(ledgerTokens, req.Limit*2/5, req.Replaces/2)
	said := ledger[:1].render(h.count, budget/2)
	facts := ledger[1:].render(h.count, budget-h.count.Text(said)-1)
	ledgerText := strings.Trim(said+"\n\n"+facts, "\n")
	size := h.count.Text(ledgerText) + joinTokens

	words.Limit, words.Replaces = max(req.Limit-size, 1), max(req.Replaces-size, 1)
	res, err := h.llm.writeSummary(ctx, words, true)
	res.Strategy = StrategyHybrid
	if err != nil {
		return res, err
	}
	written := withoutHeading(newLedger().parse(res.Content)) // drops lists that the model wrote against its instructions: no code checked them
	if written == "" {
		return res, errEmpty
	}
	res.Content = join(h.count, summaryHeading, written, ledgerText, req.Limit)
	res.Tokens = h.count.Text(res.Content)
	return res, nil
}

// withoutHeading removes our own heading from an earlier summary.
func withoutHeading(summary string) string {
	return strings.TrimSpace(strings.TrimPrefix(summary, summaryHeading))
}
