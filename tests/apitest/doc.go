// Package apitest replaces the parts behind the API in tests: one session
// with its messages, runs, summaries and agents, in memory and with fixed ids and
// times, so that answers can be compared byte by byte.
package apitest
