package runs

import (
	"context"
	"errors"
	"fmt"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Why an execution was stopped, besides core.ErrCanceled.
var (
	errLost       = errors.New("the run belongs to another attempt")
	errHandedBack = errors.New("the process stops: the run is handed back")
	errRunTime    = errors.New("the run exceeded its time limit")
	errPanic      = errors.New("panic") // logged with its stack where it was recovered
	errNoEnd      = errors.New("the engine returned before the run had ended")
	errGaveUp     = errors.New("processes died while executing the run, the last one while executing nothing else")
)

// internal is what users see of an internal error.
const internal = "Something went wrong inside the server, and nothing of it is your fault. " +
	"Send the message again; if it happens again, give the operator the id of this run."

// runError returns what users may see of the error that ended a run: a stable code, and a
// sentence that says what to do, with the provider's own words if it refused the request.
// Everything else stays in the log.
func runError(err error) core.RunError {
	var e *core.Error
	shown := errors.As(err, &e)
	if shown && e.Code != "" {
		return core.RunError{Code: e.Code, Message: e.Message}
	}
	if m := llm.AsError(err); m != nil {
		e := modelError(m.Kind)
		if words := m.Words(); words != "" {
			e.Message += fmt.Sprintf(" The provider says: %q", words)
		}
		return e
	}
	for _, k := range []errorKind{
		{errRunTime, "run_timeout", "The answer exceeded the time limit of a run and was stopped. Ask for less at once, or raise the time limit."},
		{errGaveUp, "gave_up", "The server process ended each time it worked on this answer, so the server does not retry by itself. Regenerate the answer to try once more; if that fails, too, start a new conversation."},
		{core.ErrContextFloor, "context_floor", "The prompt cannot be made to fit the model's context window. Choose a model with a larger window, or shorten the system prompt, the tools or the message."},
		{core.ErrModel, "model_error", "The model failed. Send the message again, or choose another model."},
		{core.ErrTimeout, "timeout", "A time limit passed before the answer was ready. Send the message again."},
		{context.DeadlineExceeded, "timeout", "A time limit passed before the answer was ready. Send the message again."},
		{core.ErrRateLimited, "rate_limited", "Too many requests at once. Wait a moment and send the message again."},
		{core.ErrUnavailable, "unavailable", "A part of the server cannot be reached at the moment. Send the message again later."},
		{core.ErrTooLarge, "too_large", "Something in this conversation is larger than allowed. Shorten the message."},
		{core.ErrNotFound, "not_found", "Something that the answer needs no longer exists. Check the session's agent and model."},
		{core.ErrInvalid, "invalid", "The session's settings are not valid. Check its agent and model."},
		{core.ErrUnprocessable, "unprocessable", "The message could not be processed. Change it and send it again."},
		{core.ErrForbidden, "forbidden", "This is not allowed."},
	} {
		if !errors.Is(err, k.kind) {
			continue
		}
		if shown && errors.Is(e, k.kind) {
			return core.RunError{Code: k.code, Message: e.Message}
		}
		return core.RunError{Code: k.code, Message: k.message}
	}
	return core.RunError{Code: "internal", Message: internal}
}

// errorKind maps a kind of error to the code and message of a failed run.
type errorKind struct {
	kind    error
	code    string
	message string // when the error has none that may be shown
}

// modelError returns what users may see of a failed model call.
func modelError(kind llm.ErrorKind) core.RunError {
	message, known := map[llm.ErrorKind]string{
		llm.KindRateLimit:          "The model's provider is limiting requests at the moment. Wait a minute and send the message again.",
		llm.KindAuth:               "The model's provider did not accept the API key. Check the provider's key in the server's configuration.",
		llm.KindTimeout:            "The model did not answer in time. Send the message again, or choose a faster model.",
		llm.KindOverloaded:         "The model's provider is overloaded or unavailable. Send the message again later, or choose another model.",
		llm.KindContextLength:      "The provider refused the prompt as too long, and making it shorter did not help. Choose a model with a larger window, or check the configured context window of this one.",
		llm.KindNotFound:           "The provider does not know this model, or its address is wrong. Choose another model, or check the name and the base_url in the configuration; a base_url usually ends in /v1.",
		llm.KindInvalid:            "The provider did not accept the request. Choose another model, check the model's configuration, or edit the message.",
		llm.KindNetwork:            "The model's provider could not be reached. Check the network and the provider's URL, then send the message again.",
		llm.KindTruncated:          "The model's answer was cut off. Send the message again.",
		llm.KindContentFilter:      "The provider's content filter stopped the answer. Rephrase the message; if the filter also stops answers to other messages, delete or edit the one that it objects to.",
		llm.KindEmpty:              "The model ended its answer without saying anything. Send the message again, or choose another model.",
		llm.KindOutputLimit:        "The model reached max_output_tokens before the first word of its answer: it thought for too long. Raise max_output_tokens, or lower reasoning_effort.",
		llm.KindCompactionRefused:  "The provider did not take back its own summary of the conversation. Send the message again.",
		llm.KindToolChangesRefused: "The provider did not take the changes of the agent's tools. Send the message again.",
	}[kind]
	if !known {
		kind, message = "error", "The model failed. Send the message again, or choose another model."
	}
	return core.RunError{Code: "model_" + string(kind), Message: message}
}
