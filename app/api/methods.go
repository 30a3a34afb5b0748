package api

import (
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
)

// literalRoute is a path with a literal segment, such as …/memories/search, where another
// route has a parameter, such as …/memories/:id.
type literalRoute struct {
	segments []string
	methods  []string
}

// findLiteralRoutes returns the routes whose paths also match another route.
func findLiteralRoutes(routes gin.RoutesInfo) []literalRoute {
	methods := map[string][]string{}
	for _, route := range routes {
		methods[route.Path] = append(methods[route.Path], route.Method)
	}
	var found []literalRoute
	for path := range methods {
		segments := strings.Split(path, "/")
		for other := range methods {
			if other != path && matchesRoute(strings.Split(other, "/"), segments) {
				found = append(found, literalRoute{segments, methods[path]})
				break
			}
		}
	}
	return found
}

// matchesRoute reports whether the path matches the route.
func matchesRoute(route, path []string) bool {
	return slices.EqualFunc(route, path, func(segment, word string) bool {
		return segment == word || strings.HasPrefix(segment, ":")
	})
}

// checkMethod refuses methods that a literal route does not have, though a route with a
// parameter in its place does.
func (s *Server) checkMethod(c *gin.Context) error {
	path := strings.Split(c.Request.URL.EscapedPath(), "/")
	for _, route := range s.literalRoutes {
		if matchesRoute(route.segments, path) && !slices.Contains(route.methods, c.Request.Method) {
			return methodError(c, slices.Clone(route.methods))
		}
	}
	return nil
}
