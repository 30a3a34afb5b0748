package term

import (
	"errors"
	"net/url"

	"bobbin/app/core"
)

// ErrorText returns an error for people: the public message of a core.Error, and a failed
// request without its method and address.
func ErrorText(err error) string {
	var shown *core.Error
	var request *url.Error
	switch {
	case errors.As(err, &shown):
		text := shown.Message
		for _, f := range shown.Fields {
			text += "\n  " + f.Field + ": " + f.Detail
		}
		return Clean(text)
	case errors.As(err, &request):
		return Clean(request.Err.Error())
	default:
		return Clean(err.Error())
	}
}
