// Package openapi_test holds the OpenAPI document against the wire shapes and against
// a running server: every operation, every id of another owner, every list, and
// thousands of generated requests.
package openapi_test
