package handlers

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// decision is the body of Decide.
type decision struct {
	Decision string `json:"decision"`
	Comment  string `json:"comment"`
}

// Decide answers the question whether a tool may start: 200 with the question as it is
// then. The same answer may be given again; another one is a conflict.
func (h *Runs) Decide(c *gin.Context) error {
	run, err := idParam[core.RunID](c, "run")
	if err != nil {
		return err
	}
	id := core.ApprovalID(c.Param("approval"))
	if !core.ValidID(id) {
		return core.Errorf(core.ErrNotFound, "approval %s does not exist", shorten(string(id)))
	}
	body, err := readBody[decision](c)
	if err != nil {
		return err
	}
	if body.Decision != "approve" && body.Decision != "deny" {
		return invalid([]core.FieldError{{Field: "decision", Detail: "must be approve or deny"}})
	}
	approval, err := h.chat.Decide(c.Request.Context(), scopeOf(c), run, id,
		core.ApprovalDecision{Approve: body.Decision == "approve", Comment: body.Comment})
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, approval)
}
