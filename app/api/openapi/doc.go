// Package openapi holds the OpenAPI document of the native HTTP API and the documentation
// page.
//
// The document is OpenAPI 3.1, made at the start of the table of operations (app/api/ops) and of
// what openapi.yaml and components.yaml add: schemas, and what is not JSON. tests/openapi checks it
// against the wire shapes and the answers of a running server.
package openapi
