package models

import "bobbin/app/core"

// nativeSummary is a core.NativeSummary as it is stored. Its words are those of the part.
type nativeSummary struct {
	Part     core.Part  `json:"part"`
	Model    string     `json:"model"`
	Tokens   int        `json:"tokens"`
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
func NativeFrom(n *core.NativeSummary) JSON {
	if n == nil {
		return nil
	}
	return EncodeJSON(nativeSummary{
		Part: n.Part, Model: n.Model, Tokens: n.Tokens, Usage: n.Usage, Cost: n.Cost, Refused: n.Refused,
		Account: n.Account, Origin: n.Origin, Setup: n.Setup, Frozen: n.Frozen, Start: n.Start, Prefixes: n.Prefixes,
	})
}

// nativeOf returns the native summary of a column; nil for null, and for one that cannot be decoded.
func nativeOf(column JSON) *core.NativeSummary {
	var n *nativeSummary
	if len(column) == 0 || column.decodeInto(&n) != nil || n == nil {
		return nil
	}
	return &core.NativeSummary{
		Part: n.Part, Model: n.Model, Tokens: n.Tokens, Text: n.Part.Text, Usage: n.Usage, Cost: n.Cost, Refused: n.Refused,
		Account: n.Account, Origin: n.Origin, Setup: n.Setup, Frozen: n.Frozen, Start: n.Start, Prefixes: n.Prefixes,
	}
}
