// Package openapi holds the OpenAPI document of the native HTTP API and the documentation
// page.
//
// The document is OpenAPI 3.1, written by hand in openapi.yaml and components.yaml,
// embedded, and converted to JSON at the start. tests/openapi checks it against the routes,
// the wire shapes, and the answers of a running server.
package openapi
