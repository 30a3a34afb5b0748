package models

import (
	"time"

	"bobbin/app/core"
)

// Summary is a row of session_summaries.
type Summary struct {
	ID                string `gorm:"primaryKey"`
	SessionID         string
	Owner             string
	Version           int
	Kind              string
	State             string
	Content           string
	FromID            Ref
	ThroughID         Ref
	FromSeq           int64
	ThroughSeq        int64
	MessagesCovered   int
	MessagesAdded     int
	MessagesShortened int
	OrderedSeq        int64
	TokensBefore      int
	TokensAfter       int
	TokensCovered     int
	TokenCount        int
	MadeFor           int
	Model             string
	Strategy          string
	Trigger           string
	Focus             string
	Note              string
	Native            JSON // nativeSummary
	DurationNs        int64
	CreatedAt         time.Time `gorm:"autoCreateTime:false"`
	ActivatedAt       *time.Time
}

// TableName is the table's name.
func (Summary) TableName() string { return "session_summaries" }

// SummaryFrom returns the row of a summary.
func SummaryFrom(s core.Summary) Summary {
	return Summary{
		ID: string(s.ID), SessionID: string(s.SessionID), Owner: s.Owner, Version: s.Version,
		Kind: string(s.Kind), State: string(s.State), Content: s.Content,
		FromID: Ref(s.FromID), ThroughID: Ref(s.ThroughID), FromSeq: s.FromSeq, ThroughSeq: s.ThroughSeq,
		MessagesCovered: s.MessagesCovered, MessagesAdded: s.MessagesAdded, MessagesShortened: s.MessagesShortened, OrderedSeq: s.OrderedSeq,
		TokensBefore: s.TokensBefore, TokensAfter: s.TokensAfter, TokenCount: s.TokenCount, TokensCovered: s.TokensCovered, MadeFor: s.MadeFor,
		Model: s.Model, Strategy: s.Strategy, Trigger: s.Trigger, Focus: s.Focus, Note: s.Note,
		Native: NativeFrom(s.Native), DurationNs: int64(s.Duration), CreatedAt: s.CreatedAt, ActivatedAt: s.ActivatedAt,
	}
}

// Core returns the summary of the row.
func (r Summary) Core() core.Summary {
	return core.Summary{
		ID: core.SummaryID(r.ID), SessionID: core.SessionID(r.SessionID), Owner: r.Owner, Version: r.Version,
		Kind: core.SummaryKind(r.Kind), State: core.SummaryState(r.State), Content: r.Content,
		FromID: core.MessageID(r.FromID), ThroughID: core.MessageID(r.ThroughID), FromSeq: r.FromSeq, ThroughSeq: r.ThroughSeq,
		MessagesCovered: r.MessagesCovered, MessagesAdded: r.MessagesAdded, MessagesShortened: r.MessagesShortened, OrderedSeq: r.OrderedSeq,
		TokensBefore: r.TokensBefore, TokensAfter: r.TokensAfter, TokenCount: r.TokenCount, TokensCovered: r.TokensCovered, MadeFor: r.MadeFor,
		Model: r.Model, Strategy: r.Strategy, Trigger: r.Trigger, Focus: r.Focus, Note: r.Note,
		Native: nativeOf(r.Native), Duration: time.Duration(r.DurationNs), CreatedAt: toUTC(r.CreatedAt), ActivatedAt: toUTCPtr(r.ActivatedAt),
	}
}

// nativeSummary is a core.NativeSummary as it is stored. Its words are those of the part.
type nativeSummary struct {
	Part     core.Part  `json:"part"`
	Model    string     `json:"model"`
	Tokens   int        `json:"tokens"`
	Text     string     `json:"-"`
	Usage    core.Usage `json:"usage"`
	Cost     *int64     `json:"cost,omitempty"`
	Refused  string     `json:"refused,omitempty"`
	Account  string     `json:"account"`
	Origin   string     `json:"origin"`
	Setup    string     `json:"setup"`
	Frozen   string     `json:"frozen,omitempty"`
	Start    string     `json:"start"`
	Prefixes []string   `json:"prefixes,omitempty"`
}

// NativeFrom returns the column of a native summary; null for nil.
func NativeFrom(n *core.NativeSummary) JSON { return EncodeJSON((*nativeSummary)(n)) }

// nativeOf returns the native summary of a column; nil for null, and for one that cannot be decoded.
func nativeOf(column JSON) *core.NativeSummary {
	var n *nativeSummary
	if len(column) == 0 || column.decodeInto(&n) != nil || n == nil {
		return nil
	}
	n.Text = n.Part.Text
	return (*core.NativeSummary)(n)
}
