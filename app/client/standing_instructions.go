package client

import (
	"context"
	"net/http"
	"net/url"

	"bobbin/app/core"
)

// instructionText is the body of requests that set the text of a standing instruction.
type instructionText struct {
	Text string `json:"text"`
}

// StandingInstructions returns a page of what users set for the whole conversation, newest
// first.
func (c *Client) StandingInstructions(ctx context.Context, id core.SessionID, q core.PageQuery) (core.Page[core.StandingInstruction], error) {
	return callJSON[core.Page[core.StandingInstruction]](ctx, c, getRequest(sessionPath(id, "/standing-instructions"), pageQuery(q)))
}

// AddInstruction adds a standing instruction and returns it.
func (c *Client) AddInstruction(ctx context.Context, session core.SessionID, text string) (core.StandingInstruction, error) {
	return callJSON[core.StandingInstruction](ctx, c, postRequest(sessionPath(session, "/standing-instructions"), instructionText{text}))
}

// EditInstruction replaces the text of a standing instruction and returns it. The error is
// core.ErrUnprocessable if it no longer stands.
func (c *Client) EditInstruction(ctx context.Context, session core.SessionID, id core.InstructionID, text string) (core.StandingInstruction, error) {
	return callJSON[core.StandingInstruction](ctx, c, request{method: http.MethodPatch, path: instructionPath(session, id), body: instructionText{text}})
}

// RemoveInstruction removes a standing instruction; the message in which it was recognized
// stays.
func (c *Client) RemoveInstruction(ctx context.Context, session core.SessionID, id core.InstructionID) error {
	return c.sendDelete(ctx, instructionPath(session, id), nil)
}

func instructionPath(session core.SessionID, id core.InstructionID) string {
	return sessionPath(session, "/standing-instructions/"+url.PathEscape(string(id)))
}
