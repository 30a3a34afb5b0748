package handlers

import (
	"cmp"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// usageDays is the default range of a usage report.
const usageDays = 30

const day = 24 * time.Hour

// getUsage answers the usage of the caller's model calls: a page of groups, and the total.
func (h Native) getUsage(c *gin.Context, in core.UsageQuery) (core.UsageReport, error) {
	in.GroupBy = cmp.Or(in.GroupBy, core.UsageByDay)
	// Whole days, so that the next page has the same range.
	if in.To.IsZero() {
		in.To = time.Now().UTC().Truncate(day).Add(day)
	}
	if in.From.IsZero() {
		in.From = in.To.Add(-usageDays * day)
	}
	if !in.From.Before(in.To) {
		return core.UsageReport{}, invalidError([]core.FieldError{{Field: "to", Detail: "must be after from"}})
	}
	report, err := h.Usage.Usage(c.Request.Context(), scopeOf(c), in)
	if report.Items == nil {
		report.Items = []core.UsageRow{}
	}
	return report, err
}

// The owner's default webhook is used when neither the message nor the session has one.

func (h Native) getWebhook(c *gin.Context, _ struct{}) (core.Webhook, error) {
	return h.Chat.DefaultWebhook(c.Request.Context(), scopeOf(c))
}

func (h Native) putWebhook(c *gin.Context, in ops.NewWebhook) (core.Webhook, error) {
	return h.Chat.SetDefaultWebhook(c.Request.Context(), scopeOf(c), *in.ToCore())
}

func (h Native) deleteWebhook(c *gin.Context, _ struct{}) (ops.Nothing, error) {
	return ops.Nothing{}, h.Chat.DeleteDefaultWebhook(c.Request.Context(), scopeOf(c))
}
