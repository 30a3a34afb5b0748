package client

import (
	"context"
	"net/url"

	"bobbin/app/core"
)

// Agents returns the configured agents.
func (c *Client) Agents(ctx context.Context) ([]core.Agent, error) {
	page, err := call[core.Page[core.Agent]](ctx, c, get("/api/v1/agents", nil))
	return page.Items, err
}

// Agent returns one agent.
func (c *Client) Agent(ctx context.Context, name string) (core.Agent, error) {
	return call[core.Agent](ctx, c, get("/api/v1/agents/"+url.PathEscape(name), nil))
}

// Graph returns an agent's graph.
func (c *Client) Graph(ctx context.Context, name string) (core.GraphView, error) {
	return call[core.GraphView](ctx, c, get("/api/v1/agents/"+url.PathEscape(name)+"/graph", nil))
}

// Mermaid returns an agent's graph as a Mermaid drawing.
func (c *Client) Mermaid(ctx context.Context, name string) (string, error) {
	response, err := c.send(ctx, get("/api/v1/agents/"+url.PathEscape(name)+"/graph", url.Values{"format": {"mermaid"}}))
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := readAnswer(response)
	return string(text), err
}

// Version is which program the server is.
type Version struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Date    string `json:"date"`
	Go      string `json:"go"`
}

// Version returns which program the server is. It is also the cheapest way to
// find out whether a server is there and takes the key.
func (c *Client) Version(ctx context.Context) (Version, error) {
	return call[Version](ctx, c, get("/version", nil))
}

// Metrics returns the server's metrics in Prometheus' text format. The key must be
// one that may read them.
func (c *Client) Metrics(ctx context.Context) (string, error) {
	response, err := c.send(ctx, get("/metrics", nil))
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := readAnswer(response)
	return string(text), err
}
