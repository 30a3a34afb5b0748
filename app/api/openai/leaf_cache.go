package openai

import (
	"crypto/sha256"
	"sync"

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

// maxLeaves bounds the leaf cache; when it is full, it is cleared.
const maxLeaves = 10_000

// leafCache has the last messages of the conversations of clients, so that a request that
// continues one need not load its log. Safe for concurrent use.
type leafCache struct {
	mu     sync.Mutex
	leaves map[core.SessionID]leaf // guarded by mu
}

// leaf is the end of a session's current path.
type leaf struct {
	history historyHash
	message core.MessageID
	lastSeq int64 // of the session: other messages may have come since
}

func newLeafCache() *leafCache { return &leafCache{leaves: map[core.SessionID]leaf{}} }

// findLeaf returns the last message of the conversation if it ends where the session does.
func (l *leafCache) findLeaf(session core.Session, history historyHash) (core.MessageID, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	end, ok := l.leaves[session.ID]
	return end.message, ok && end.history == history && end.lastSeq == session.LastSeq
}

// storeLeaf stores the end of the conversation after an answer.
func (l *leafCache) storeLeaf(run activeRun, a *answer) {
	if run.user == nil || a.leaf == "" || !a.ended || len(a.open) > 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.leaves) >= maxLeaves {
		clear(l.leaves)
	}
	l.leaves[run.run.SessionID] = leaf{history: run.history.addTurn(*run.user, a.text()), message: a.leaf, lastSeq: a.leafSeq}
}
