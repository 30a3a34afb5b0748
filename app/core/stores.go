package core

import (
	"context"
	"time"
)

// The stores of the nouns of this package. Package repositories implements them over SQL, and
// package coretest in memory; coretest.TestStores is the suite that both pass.
//
// Every method MUST return ErrNotFound for what is outside of the tenant, and be safe for
// concurrent use. A method that changes a session returns the events to be published, in
// order; they are committed together with the change.

// SessionStore stores sessions, with the state of their contexts.
type SessionStore interface {
	// Get returns the session, archived or not.
	Get(ctx context.Context, tenant Tenant, id SessionID) (Session, error)
	// Create assigns a missing id and missing times. ErrConflict for an id that exists.
	Create(ctx context.Context, s Session) (Session, error)
	List(ctx context.Context, tenant Tenant, q SessionQuery) (Page[Session], error)
	// Update MUST change and emit nothing for a patch without fields.
	Update(ctx context.Context, tenant Tenant, id SessionID, p SessionPatch) (Session, []Event, error)
	// GiveTitle MUST keep a title that a user has set, even an empty one.
	GiveTitle(ctx context.Context, tenant Tenant, t NewTitle) ([]Event, error)

	// What prompts are made of, and who makes the summaries.

	// ApplyContext MUST return ErrStale when the prompt revision is no longer the expected one,
	// and when the version to be activated can no longer be used.
	ApplyContext(ctx context.Context, tenant Tenant, change ContextChange) (Session, []Event, error)
	// RestoreSummary makes an earlier version the active one; ErrStale as for ApplyContext.
	RestoreSummary(ctx context.Context, tenant Tenant, in SummaryRestore) (Session, []Event, error)
	// SummaryWork returns the state of the session's background summaries.
	SummaryWork(ctx context.Context, tenant Tenant, id SessionID) (SummaryWork, error)
	// SummaryFailed stores a failed attempt at a summary with its model calls.
	SummaryFailed(ctx context.Context, tenant Tenant, f SummaryFailure) ([]Event, error)
	// LeaseSummary MUST let one holder at a time summarize the session, across all processes,
	// for d by the store's clock. A holder that has the lease extends it.
	LeaseSummary(ctx context.Context, tenant Tenant, id SessionID, holder string, d time.Duration) (LeaseResult, error)
	// FreeSummary ends the holder's lease. The lease of another holder MUST stay.
	FreeSummary(ctx context.Context, id SessionID, holder string) error
}

// MessageStore stores the logs of sessions.
type MessageStore interface {
	// Get returns a message of any branch, deleted or not, with its revisions.
	Get(ctx context.Context, tenant Tenant, session SessionID, id MessageID) (Message, error)
	List(ctx context.Context, tenant Tenant, session SessionID, q MessageQuery) (Page[Message], error)
	// Append MUST return the stored message and change nothing when the session already knows
	// its client id. ErrConflict for an archived session and for one with a run.
	Append(ctx context.Context, tenant Tenant, in AppendMessages) (Appended, error)

	// What prompts are made of.

	// GetMessagesAfter returns the messages of the conversation after one of them, in order. It
	// and Pinned may omit the texts of old messages (Message.Unloaded); GetMessages loads them.
	GetMessagesAfter(ctx context.Context, tenant Tenant, id SessionID, after MessageID) ([]Message, error)
	// GetMessages returns those of the messages that still exist, with their texts; without a
	// session those of all sessions of the tenant that are not archived.
	GetMessages(ctx context.Context, tenant Tenant, id SessionID, ids []MessageID) ([]Message, error)
	Pinned(ctx context.Context, tenant Tenant, id SessionID) ([]Message, error)
	// Refused returns the turns that a provider has refused or a filter cut off, in order; never nil.
	Refused(ctx context.Context, tenant Tenant, id SessionID) ([]RefusedTurn, error)
	// CountOnPath returns the number of messages of the conversation up to a seq.
	CountOnPath(ctx context.Context, tenant Tenant, id SessionID, through int64) (int, error)
}

// SummaryStore reads summaries; a SessionStore writes them.
type SummaryStore interface {
	// List returns the versions of a session's summary, the newest first.
	List(ctx context.Context, tenant Tenant, id SessionID, q PageQuery) (Page[Summary], error)
	// Find returns those of the summaries that still exist.
	Find(ctx context.Context, tenant Tenant, id SessionID, ids []SummaryID) ([]Summary, error)
	// Versions returns the versions that a prompt can use, ordered by what they cover.
	Versions(ctx context.Context, tenant Tenant, id SessionID) ([]SummaryVersion, error)
	// Covered returns the tokens of the messages that each version covers, also of those undone.
	Covered(ctx context.Context, tenant Tenant, id SessionID) (map[int]int, error)
	// Loops returns the notes on tool loops that are in use with the cursor at after.
	Loops(ctx context.Context, tenant Tenant, id SessionID, after int64) ([]Summary, error)
	Get(ctx context.Context, tenant Tenant, id SessionID, version int) (Summary, error)
	// Before returns the newest version before the given one that still has its text.
	Before(ctx context.Context, tenant Tenant, id SessionID, version int) (Summary, error)
	// Restorable is Get, with an error that says why the version cannot be restored.
	Restorable(ctx context.Context, tenant Tenant, id SessionID, version int) (Summary, error)
	// FirstCovering returns the first version that covered a seq of the path; 0 = none.
	FirstCovering(ctx context.Context, tenant Tenant, id SessionID, seq int64) (int, error)
}

// EventStore reads the durable events of sessions. The caller of Page and LastOf MUST have
// checked access to the sessions.
type EventStore interface {
	// Page returns up to limit events with a greater number, in order, as many as MaxPageBytes
	// allows but at least one, and whether there may be more.
	Page(ctx context.Context, session SessionID, after int64, limit int) ([]Event, bool, error)
	// Last returns the number of the session's newest event; 0 = none yet.
	Last(ctx context.Context, tenant Tenant, session SessionID) (int64, error)
	// LastOf is Last for several sessions of any owner. Sessions that do not exist are left out.
	LastOf(ctx context.Context, sessions []SessionID) (map[SessionID]int64, error)
	// Heads returns the heads of those of the sessions that are in the scope.
	Heads(ctx context.Context, tenant Tenant, sessions []SessionID) ([]SessionHead, error)
}

// SearchStore searches messages.
type SearchStore interface {
	// Messages returns the messages with the query's words, the newest first.
	Messages(ctx context.Context, tenant Tenant, q SearchQuery) (SearchPage, error)
}

// BlobStore stores images and files.
type BlobStore interface {
	// Put stores the content with the text of a document, if it has any.
	Put(ctx context.Context, b Blob, content BlobContent, room BlobRoom) (Blob, error)
	Get(ctx context.Context, tenant Tenant, id BlobID) (Blob, error)
	// Find returns a file of any owner.
	Find(ctx context.Context, id BlobID) (Blob, error)
	Open(ctx context.Context, tenant Tenant, id BlobID) (Blob, []byte, error)
	List(ctx context.Context, tenant Tenant, q BlobQuery) (Page[Blob], error)
	Delete(ctx context.Context, tenant Tenant, id BlobID) error
	// Text returns the text of a document that the owner has stored, by the content's hash.
	Text(ctx context.Context, owner, sha256 string) (text DocumentText, ok bool, err error)
	// SigningKey returns the key that signs links.
	SigningKey(ctx context.Context) ([]byte, error)
	// Sweep removes files that no message has referred to since before.
	Sweep(ctx context.Context, before time.Time) (SweptBlobs, error)
	// Contents returns what is there of the blobs.
	Contents(ctx context.Context, tenant Tenant, ids []BlobID) (map[BlobID][]byte, error)
	// Texts returns the text that was read out of each of the blobs that has some.
	Texts(ctx context.Context, tenant Tenant, ids []BlobID) (map[BlobID][]byte, error)
}

// UsageStore sums up model calls.
type UsageStore interface {
	SessionTotal(ctx context.Context, tenant Tenant, session SessionID) (UsageTotal, error)
	Usage(ctx context.Context, tenant Tenant, q UsageQuery) (UsageReport, error)
	// OfRun returns the calls of a run that was read in the caller's scope, in the order in which they
	// ended: its answers, and the summaries that it waited for.
	OfRun(ctx context.Context, run Run) ([]ModelCall, error)
	// Spent returns the usage of the owner on the UTC day that begins at the given time.
	Spent(ctx context.Context, owner string, day time.Time) (Spent, error)
}

// DeliveryStore stores deliveries.
type DeliveryStore interface {
	// Claim MUST give concurrent callers different deliveries, each with its next attempt.
	Claim(ctx context.Context, c DeliveryClaim) ([]Delivery, error)
	// Settle stores the result of an attempt. It MUST return ErrStale for one that is over.
	Settle(ctx context.Context, s Settlement) ([]Event, error)
	// GiveUpReceiver gives up old deliveries to a receiver that was not reached for a long time.
	// It returns an event for each of them, none if there are no more.
	GiveUpReceiver(ctx context.Context, in ReceiverGivenUp) ([]Event, error)
	// Release ends the leases of the worker; with all also those of earlier processes of its
	// replica.
	Release(ctx context.Context, worker string, all bool) error
	// List returns the deliveries of a run in the order of their creation.
	List(ctx context.Context, tenant Tenant, run RunID) ([]Delivery, error)
	// ListAll returns the deliveries of all runs, the newest first.
	ListAll(ctx context.Context, tenant Tenant, q DeliveryQuery) (Page[Delivery], error)
	// Retry makes a delivery due immediately. ErrConflict while a process is sending it.
	Retry(ctx context.Context, tenant Tenant, run RunID, id DeliveryID) (Delivery, []Event, error)
}

// APIKeyStore stores API keys. No error may contain a hash.
type APIKeyStore interface {
	// Create stores a key, together with the entry in the audit log. So does Revoke.
	Create(ctx context.Context, key APIKey, hash string, entry AuditEntry) error
	// Revoke MUST take effect immediately.
	Revoke(ctx context.Context, id KeyID, entry AuditEntry) error
	// List returns all keys, including revoked ones, the oldest first.
	List(ctx context.Context) ([]APIKey, error)
	// ByHash returns the key of a secret, valid or not; ErrNotFound if there is none.
	ByHash(ctx context.Context, hash string) (APIKey, error)
	// ByIDs returns those of the keys that exist.
	ByIDs(ctx context.Context, ids []KeyID) ([]APIKey, error)
	// Used stores when keys were last used.
	Used(ctx context.Context, at map[KeyID]time.Time) error
}

// RunStore stores runs.
type RunStore interface {
	Get(ctx context.Context, tenant Tenant, id RunID) (Run, error)
	// Active returns the session's run that is running or waiting; ErrNotFound if there is none.
	Active(ctx context.Context, tenant Tenant, session SessionID) (Run, error)
	// List returns the runs of a session, the newest first.
	List(ctx context.Context, tenant Tenant, session SessionID, q PageQuery) (Page[Run], error)
	// ListAll returns the runs of all sessions, the newest first.
	ListAll(ctx context.Context, tenant Tenant, q RunQuery) (RunList, error)
	// Reports returns the context reports of the newest runs of a session, oldest first, and how
	// many runs are older than these.
	Reports(ctx context.Context, tenant Tenant, session SessionID, limit int) ([]RunReport, int, error)
	// Repeated returns the run that a client_message_id began in a session; ErrNotFound if there
	// is none.
	Repeated(ctx context.Context, tenant Tenant, session SessionID, clientMessageID string) (Run, error)
	// Pending returns the queued runs of a session in the order in which they will start.
	Pending(ctx context.Context, tenant Tenant, session SessionID) ([]Run, error)
	// Accept stores a run with its message. A message that is repeated MUST return the run that
	// it began.
	Accept(ctx context.Context, tenant Tenant, in AcceptRun) (Accepted, error)
	// RequestCancel cancels a queued run and marks a running one for its worker. It may be
	// repeated.
	RequestCancel(ctx context.Context, tenant Tenant, id RunID) (Run, []Event, error)
	// Decide decides an approval. The first decision MUST count: another one is ErrConflict.
	Decide(ctx context.Context, tenant Tenant, run RunID, id ApprovalID, d ApprovalDecision) (Decided, error)
	// AnswerCalls gives calls of a client's tools their results: all of them or none. The first
	// result of a call MUST count: another one is ErrConflict with CodeCallDecided. A call that
	// no run of the session waits for, or waited for, is ErrNotFound with CodeNoToolCall.
	AnswerCalls(ctx context.Context, tenant Tenant, in AnswerCalls) (Decided, error)
	// Approvals returns the run's approvals, decided or not, in the order of the requests: those
	// of the calls, or all if none is named.
	Approvals(ctx context.Context, run RunID, calls ...string) ([]Approval, error)
	// Allowed returns the definitions of the tools, asked for once, that were approved in the session.
	Allowed(ctx context.Context, session SessionID, tools []string) (map[string]bool, error)

	// What attempts of runs produce. StartTools, Write and SavePartial MUST return ErrStale for
	// an attempt that is over.

	// StartTools MUST have committed the starts when it returns.
	StartTools(ctx context.Context, run RunID, attempt int, starts []ToolExecution) error
	// ToolExecutions returns the executions of a run in the order of their starts.
	ToolExecutions(ctx context.Context, run RunID) ([]ToolExecution, error)
	// Write commits one step of a run, all of it or nothing. A write that is repeated MUST
	// return the result of the first.
	Write(ctx context.Context, w RunWrite) (Written, error)
	// SavePartial stores the partial text of the answer.
	SavePartial(ctx context.Context, run RunID, attempt int, text string) error

	// The queue hands runs to workers, which are processes (NewWorker), under leases.

	// Claim starts the session's oldest queued run and leases it to the worker. It MUST start
	// none while another run of the session is active: ErrNotFound. Repeated by the same worker,
	// it returns the same run.
	Claim(ctx context.Context, session SessionID, worker string) (Claimed, error)
	// Due counts the runs that TakeOver would lease to the worker, by their deaths after it.
	Due(ctx context.Context, worker string, lapsed bool) (map[int]int, error)
	// TakeOver leases runs without a live worker. Concurrent callers MUST get different runs.
	TakeOver(ctx context.Context, t TakeOver) ([]Run, error)
	// CountDeath stores the deaths of a run that was taken over with TakeOver.Later.
	CountDeath(ctx context.Context, run RunID, attempt, deaths int) error
	// Waiting returns sessions with queued runs and no active one, the longest waiting first.
	Waiting(ctx context.Context, limit int) ([]SessionID, error)
	// Renew extends the worker's leases, and returns the runs whose leases it has lost.
	Renew(ctx context.Context, worker string, runs []RunID) (lost []RunID, err error)
	// Release ends the worker's leases of the runs, or all if none is named.
	Release(ctx context.Context, worker string, runs ...RunID) error
	// Yield gives back a run whose attempt could not reach the store.
	Yield(ctx context.Context, run RunID, attempt int) error
	// CancelRequested returns the worker's runs for which a cancel was requested.
	CancelRequested(ctx context.Context, worker string) ([]RunID, error)
	// ExpireApprovals closes the expired approvals of at most limit runs, which then continue.
	ExpireApprovals(ctx context.Context, limit int) ([]Event, error)
}

// Publisher publishes committed events to the watchers of their sessions. Its methods
// MUST NOT fail, and MUST NOT wait for a watcher.
type Publisher interface {
	Publish(ctx context.Context, events []Event)
	// Delta publishes an event that is not stored.
	Delta(ctx context.Context, e Event)
}

// Wakeups wake other processes. They may be lost: whoever relies on them also sweeps.
type Wakeups interface {
	Send(ctx context.Context, signal Wakeup)
	// Listen passes the wakeups of other processes to handle until ctx ends.
	Listen(ctx context.Context, handle func(Wakeup))
}

// TextCounter counts the tokens of texts in cl100k_base.
type TextCounter interface {
	Text(s string) int
}

// AgentCatalog holds the configured agents.
type AgentCatalog interface {
	// Get returns ErrNotFound for an unknown agent.
	Get(name string) (Agent, error)
	List() []Agent
}
