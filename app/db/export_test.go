package db

import "context"

// CheckHeld is check, and reports whether the name is held then.
func (n *ReplicaName) CheckHeld(ctx context.Context) bool {
	n.check(ctx)
	return n.conn != nil
}

// Start tells this start from others.
func (n *ReplicaName) Start() string { return n.start }
