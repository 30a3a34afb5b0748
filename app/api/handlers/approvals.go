package handlers

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// decision is the body of Decide.
type decision struct {
	Decision  string  `json:"decision"`
	Comment   string  `json:"comment"`
	Arguments object  `json:"arguments"`
	Respond   string  `json:"respond"`
	Result    *string `json:"result"`
	IsError   bool    `json:"is_error"`
}

// toCore returns the decision; ErrInvalid unless it is one answer.
func (d decision) toCore() (core.ApprovalDecision, error) {
	var faults core.Faults
	kinds := 0
	for _, given := range []bool{d.Decision != "", d.Respond != "", d.Result != nil} {
		if given {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		faults.Add("decision", "must be the only answer, or respond, or result: give one of the three")
	case d.Decision != "" && d.Decision != "approve" && d.Decision != "deny":
		faults.Add("decision", "must be approve or deny")
	}
	return core.ApprovalDecision{
		Approve: d.Decision == "approve", Arguments: string(d.Arguments), Respond: d.Respond, Result: d.Result, IsError: d.IsError, Comment: d.Comment,
	}, invalidError(faults)
}

// Decide approves or denies a tool call, or answers it: 200 with the approval. The same
// decision may be repeated; a different one is a conflict.
func (h *Runs) Decide(c *gin.Context) error {
	run := core.RunID(c.Param("id"))
	id := core.ApprovalID(c.Param("approval"))
	if !core.ValidID(id) {
		return core.Errorf(core.ErrNotFound, "approval %s does not exist", shortenInput(string(id)))
	}
	body, err := readBody[decision](c)
	if err != nil {
		return err
	}
	d, err := body.toCore()
	if err != nil {
		return err
	}
	approval, err := h.chat.Decide(c.Request.Context(), scopeOf(c), run, id, d)
	return respond(c, http.StatusOK, approval, err)
}
