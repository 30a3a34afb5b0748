package repositories

import (
	"maps"
	"slices"

	"bobbin/app/db/models"
)

// eraseApprovals leaves nothing in the questions for tool calls of what the model
// wrote, nor of what was said to them. It returns their ids.
func (j *journal) eraseApprovals(calls map[string]bool) ([]models.Ref, error) {
	var all []models.Ref
	for part := range slices.Chunk(slices.Sorted(maps.Keys(calls)), maxIDs) {
		asked := j.tx.Model(&models.Approval{}).Where("session_id = ? AND call_id IN ?", j.session.ID, part)
		var ids []models.Ref
		if err := asked.Pluck("id", &ids).Error; err != nil {
			return nil, err
		}
		if len(ids) == 0 {
			continue
		}
		err := j.tx.Model(&models.Approval{}).Where("id IN ?", ids).UpdateColumns(map[string]any{"arguments": "", "comment": ""}).Error
		if err != nil {
			return nil, err
		}
		all = append(all, ids...)
	}
	return all, nil
}
