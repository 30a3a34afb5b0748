package client

import (
	"context"
	"net/url"

	"bobbin/app/core"
)

// Agents returns the configured agents.
func (c *Client) Agents(ctx context.Context) ([]core.AgentDetail, error) {
	page, err := callJSON[core.Page[core.AgentDetail]](ctx, c, getRequest("/api/v1/agents", nil))
	return page.Items, err
}

// ReloadAgents makes the server read the agent files again, and returns the result for each.
// It needs the token of the server's data folder, which the command line has.
func (c *Client) ReloadAgents(ctx context.Context) (core.Page[core.AgentFile], error) {
	return callJSON[core.Page[core.AgentFile]](ctx, c, postRequest("/internal/v1/agents/reload", nil))
}

// Agent returns one agent.
func (c *Client) Agent(ctx context.Context, name string) (core.AgentDetail, error) {
	return callJSON[core.AgentDetail](ctx, c, getRequest("/api/v1/agents/"+url.PathEscape(name), nil))
}

// Metrics returns the server's metrics in Prometheus' text format. The key needs the scope
// metrics.
func (c *Client) Metrics(ctx context.Context) (string, error) {
	text, err := c.sendAndRead(ctx, getRequest("/metrics", nil))
	return string(text), err
}
