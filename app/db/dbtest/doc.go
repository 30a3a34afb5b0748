// Package dbtest gives tests real databases: a SQLite file in a temporary folder,
// and a PostgreSQL database of its own for every test.
//
// Each runs one test on both. PostgreSQL is started when the first test asks for
// it: one temporary cluster for all the packages of one "go test", whose binaries
// find each other by their common parent process. It listens on loopback only,
// does not care for power failures (fsync is off), and a small shell loop stops
// and deletes it as soon as "go test" has ended, killed or not. A test's database
// is a copy of a migrated template and is dropped after the test. SQLite files are
// copies of one, too.
//
// Two variables of the environment change that:
//
//	BOBBIN_TEST_POSTGRES_URL  use this server instead (its user must be allowed to create databases)
//	BOBBIN_TEST_REQUIRE       if it contains "postgres", a missing PostgreSQL fails the tests instead of skipping them
package dbtest
