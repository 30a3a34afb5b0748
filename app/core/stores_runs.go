package core

import "context"

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
