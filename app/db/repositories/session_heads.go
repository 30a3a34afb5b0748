package repositories

import (
	"context"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// headColumns are what a head shows, without columns that may be long.
const headColumns = "sessions.id, owner, title, agent, user_id, source, pinned, temporary, message_count, last_event_seq, updated_at, archived_at, "

// Heads returns the heads of those of the sessions that are in the scope.
func (r *Events) Heads(ctx context.Context, tenant core.Tenant, sessions []core.SessionID) ([]core.SessionHead, error) {
	db := r.db.WithContext(ctx)
	var rows []sessionRow
	err := db.Model(&models.Session{}).Scopes(visibleTo(tenant)).Select(headColumns+sessionRunsSQL).Where("sessions.id IN ?", sessions).Order("updated_at, id").Find(&rows).Error
	if err != nil {
		return nil, wrapError(err, "sessions of", tenant.Owner)
	}
	heads, waiting := make([]core.SessionHead, 0, len(rows)), []core.RunID{}
	for _, row := range rows {
		s := row.toCore()
		heads = append(heads, core.SessionHead{
			ID: s.ID, Title: s.Title, Agent: s.Agent, UserID: s.UserID, Source: s.Source, Status: s.Status, Pinned: s.Pinned, Archived: s.ArchivedAt != nil,
			Temporary: s.Temporary, MessageCount: s.MessageCount, LastEvent: s.LastEventSeq, UpdatedAt: s.UpdatedAt,
		})
		if s.OpenApprovals > 0 {
			waiting = append(waiting, s.ActiveRunID)
		}
	}
	if len(waiting) == 0 {
		return heads, nil
	}
	var open []models.Approval
	err = db.Select("id", "run_id", "session_id", "tool").Where("run_id IN ? AND status = ?", waiting, core.ApprovalOpen).Order("requested_at DESC, id DESC").Find(&open).Error
	first := map[core.SessionID]*core.WaitingFor{}
	for _, a := range open { // the first one comes last
		first[core.SessionID(a.SessionID)] = &core.WaitingFor{RunID: core.RunID(a.RunID), ApprovalID: core.ApprovalID(a.ID), Tool: a.Tool}
	}
	for i := range heads {
		heads[i].Waiting = first[heads[i].ID]
	}
	return heads, wrapError(err, "approvals of", tenant.Owner)
}
