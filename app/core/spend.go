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
	UsageBySession UsageGroup = "session"
	UsageByUser    UsageGroup = "user"
	UsageByAgent   UsageGroup = "agent"
	UsageByModel   UsageGroup = "model"
	UsageByDay     UsageGroup = "day" // of UTC
)

// UsageGroups returns all groups.
func UsageGroups() []UsageGroup {
	return []UsageGroup{UsageBySession, UsageByUser, UsageByAgent, UsageByModel, UsageByDay}
}

// UsageTotal is what model calls came to, answers, summaries and titles alike.
type UsageTotal struct {
	Calls            int64 `json:"calls"`
	InputTokens      int64 `json:"input_tokens"` // all of the prompts, cached parts included
	OutputTokens     int64 `json:"output_tokens"`
	ReasoningTokens  int64 `json:"reasoning_tokens"` // part of OutputTokens
	CacheReadTokens  int64 `json:"cache_read_tokens"`
	CacheWriteTokens int64 `json:"cache_write_tokens"`
	CostMicroUSD     int64 `json:"cost_micro_usd"` // millionths of a US dollar, of the calls whose price is known
	UnpricedCalls    int64 `json:"unpriced_calls"` // calls whose price, or whose tokens, are not known
}

// UsageQuery asks for the usage of an owner.
type UsageQuery struct {
	GroupBy UsageGroup `query:"group_by" enum:"session,user,agent,model,day" default:"day" doc:"The groups."`
	From    time.Time  `query:"from" format:"day" example:"2026-11-01" doc:"A day in UTC or a time: calls at that time or later."`
	To      time.Time  `query:"to" format:"day" example:"2026-12-01" doc:"A day in UTC or a time: calls before it."`
	PageQuery
}

// UsageRow is the usage of one group.
type UsageRow struct {
	Key string `json:"key"` // a session's id, a user's id, the name of an agent or a model, or a day as 2026-01-31
	UsageTotal
}

// UsageReport is a page of groups, days and sessions newest first, others by their
// names, with the total of all pages.
type UsageReport struct {
	GroupBy    UsageGroup `json:"group_by"`
	From       time.Time  `json:"from"`
	To         time.Time  `json:"to"`
	Total      UsageTotal `json:"total"`
	Items      []UsageRow `json:"items"` // never nil
	NextCursor *string    `json:"next_cursor"`
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
