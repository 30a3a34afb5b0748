package db

import "context"

// CheckHeld is check.
func (n *ReplicaName) CheckHeld(ctx context.Context) { n.check(ctx) }

// Held returns the name that is held; nil = another process has it.
func (n *ReplicaName) Held() *ReplicaLock { return n.held }

// Start tells this start from others.
func (n *ReplicaName) Start() string { return n.start }
