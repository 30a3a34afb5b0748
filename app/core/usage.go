package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// Usage is what a provider says a model call cost, in the provider's own tokens.
type Usage struct {
	InputTokens      int `json:"input_tokens"` // all of the prompt, cached parts included
	OutputTokens     int `json:"output_tokens"`
	ReasoningTokens  int `json:"reasoning_tokens,omitempty"` // part of OutputTokens
	CacheReadTokens  int `json:"cache_read_tokens,omitempty"`
	CacheWriteTokens int `json:"cache_write_tokens,omitempty"`
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.ReasoningTokens += v.ReasoningTokens
	u.CacheReadTokens += v.CacheReadTokens
	u.CacheWriteTokens += v.CacheWriteTokens
	return u
}

// mostTokens is more than any prompt or answer has.
const mostTokens = 100_000_000

// Corrected returns the usage without what cannot be true. Numbers below zero and beyond all bounds
// count as not reported. Some gateways report only the uncached part of a prompt as the prompt, or
// the answer without its reasoning: a part that is larger than the whole is not in it.
func (u Usage) Corrected() Usage {
	for _, n := range []*int{&u.InputTokens, &u.OutputTokens, &u.ReasoningTokens, &u.CacheReadTokens, &u.CacheWriteTokens} {
		if *n < 0 || *n > mostTokens {
			*n = 0
		}
	}
	if max(u.CacheReadTokens, u.CacheWriteTokens) > u.InputTokens {
		u.InputTokens += u.CacheReadTokens + u.CacheWriteTokens
	}
	if u.ReasoningTokens > u.OutputTokens {
		u.OutputTokens += u.ReasoningTokens
	}
	return u
}

// CacheShare returns what of the prompts the provider had in its cache, from 0 to 1, in
// ten-thousandths.
func (u Usage) CacheShare() float64 {
	if u.InputTokens <= 0 {
		return 0
	}
	return math.Round(1e4*float64(u.CacheReadTokens)/float64(u.InputTokens)) / 1e4
}

// MarshalJSON writes the share beside the numbers, so that nobody divides by the wrong
// one: providers differ in whether their input includes what was cached.
func (u Usage) MarshalJSON() ([]byte, error) {
	type plain Usage
	return json.Marshal(struct {
		plain
		CacheShare float64 `json:"cache_share,omitempty"`
	}{plain(u), u.CacheShare()})
}

// ModelPurpose says what a model was called for.
type ModelPurpose string

// The purposes of model calls.
const (
	PurposeAnswer    ModelPurpose = "answer"
	PurposeSummary   ModelPurpose = "summary"
	PurposeTitle     ModelPurpose = "title"
	PurposeEmbedding ModelPurpose = "embedding" // of messages, memories and queries, for searches by meaning
)

// ModelCall records one call of a language model, for cost and calibration.
type ModelCall struct {
	ID           string        `json:"id" gorm:"primaryKey;type:uuid"`
	Owner        string        `json:"-"`
	User         string        `json:"-" gorm:"column:user_id"`
	SessionID    SessionID     `json:"session_id" gorm:"serializer:ref;type:uuid"`
	RunID        RunID         `json:"run_id,omitempty" gorm:"serializer:ref;type:uuid"`
	Agent        string        `json:"agent"`
	Purpose      ModelPurpose  `json:"purpose" enum:"answer,summary,title,embedding"`
	Model        string        `json:"model"`
	Provider     string        `json:"provider"`
	Estimated    int           `json:"estimated_tokens" doc:"The prompt as counted before the call, cl100k_base." gorm:"column:estimated_tokens"`
	Usage        Usage         `json:"usage" gorm:"embedded"`
	Cost         *int64        `json:"cost_micro_usd,omitempty" doc:"Millionths of a US dollar; absent if the price or the usage is not known." gorm:"column:cost_micro_usd"`
	FinishReason FinishReason  `json:"finish_reason,omitempty"`
	Error        string        `json:"error,omitempty" doc:"The kind of the failure."`
	Duration     time.Duration `json:"duration_ns" gorm:"column:duration_ns"`
	CreatedAt    time.Time     `json:"created_at" doc:"When it ended." gorm:"autoCreateTime:false"`
}

// Calibration corrects local token counts for one model: what the provider
// counts divided by what cl100k_base counts. It also keeps the window
// that the provider told when it refused a prompt.
type Calibration struct {
	Model          string     `json:"model" gorm:"primaryKey"`
	Factor         float64    `json:"factor"`
	Deviation      float64    `json:"deviation"` // mean relative error of the corrected estimate, 0.02 = 2 %
	Samples        int        `json:"samples"`
	Window         int        `json:"window,omitempty" gorm:"column:told_window"`       // in the model's tokens; 0 = none was told
	WindowAt       *time.Time `json:"window_at,omitempty" gorm:"column:told_at"`        // when it was told
	PrefixContract string     `json:"prefix_contract,omitempty" gorm:"column:contract"` // llm.PrefixContract that the provider's answers showed; empty = they showed none
	// RefusesToolChanges: the provider refused messages that add or remove tools (llm.KindToolChangesRefused).
	RefusesToolChanges bool      `json:"refuses_tool_changes,omitempty"`
	UpdatedAt          time.Time `json:"updated_at" gorm:"autoUpdateTime:false"`
}

// UsageGroup is by what usage is added up.
type UsageGroup string

// The groups.
const (
	UsageBySession  UsageGroup = "session"
	UsageByUser     UsageGroup = "user"
	UsageByAgent    UsageGroup = "agent"
	UsageByModel    UsageGroup = "model"
	UsageByDay      UsageGroup = "day"       // of UTC
	UsageByDayAgent UsageGroup = "day_agent" // the key is the day, a space, and the agent
)

// UsageTotal is what model calls came to, answers, summaries and titles alike.
type UsageTotal struct {
	Calls            int64 `json:"calls"`
	InputTokens      int64 `json:"input_tokens"` // all of the prompts, cached parts included
	OutputTokens     int64 `json:"output_tokens"`
	ReasoningTokens  int64 `json:"reasoning_tokens"` // part of OutputTokens
	CacheReadTokens  int64 `json:"cache_read_tokens"`
	CacheWriteTokens int64 `json:"cache_write_tokens"`
	CostMicroUSD     int64 `json:"cost_micro_usd" doc:"Millionths of a US dollar, for calls with a known price."`
	UnpricedCalls    int64 `json:"unpriced_calls"` // calls whose price, or whose tokens, are not known
}

// UsageQuery asks for the usage of an owner.
type UsageQuery struct {
	GroupBy UsageGroup `query:"group_by" enum:"session,user,agent,model,day,day_agent" default:"day" doc:"The groups; 'day_agent' has a group for each agent of each day, with a key such as 2026-11-21 assistant."`
	From    time.Time  `query:"from" format:"day" example:"2026-11-01" doc:"A day in UTC or a time: calls at that time or later."`
	To      time.Time  `query:"to" format:"day" example:"2026-12-01" doc:"A day in UTC or a time: calls before it."`
	Largest bool       `query:"sort" enum:"key,tokens" word:"tokens" default:"key" doc:"'tokens': the groups with the most tokens, on one page."`
	PageQuery
}

// UsageRow is the usage of one group.
type UsageRow struct {
	Key string `json:"key" doc:"A session's or user's id, a name, or a day." example:"2026-11-21"`
	UsageTotal
}

// UsageReport is a page of groups, days and sessions newest first, others by their
// names, or the largest ones, with the total of all pages.
type UsageReport struct {
	GroupBy    UsageGroup `json:"group_by" enum:"session,user,agent,model,day,day_agent"`
	From       time.Time  `json:"from"`
	To         time.Time  `json:"to"`
	Total      UsageTotal `json:"total" doc:"Of all pages."`
	Items      []UsageRow `json:"items"` // never nil
	NextCursor *string    `json:"next_cursor" schema:"NextCursor"`
}

// SessionDetail is a session with what it came to.
type SessionDetail struct {
	Session
	Usage UsageTotal `json:"usage"`
}

// Spent is what an owner's model calls came to in a span of time.
type Spent struct {
	Tokens   int64 // prompts and answers; where the provider did not tell, as estimated
	MicroUSD int64 // of the calls whose price is known
}

// ErrSpendLimit returns the refusal of work that would pass a spend limit. Reset is
// when the limit begins anew.
func ErrSpendLimit(what string, now, reset time.Time) *Error {
	return &Error{
		Kind: ErrRateLimited, Code: CodeSpendLimit, RetryAfter: reset.Sub(now),
		Message: fmt.Sprintf("the limit of %s a day is reached; it begins anew at %s, or the operator raises it (auth.limits)", what, reset.Format(time.RFC3339)),
	}
}

// ErrModelUnpriced returns the refusal of a call whose cost a limit in US dollars would
// not see.
func ErrModelUnpriced(model string) *Error {
	return &Error{
		Kind: ErrUnprocessable, Code: CodeModelUnpriced,
		Message: fmt.Sprintf("the model %q has no price, and a limit in US dollars holds for you: choose another model, or the operator sets its prices (models)", model),
	}
}

// IsSpendRefusal reports whether a call was not made because of a spend limit.
func IsSpendRefusal(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Code == CodeSpendLimit || e.Code == CodeModelUnpriced)
}

// Codes of ErrSpendLimit and ErrModelUnpriced.
const (
	CodeSpendLimit    = "spend_limit"
	CodeModelUnpriced = "model_unpriced"
)
