package openai

import (
	"crypto/sha256"

	"bobbin/app/core"
)

// historyHash identifies the turns of a conversation.
type historyHash [sha256.Size]byte

// hashHistory returns the hash of the turns.
func hashHistory(turns []turn) historyHash {
	var h historyHash
	for _, t := range turns {
		h = h.addTurn(t.user, t.answer)
	}
	return h
}

// addTurn returns the hash of the conversation with one more turn.
func (h historyHash) addTurn(user, answer string) historyHash {
	sum := sha256.New()
	sum.Write(h[:])
	sum.Write([]byte(user))
	sum.Write([]byte{0})
	sum.Write([]byte(answer))
	return historyHash(sum.Sum(nil))
}

// leaf is the end of a session's current path.
type leaf struct {
	history historyHash
	message core.MessageID
	lastSeq int64 // of the session: other messages may have come since
}

// storeLeaf stores the end of the conversation after an answer.
func (a *API) storeLeaf(run activeRun, ans *answer) {
	if run.user == nil || ans.leaf == "" || !ans.ended || len(ans.open) > 0 {
		return
	}
	a.leaves.Set(run.run.SessionID, leaf{history: run.history.addTurn(*run.user, ans.text()), message: ans.leaf, lastSeq: ans.leafSeq})
}
