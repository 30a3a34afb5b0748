package api

import (
	"net/http"
	"strings"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
)

// openAIPrefix begins the paths of the OpenAI protocol.
const openAIPrefix = "/v1/"

// errorFormat is how the errors of a protocol look.
type errorFormat struct {
	mediaType string
	encode    func(p problem) ([]byte, error)
	frame     func(body []byte) []byte // in a stream that has begun
	status    func(p problem) int
}

// formatOf returns the format of errors on the path.
func formatOf(path string) errorFormat {
	if strings.HasPrefix(path, openAIPrefix) {
		return errorFormat{"application/json", encodeOpenAIError, openAIFrame, openAIStatus}
	}
	if path == mcpRoute {
		return errorFormat{"application/json", encodeMCPError, handlers.ErrorFrame, openAIStatus}
	}
	return errorFormat{"application/problem+json", func(p problem) ([]byte, error) { return core.EncodeJSON(p) }, handlers.ErrorFrame, func(p problem) int { return p.Status }}
}

// openAIError is an error as the OpenAI API writes it.
type openAIError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"` // a field of the body; nil = none
	Code    string  `json:"code"`
}

// encodeOpenAIError returns the body of an error. Its message names all faults: the format has
// room for one field only.
func encodeOpenAIError(p problem) ([]byte, error) {
	e := openAIError{Message: p.Detail, Type: openAIType(p), Code: p.Code}
	if e.Code == codeContextFloor {
		e.Code = "context_length_exceeded" // which clients know
	}
	for i, fault := range p.Errors {
		if i == 0 {
			e.Param, e.Message = &p.Errors[0].Field, ""
		} else {
			e.Message += "; "
		}
		e.Message += fault.Field + " " + fault.Detail
	}
	return core.EncodeJSON(struct {
		Error openAIError `json:"error"`
	}{e})
}

// openAIType returns the class of an error, which clients show.
func openAIType(p problem) string {
	switch status := openAIStatus(p); {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= http.StatusInternalServerError:
		return "server_error"
	default:
		return "invalid_request_error"
	}
}

// openAIStatus returns the status of an error: the API answers bad requests with 400.
func openAIStatus(p problem) int {
	if p.Status == http.StatusUnprocessableEntity {
		return http.StatusBadRequest
	}
	return p.Status
}

func openAIFrame(body []byte) []byte {
	return append(append([]byte("data: "), body...), "\n\n"...)
}

// mcpError is an error before a message is read, as JSON-RPC writes it.
type mcpError struct {
	Version string  `json:"jsonrpc"`
	ID      *string `json:"id"` // nil: the message is not known
	Error   struct {
		Code    int            `json:"code"`
		Message string         `json:"message"`
		Data    map[string]any `json:"data"`
	} `json:"error"`
}

// Codes of JSON-RPC.
const (
	rpcInvalidRequest = -32600
	rpcInternal       = -32603
)

// encodeMCPError returns the body of an error of the MCP endpoint. The status says more to clients.
func encodeMCPError(p problem) ([]byte, error) {
	e := mcpError{Version: "2.0"}
	e.Error.Code, e.Error.Message = rpcInvalidRequest, p.Detail
	if p.Status >= http.StatusInternalServerError {
		e.Error.Code = rpcInternal
	}
	e.Error.Data = map[string]any{"code": p.Code, "request_id": p.RequestID}
	return core.EncodeJSON(e)
}
