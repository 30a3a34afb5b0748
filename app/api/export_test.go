package api

// Routes returns the server's routes, as "GET /api/v1/sessions/:id".
func (s *Server) Routes() []string {
	var routes []string
	for _, r := range s.engine.Routes() {
		routes = append(routes, r.Method+" "+r.Path)
	}
	return routes
}
