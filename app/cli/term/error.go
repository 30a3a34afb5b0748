package term

import (
	"errors"
	"net/url"

	"bobbin/app/core"
)

// Sentence returns an error as it is told to people: of a core.Error what may be
// shown, of a request that failed without its method and address.
func Sentence(err error) string {
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
