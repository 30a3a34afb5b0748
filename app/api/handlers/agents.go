package handlers

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// Agents answers /api/v1/agents.
type Agents struct {
	catalog agentCatalog
	models  func(preferred string) []core.ModelChoice
}

// NewAgents returns the handlers of agents.
func NewAgents(s Services) *Agents { return &Agents{catalog: s.Agents, models: s.Models} }

// List answers all agents.
func (h *Agents) List(c *gin.Context) error {
	var page core.Page[core.AgentDetail]
	for _, agent := range h.catalog.List() {
		page.Items = append(page.Items, core.AgentDetail{Agent: agent, Models: h.models(agent.Model)})
	}
	return writePage(c, page)
}

// Get answers one agent.
func (h *Agents) Get(c *gin.Context) error {
	agent, err := h.catalog.Get(c.Param("name"))
	return respond(c, http.StatusOK, core.AgentDetail{Agent: agent, Models: h.models(agent.Model)}, err)
}

// Graph answers an agent's graph: as JSON, or with ?format=mermaid as the text of
// a Mermaid drawing.
func (h *Agents) Graph(c *gin.Context) error {
	q := readQuery(c, "format")
	format := q.wordParam("format", "json", "mermaid")
	if err := q.err(); err != nil {
		return err
	}
	if format != "mermaid" {
		graph, err := h.catalog.Graph(c.Param("name"))
		if err != nil {
			return err
		}
		return writeJSON(c, http.StatusOK, graph)
	}
	drawing, err := h.catalog.Mermaid(c.Param("name"))
	if err != nil {
		return err
	}
	Write(c, http.StatusOK, "text/plain; charset=utf-8", []byte(drawing))
	return nil
}

// AgentReload answers /internal/v1/agents/reload, which only the command line may call.
type AgentReload struct {
	reload func(ctx context.Context) ([]core.AgentFile, error)
}

// NewAgentReload returns the handler.
func NewAgentReload(reload func(ctx context.Context) ([]core.AgentFile, error)) *AgentReload {
	return &AgentReload{reload: reload}
}

// Reload reloads the agents' files and answers the result of each.
func (h *AgentReload) Reload(c *gin.Context) error {
	files, err := h.reload(c.Request.Context())
	if err != nil {
		return err
	}
	return writePage(c, core.Page[core.AgentFile]{Items: files})
}
