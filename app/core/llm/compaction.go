package llm

import "bobbin/app/core"

// MaxCompaction is how many bytes the text and the signature of a compaction may have, each.
const MaxCompaction = 1 << 20

// SplitCompaction returns the compaction with which the prompt begins and the messages behind it;
// nil and all messages = it begins with none.
func (r Request) SplitCompaction() (*core.Part, []Message) {
	if len(r.Messages) == 0 {
		return nil, r.Messages
	}
	first := r.Messages[0]
	if first.Role != core.RoleUser || first.Content != "" || len(first.Parts) != 1 || first.Parts[0].Type != core.PartCompaction {
		return nil, r.Messages
	}
	return &first.Parts[0], r.Messages[1:]
}

// WithKind returns the refusal of a prompt as one of another kind.
func (e *Error) WithKind(kind ErrorKind) *Error {
	refused := *e
	refused.Kind, refused.Unclear = kind, false
	return &refused
}
