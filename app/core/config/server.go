package config

import (
	"net/url"
	"strings"
)

// Server is how the HTTP API meets browsers.
type Server struct {
	CORSOrigins []string // origins whose pages may read answers, such as https://chat.example
}

func server() []setting {
	return []setting{
		{name: "server.cors_origins", meaning: "origins whose web pages may use the API, such as `https://chat.example`: exactly these, no `*`; they need a key all the same", field: func(c *Config) any { return &c.Server.CORSOrigins }},
	}
}

// validate checks that every origin is one, as browsers write it.
func (s Server) validate(found *faults) {
	for _, origin := range s.CORSOrigins {
		u, err := url.Parse(origin)
		ok := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil &&
			origin == strings.ToLower(u.Scheme+"://"+u.Host) && !strings.Contains(u.Host, "*")
		found.check(ok, "server.cors_origins", "%q is not an origin; write scheme, host and port as a browser does, in small letters and without a path, such as https://chat.example", origin)
	}
}
