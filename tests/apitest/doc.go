// Package apitest is the application behind the API without a network: each world has its own copy of one
// database, so that the ids in it are the same in all worlds of a process.
package apitest
