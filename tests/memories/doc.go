// Package memories tests the use cases of memories over both databases: that the
// index in memory, the scan of the rows and several replicas find the same, whatever
// is written and whatever the embedder does.
package memories
