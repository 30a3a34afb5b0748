package apitest

import (
	"cmp"
	"context"
	"io"
	"iter"
	"slices"

	"bobbin/app/core"
)

// Transfer is the backend as what brings histories in and sessions out.
type Transfer struct{ *Backend }

// Append answers the message as the newest of the log; the client_message_id
// "known" was there before.
func (x Transfer) Append(ctx context.Context, tenant core.Tenant, id core.SessionID, m core.Message) (core.Message, bool, error) {
	if err := x.recordCall(ctx, "Append", tenant, id, m); err != nil {
		return core.Message{}, false, err
	}
	m.ID, m.SessionID, m.Seq, m.ParentID, m.OnPath, m.Status = QueuedID, id, 3, AnswerID, true, core.MessageComplete
	m.Role, m.CreatedAt = cmp.Or(m.Role, core.RoleUser), Time()
	return m, m.ClientMessageID == "known", nil
}

// AppendHistory takes the messages.
func (x Transfer) AppendHistory(ctx context.Context, tenant core.Tenant, in core.AppendMessages, history iter.Seq[core.Message]) (int64, error) {
	in.Messages = slices.Collect(history)
	return int64(len(in.Messages)), x.recordCall(ctx, "AppendHistory", tenant, in)
}

// Import reads the body and answers that two messages were in it.
func (x Transfer) Import(ctx context.Context, tenant core.Tenant, in core.ImportMessages) (core.Imported, error) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return core.Imported{}, err
	}
	return core.Imported{Imported: 2, FirstSeq: 3, LastSeq: 4, Tokens: 11}, x.recordCall(ctx, "Import", tenant, in.SessionID, in.Format, in.Source, string(body))
}

// Export writes a file of the format's name.
func (x Transfer) Export(ctx context.Context, tenant core.Tenant, session core.Session, format core.ExportFormat, w io.Writer) error {
	if err := x.recordCall(ctx, "Export", tenant, session.ID, format); err != nil {
		return err
	}
	_, err := io.WriteString(w, "{\"a file of the format\":\""+string(format)+"\"}\n")
	return err
}

// ExportUser writes a file that says whose it is.
func (x Transfer) ExportUser(ctx context.Context, tenant core.Tenant, in core.UserExport, w io.Writer) error {
	if err := x.recordCall(ctx, "ExportUser", tenant, in); err != nil {
		return err
	}
	_, err := io.WriteString(w, "everything of "+in.User+"\n")
	return err
}
