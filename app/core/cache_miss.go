package core

// CacheMiss says why a provider's cache could not have all of a session's previous prompt for a
// model call: that prompt does not begin the new one, or the provider no longer had it.
type CacheMiss struct {
	Call      int         `json:"call"`                 // of the run's model calls, from 1
	Part      PromptPart  `json:"part"`                 // the first that differs
	Index     int         `json:"index,omitempty"`      // of the first message that differs, in the prompt, from 1
	Within    int         `json:"within,omitempty"`     // it is one of that many messages from Index on; 0 = it is that one
	MessageID MessageID   `json:"message_id,omitempty"` // at Index; empty = not of the log
	Seq       int64       `json:"seq,omitempty"`
	Reason    CacheReason `json:"reason"`
	Provider  string      `json:"provider,omitempty"` // what the provider says itself, at most 200 bytes; empty = it was not asked, or says nothing
}

// PromptPart is a part of a prompt, in the order of a cache.
type PromptPart string

// The parts.
const (
	PromptModel     PromptPart = "model" // a cache is of one model and account
	PromptSystem    PromptPart = "system"
	PromptTools     PromptPart = "tools" // or the format of the answer, or the effort
	PromptOfMessage PromptPart = "message"
	PromptSame      PromptPart = "none" // the previous prompt begins the new one
)

// CacheReason is why a part differs.
type CacheReason string

// The reasons.
const (
	CacheOtherModel    CacheReason = "model"
	CacheConfiguration CacheReason = "configuration" // the agent, its tools, instructions or pinned messages
	CacheCompaction    CacheReason = "compaction"
	CacheRecalled      CacheReason = "recalled" // passages that were recalled for one message
	CacheStanding      CacheReason = "standing" // the list of standing instructions
	CacheMessages      CacheReason = "messages" // another message is there: an edited or deleted one, or another branch
	CacheExpired       CacheReason = "expired"  // nothing differs: the provider read less than 90 % from its cache of what it had
	CacheReported      CacheReason = "reported" // nothing differs that Bobbin compares: only the provider reports a difference
)
