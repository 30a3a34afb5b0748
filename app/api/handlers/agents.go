package handlers

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

func (h Native) listAgents(*gin.Context, struct{}) (core.Page[core.AgentDetail], error) {
	var page core.Page[core.AgentDetail]
	for _, agent := range h.Agents.List() {
		page.Items = append(page.Items, core.AgentDetail{Agent: agent, Models: h.Models(agent.Model)})
	}
	return page, nil
}

func (h Native) getAgent(_ *gin.Context, in ops.InAgent) (core.AgentDetail, error) {
	agent, err := h.Agents.Get(in.Name)
	return core.AgentDetail{Agent: agent, Models: h.Models(agent.Model)}, err
}

// getAgentGraph answers an agent's graph: as JSON, or as the text of a Mermaid drawing.
func (h Native) getAgentGraph(c *gin.Context, in ops.AgentGraph) error {
	if in.Format != "mermaid" {
		graph, err := h.Agents.Graph(in.Name)
		if err != nil {
			return err
		}
		return writeJSON(c, http.StatusOK, graph)
	}
	drawing, err := h.Agents.Mermaid(in.Name)
	if err != nil {
		return err
	}
	Write(c, http.StatusOK, "text/plain; charset=utf-8", []byte(drawing))
	return nil
}
