package nodes

// What became of a tool call, for the observer.
const (
	outcomeOK          = "ok"
	outcomeFailed      = "failed"
	outcomeTimeout     = "timeout"
	outcomePanicked    = "panicked"
	outcomeTooLarge    = "too_large"
	outcomeCanceled    = "canceled"
	outcomeUnknown     = "unknown"     // the agent has no such tool
	outcomeDenied      = "denied"      // a person did not approve it
	outcomeAnswered    = "answered"    // a person answered in its place
	outcomeInterrupted = "interrupted" // by a crash: an execution before this one had started it
)
