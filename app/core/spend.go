package core

import (
	"errors"
	"fmt"
	"time"
)

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
