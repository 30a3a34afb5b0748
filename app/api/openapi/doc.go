// Package openapi has the document that describes the native HTTP API, and the page
// that shows it to people.
//
// The document is OpenAPI 3.1, written by hand in openapi.yaml and components.yaml,
// embedded, and made into JSON at the start. tests/openapi holds it against the
// routes, the wire shapes, and the answers of a running server.
package openapi
