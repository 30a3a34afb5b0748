package handlers

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// StandingInstructions answers …/standing-instructions.
type StandingInstructions struct{ chat chatService }

// NewStandingInstructions returns the handlers of standing instructions.
func NewStandingInstructions(s Services) *StandingInstructions {
	return &StandingInstructions{chat: s.Chat}
}

// List answers a page of a session's standing instructions, newest first.
func (h *StandingInstructions) List(c *gin.Context) error {
	id := core.SessionID(c.Param("id"))
	q := readQuery(c, "limit", "cursor")
	query := q.pageParams()
	if err := q.err(); err != nil {
		return err
	}
	page, err := h.chat.StandingInstructions(c.Request.Context(), scopeOf(c), id, query)
	if err != nil {
		return err
	}
	return writePage(c, page)
}

// instruction is the body of Create and Update.
type instruction struct {
	Text string `json:"text"`
}

// Create adds a standing instruction: 201.
func (h *StandingInstructions) Create(c *gin.Context) error {
	id := core.SessionID(c.Param("id"))
	body, err := readBody[instruction](c)
	if err != nil {
		return err
	}
	added, err := h.chat.AddInstruction(c.Request.Context(), scopeOf(c), id, body.Text)
	return respond(c, http.StatusCreated, added, err)
}

// Update replaces the text of a standing instruction and answers the instruction.
func (h *StandingInstructions) Update(c *gin.Context) error {
	session, id, err := instructionOf(c)
	if err != nil {
		return err
	}
	body, err := readBody[instruction](c)
	if err != nil {
		return err
	}
	edited, err := h.chat.EditInstruction(c.Request.Context(), scopeOf(c), session, id, body.Text)
	return respond(c, http.StatusOK, edited, err)
}

// Delete removes a standing instruction: 204.
func (h *StandingInstructions) Delete(c *gin.Context) error {
	session, id, err := instructionOf(c)
	if err != nil {
		return err
	}
	return noContent(c, h.chat.RemoveInstruction(c.Request.Context(), scopeOf(c), session, id))
}

// instructionOf returns the session and the instruction in the path.
func instructionOf(c *gin.Context) (core.SessionID, core.InstructionID, error) {
	id := core.InstructionID(c.Param("iid"))
	if !core.ValidID(id) {
		return "", "", core.Errorf(core.ErrNotFound, "standing instruction %s does not exist", shortenInput(string(id)))
	}
	return core.SessionID(c.Param("id")), id, nil
}
