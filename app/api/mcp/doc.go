// Package mcp serves the Model Context Protocol over Bobbin's own use cases: tools and resources
// for the models of other programs, at one endpoint.
//
// The endpoint is stateless streamable HTTP: no request depends on an earlier one, so any replica
// answers any of them. The official SDK speaks the protocol; this package has the tools. A caller
// sees and calls what the scopes of its key or token allow.
//
// A tool that waits for a run only listens: the run continues when the call ends.
package mcp
