package handlers

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// Agents answers /api/v1/agents.
type Agents struct {
	catalog agentCatalog
}

// NewAgents returns the handlers of agents.
func NewAgents(s Services) *Agents { return &Agents{catalog: s.Agents} }

// List answers all agents.
func (h *Agents) List(c *gin.Context) error {
	return answer(c, http.StatusOK, listOf(core.Page[core.Agent]{Items: h.catalog.List()}))
}

// Get answers one agent.
func (h *Agents) Get(c *gin.Context) error {
	agent, err := h.catalog.Get(c.Param("name"))
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, agent)
}

// Graph answers an agent's graph: as JSON, or with ?format=mermaid as the text of
// a Mermaid drawing.
func (h *Agents) Graph(c *gin.Context) error {
	q := readQuery(c, "format")
	format := q.text("format")
	if format != "" && format != "json" && format != "mermaid" {
		q.faults.Add("format", "must be json or mermaid")
	}
	if err := q.err(); err != nil {
		return err
	}
	if format != "mermaid" {
		graph, err := h.catalog.Graph(c.Param("name"))
		if err != nil {
			return err
		}
		return answer(c, http.StatusOK, graph)
	}
	drawing, err := h.catalog.Mermaid(c.Param("name"))
	if err != nil {
		return err
	}
	Write(c, http.StatusOK, "text/plain; charset=utf-8", []byte(drawing))
	return nil
}
