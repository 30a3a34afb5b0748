package core

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"time"
)

// SummaryKind says what a summary stands for.
type SummaryKind string

// The kinds of summaries.
const (
	SummaryRolling SummaryKind = "rolling" // the beginning of the session up to the cursor
	SummaryRun     SummaryKind = "run"     // the older part of one run's tool loop
)

// SummaryState says whether a summary is in use.
type SummaryState string

// The states of summaries.
const (
	SummaryPrepared SummaryState = "prepared" // changes no prompt yet
	SummaryActive   SummaryState = "active"
	SummaryDropped  SummaryState = "dropped"
	SummaryErased   SummaryState = "erased" // a message that it covered was deleted or edited: its content is gone
	SummaryUndone   SummaryState = "undone" // taken back by the user: it can be restored, but does not come back by itself
)

// Summary is one version of a session's summary. Versions are append-only.
type Summary struct {
	ID                SummaryID      `json:"id" gorm:"primaryKey"`
	SessionID         SessionID      `json:"session_id"`
	Owner             string         `json:"-"`
	Version           int            `json:"version" min:"1"` // 1, 2, 3 … in the session
	Kind              SummaryKind    `json:"kind" enum:"rolling,run"`
	State             SummaryState   `json:"state" enum:"prepared,active,dropped,erased,undone" doc:"undone: replaced by a restore. It can be restored."`
	Content           string         `json:"content"`
	FromID            MessageID      `json:"from_id" gorm:"serializer:ref"`    // first message covered
	ThroughID         MessageID      `json:"through_id" gorm:"serializer:ref"` // last message covered
	FromSeq           int64          `json:"from_seq"`
	ThroughSeq        int64          `json:"through_seq"`
	MessagesCovered   int            `json:"messages_covered" doc:"From the beginning of the session."`
	MessagesAdded     int            `json:"messages_added" doc:"By this version."`
	MessagesShortened int            `json:"messages_shortened,omitempty" doc:"The added messages that the summarizer got only in part, because they are too long for one call of its model."`
	OrderedSeq        int64          `json:"ordered_seq,omitempty" doc:"The last message of the summarization. It is after through_seq if that takes several calls, each with its own version."`
	TokensBefore      int            `json:"tokens_before"` // what it replaces: the summary before and the messages added
	TokensAfter       int            `json:"tokens_after"`
	TokensCovered     int            `json:"-"` // of all messages that it covers, cl100k_base; compared with other versions only
	TokenCount        int            `json:"token_count" doc:"Of content, cl100k_base. Limits such as max_summary_tokens count in the own tokens of the model."`
	MadeFor           int            `json:"made_for" doc:"Trigger of the model whose prompts needed this version, in cl100k_base tokens: models with a larger trigger use an older version if it suffices, and of notes on a tool loop the messages themselves. 0 = for every model."`
	Model             string         `json:"model" doc:"Empty if no model created it."`
	Strategy          string         `json:"strategy"`
	Trigger           string         `json:"trigger"`
	Focus             string         `json:"focus,omitempty"` // what the user asked to keep
	Note              string         `json:"note,omitempty" doc:"Why it differs from what was requested."`
	Native            *NativeSummary `json:"native,omitempty" doc:"The own compaction of the model's provider, of the same messages, under the strategy native: prompts of that model have it in place of content. Absent if there is none." gorm:"serializer:native"`
	Duration          time.Duration  `json:"duration_ns" gorm:"column:duration_ns"`
	CreatedAt         time.Time      `json:"created_at" gorm:"autoCreateTime:false"`
	ActivatedAt       *time.Time     `json:"activated_at,omitempty" doc:"When it became active; absent if it never did."`
}

// StoredBytes returns what storing the version counts.
func (s Summary) StoredBytes() int64 { return int64(StoredRow + len(s.Content)) }

// NativeSummary is a summary that the provider of the conversation's model wrote with its own
// compaction. Prompts of that model have it in place of the words of its version, which stay
// beside it: a provider takes its compactions back from one account only, and may refuse them
// at any time.
type NativeSummary struct {
	Part    Part   `json:"-"` // type PartCompaction: what is sent back
	Model   string `json:"model" doc:"That created it."`
	Tokens  int    `json:"token_count" doc:"In prompts, cl100k_base."`
	Text    string `json:"text"`  // its words
	Usage   Usage  `json:"usage"` // of the call
	Cost    *int64 `json:"cost_micro_usd,omitempty" doc:"Of the call; absent if it is not known."`
	Refused string `json:"refused,omitempty" doc:"Why it is no longer sent; absent if the provider takes it back."`

	// The prompts that it is for; hashes.

	Account string `json:"-"` // llm.Info.Account
	Origin  string `json:"-"` // llm.Info.ThoughtOrigin
	Setup   string `json:"-"` // system prompt and tools
	Frozen  string `json:"-"` // the same as a PromptSetup, with which prompts go on to begin; empty = they do not keep it
	Start   string `json:"-"` // what preceded the messages in the call (llm.Prefix.Encode)
	// Prefixes are those of the messages that it replaces (llm.Prefix.Encode), one for each form
	// that they had in prompts, the newest first: thoughts that were produced behind one of them
	// stay valid behind it. Empty = all are lost.
	Prefixes []string `json:"-"`
}

// ContextChange is what a compaction wants to store, all in one compare-and-set:
// it is refused with ErrStale when the session's PromptRevision is not Expect.
type ContextChange struct {
	SessionID   SessionID
	Expect      int          // PromptRevision the plan was made from
	PromptState []byte       // the new contextwindow.PromptState as JSON
	Summary     *Summary     // the new version, active or, if its State says so, prepared; nil = none
	Setup       *PromptSetup // of the Summary's native one; nil = it has none, or the setup is stored
	Refused     string       // why the provider did not take back the native summary of the version in use; empty = it did
	Activate    *int         // version that comes into use, for the first time or again; 0 = no summary; nil = none does
	Events      []Event      // context.*, written with it
	ModelCalls  []ModelCall
	Failure     string // why the summary model failed, which counts; empty = it did not, or was not asked
}

// SummaryWork is what goes on with a session's summaries beside the one in use.
type SummaryWork struct {
	Revision int            // the session's PromptRevision
	Prepared SummaryVersion // version 0 = none
	Busy     bool           // somebody, in any process, is making a summary
	Since    *time.Time     // when that began; nil = nobody is
	Breaker  Breaker
}

// SummaryVersion is a version of the conversation's summary that can stand in a prompt,
// without its words: the one in use, one that is prepared, or an earlier one. It ends on
// the current path.
type SummaryVersion struct {
	ID         SummaryID    `json:"-"`
	Version    int          `json:"version" min:"1"`
	State      SummaryState `json:"state" enum:"prepared,active,dropped"`
	ThroughID  MessageID    `json:"-"`
	ThroughSeq int64        `json:"through_seq"`
	Tokens     int          `json:"tokens"`   // of its words, cl100k_base
	Messages   int          `json:"messages"` // covered, from the beginning of the session
	Covered    int          `json:"-"`        // their tokens, cl100k_base; compared with other versions only
	MadeFor    int          `json:"made_for"` // see Summary
	// KeepsThoughts: it is native, and the thoughts behind it stay valid.
	KeepsThoughts bool `json:"-"`
	// Frozen is the PromptSetup with which prompts begin where it is native; empty = with the current one.
	Frozen string `json:"-"`
}

// AsVersion returns the summary without its words.
func (s Summary) AsVersion() SummaryVersion {
	return SummaryVersion{
		ID: s.ID, Version: s.Version, State: s.State, ThroughID: s.ThroughID, ThroughSeq: s.ThroughSeq,
		Tokens: s.TokenCount, Messages: s.MessagesCovered, Covered: s.TokensCovered, MadeFor: s.MadeFor,
	}
}

// Breaker keeps a summary model that fails again and again from being asked. It
// closes by itself: after Until the model is tried once more.
type Breaker struct {
	Failures int        // in a row
	Reason   string     // of the last one, in words that may be shown
	Until    *time.Time // open until then; nil = closed
}

// The breaker opens at so many failures in a row, for so long.
const (
	BreakerFailures = 3
	BreakerTime     = 5 * time.Minute
)

// SummaryFailure is a summary that was tried and not made: nothing of the session's
// context changes.
type SummaryFailure struct {
	SessionID  SessionID
	Reason     string // why the model failed, which counts; empty = it is not to blame
	Events     []Event
	ModelCalls []ModelCall
}

// Triggers of versions that people make. Those that a plan makes are named by what
// fired, those that come with another branch by what changed the path.
const (
	TriggerManualEdit = "manual_edit" // written by the user
	TriggerRestore    = "restore"     // repeats an earlier version

	TriggerLargerModel = "larger_model" // of an older version that is in use again because a larger model answers
	StrategyEdited     = "edited"       // of summaries whose words are the user's
)

// SummaryEdit replaces the words of the active summary.
type SummaryEdit struct {
	Content string `json:"content" required:"true"`
	Version int    `json:"version" min:"1" max:"2147483647" doc:"The version that was edited; by default the active one."`
}

// SummaryRestore makes an earlier version the active one, all in one
// compare-and-set: it is refused with ErrStale when the session's PromptRevision is
// not Expect.
type SummaryRestore struct {
	SessionID   SessionID
	Expect      int
	Version     int    // 0 = no summary at all
	PromptState []byte // as in ContextChange
	Events      []Event
}

// SummaryDiff is how one version of a summary became another one.
type SummaryDiff struct {
	Version int      `json:"version" min:"1"`
	Against int      `json:"against" doc:"0 = none."`
	Added   int      `json:"added" doc:"Number of pieces, like the others."`
	Removed int      `json:"removed"`
	Equal   int      `json:"equal"`
	Ops     []DiffOp `json:"ops" doc:"Equal and added pieces form the text of the version, equal and removed ones that of the other."`
}

// DiffOp is neighboring pieces of text that one version, the other or both have. A
// piece is a sentence or a line, with the space behind it: equal and added ones
// together are the text of the version, equal and removed ones that of the other.
type DiffOp struct {
	Op     string   `json:"op" enum:"equal,added,removed"` // equal, added or removed
	Pieces []string `json:"pieces" doc:"Sentences or lines, with the space after them."`
}

// What a DiffOp does.
const (
	DiffEqual   = "equal"
	DiffAdded   = "added"
	DiffRemoved = "removed"
)

// PromptSetup is what the prompts of an agent begin with: its system prompt and its tools. It is
// stored with a session whose thoughts are bound to it, since the agent may change.
type PromptSetup struct {
	Hash         string // of the texts, 16 characters
	SystemPrompt string
	ToolUsage    string          // instructions for the use of tools; empty = none
	Tools        json.RawMessage // list of the definitions
}

// MaxPromptSetup bounds the bytes of a setup that is stored.
const MaxPromptSetup = 256 << 10

// setupHash is how many bytes of the hash are stored with a thought.
const setupHash = 12

// NewPromptSetup returns the setup of the texts with its hash; false if it cannot be stored: it is
// too large, or has characters that would not come back.
func NewPromptSetup(systemPrompt, toolUsage string, tools json.RawMessage) (s PromptSetup, storable bool) {
	s = PromptSetup{SystemPrompt: systemPrompt, ToolUsage: toolUsage, Tools: tools}
	fields := []string{systemPrompt, toolUsage, string(tools)}
	size, all := 0, []byte(nil)
	for _, f := range fields {
		size += len(f)
		all = append(binary.AppendUvarint(all, uint64(len(f))), f...)
	}
	sum := sha256.Sum256(all)
	s.Hash = base64.RawURLEncoding.EncodeToString(sum[:setupHash])
	return s, size <= MaxPromptSetup && CleanText(systemPrompt) == systemPrompt
}
