package chat

import (
	"context"
	"slices"

	"bobbin/app/core"
)

// resolveParts returns the images and files of a message. A new version of a message that
// says nothing of them keeps those that it had.
func (s *Service) resolveParts(ctx context.Context, tenant core.Tenant, m core.SendMessage) ([]core.Part, error) {
	asked := m.Parts
	if asked == nil && m.Edits != "" {
		old, err := s.Messages.Get(ctx, tenant, m.SessionID, m.Edits)
		if err != nil {
			return nil, err
		}
		asked = slices.DeleteFunc(slices.Clone(old.Parts), func(p core.Part) bool { return !p.Attached() })
	}
	if len(asked) == 0 {
		return nil, nil
	}
	return s.Files.Attach(ctx, tenant, asked)
}
