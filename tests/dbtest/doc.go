// Package dbtest provides real databases for tests: a SQLite file in a temporary
// folder, and a separate PostgreSQL database for every test.
//
// Each runs a test on both. The first test that needs PostgreSQL starts it: one
// temporary cluster for all packages of one "go test", whose binaries find each other
// by their common parent process. It listens on loopback only, does not survive power
// failures (fsync is off), and a small shell loop stops and deletes it as soon as
// "go test" has ended, killed or not. A test's database is a copy of a migrated
// template and is dropped after the test. SQLite files are copies of one, too.
//
// Three environment variables change that:
//
//	BOBBIN_TEST_POSTGRES_URL  use this server instead (its user must be allowed to create databases)
//	BOBBIN_TEST_REQUIRE       if it contains "postgres", a missing PostgreSQL fails the tests instead of skipping them
//	BOBBIN_TEST_LONG          EachMigratedURLNightly runs on PostgreSQL, too
package dbtest
