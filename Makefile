# `make` or `make help` lists what there is. PKG narrows a target down:
#   make race PKG=./app/db/...
PKG ?= ./...

.DEFAULT_GOAL := help
.PHONY: help build run test race lint fmt tidy check ci nightly e2e show show-restart show-long show-loop show-sliding show-switch show-rounds show-truth show-calibration show-cache show-counting show-concurrent show-background show-memories show-search show-crash show-takeover show-durability fault show-purge show-branches show-interleave show-adapters show-fuzz show-owners show-feeds show-eval show-reviews pictures samples graph clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9_-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/bobbin, one static file
	CGO_ENABLED=0 go build -trimpath -o bin/bobbin .

run: ## serve from the folder bobbin-data
	go run . serve

test: ## the tests, quickly: without the race detector
	go test -shuffle=on $(PKG)

race: ## the tests as everybody runs them: SQLite and PostgreSQL, race detector where goroutines share memory
	scripts/test $(PKG)

lint: ## golangci-lint
	scripts/lint run $(PKG)

fmt: ## format the source
	scripts/lint fmt

tidy: ## bring go.mod and go.sum in order
	go mod tidy

check: tidy fmt lint race ## before you say done: tidy, fmt, lint, race (with the end-to-end tests)

ci: ## what continuous integration runs
	.ci/run

# shows is every target that measures a promise.
shows := $(shell grep -oE '^show-[a-z-]+' $(MAKEFILE_LIST))

nightly: ## everything: race detector everywhere, long forms, every show-… target, half an hour of faults
	BOBBIN_TEST_RACE=all BOBBIN_TEST_LONG=1 scripts/test -timeout=90m
	$(MAKE) --no-print-directory --keep-going $(shows) fault

e2e: ## the end-to-end tests alone: the program over HTTP
	scripts/test ./tests/e2e/...

# Each figure that Bobbin promises has a target show-… that measures and prints it.
show: ## list the commands that measure what Bobbin promises
	@$(MAKE) --no-print-directory help | grep -E '^  show-' || echo "  nothing to show yet"

# measure prints what a test of tests/e2e measures.
measure = go test ./tests/e2e -v -count=1 -run

show-restart: ## 40 messages, a restart, and the session goes on: SQLite and PostgreSQL
	$(measure) '^TestShowRestart$$'

show-long: ## 2,000 turns against a window of 8,192 tokens: SQLite and PostgreSQL
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowLong$$'

show-loop: ## 60 rounds of tools with large results: prompt by prompt, with and without compaction
	$(measure) '^TestShowLoop$$'

show-sliding: ## 1,000 turns under the policy sliding: how large the prompts are
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowSliding$$'

show-switch: ## in mid-session from a window of 128K to one of 8K, and back
	$(measure) '^TestShowSwitch$$'

show-truth: ## the numbers of /context and what the provider received, section by section
	$(measure) '^TestShowTruth$$'

show-calibration: ## how far our number is from the provider's, for providers that count in other ways
	$(measure) '^TestShowCalibration$$'

show-cache: ## 200 turns with providers that cache as OpenAI and Anthropic do: what of the prompts was in it
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowCache$$'

show-counting: ## 1 MiB of each kind of text: seconds of one core, and how far the count is off
	go test ./app/core/tokens -run '^$$' -bench MiB -benchtime 1x

show-rounds: ## 20 rounds with a bad summarizer: 60 planted facts in the ledger or found: SQLite and PostgreSQL
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowRounds$$'

show-concurrent: ## 16 requests at once on one session
	$(measure) '^TestShowConcurrent$$'

show-background: ## 300 turns beside a summarizer that takes 3 seconds: what a turn waits for: SQLite and PostgreSQL
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowBackground$$'

show-memories: ## the best 10 of 100,000 memories, in memory and by a scan: SQLite and PostgreSQL
	BOBBIN_TEST_LONG=1 go test ./tests/memories -v -count=1 -timeout=10m -run '^TestShowMemories$$'
	go test ./app/memories -run '^$$' -bench Nearest -cpu 1,2

show-search: ## 100,000 messages, 57 searches, the same results: SQLite and PostgreSQL
	BOBBIN_TEST_SEARCH=100000 go test ./app/db/repositories -v -count=1 -timeout=20m -run '^TestShowSearch$$'

show-crash: ## 200 kills with SIGKILL at random moments: SQLite and PostgreSQL
	BOBBIN_CRASH_KILLS=200 go test ./tests/crash -v -count=1 -timeout=30m

fault: ## three replicas, PostgreSQL, NATS, and everything breaks: 30 minutes, 200 sessions
	BOBBIN_FAULT_TIME=$${BOBBIN_FAULT_TIME:-30m} BOBBIN_FAULT_SESSIONS=$${BOBBIN_FAULT_SESSIONS:-200} go test ./tests/fault -v -count=1 -timeout=60m -run '^TestFaults$$'

show-durability: ## a turn before and after runs could outlive their process: SQLite and PostgreSQL
	scripts/show-durability

show-takeover: ## kill -9 of the replica that executes a run, in mid-answer: how long until another goes on
	BOBBIN_TEST_LONG=1 go test ./tests/fault -v -count=1 -timeout=10m -run '^TestShowTakeover$$'

show-adapters: ## the same scenarios with every adapter of models: scenario × adapter
	go test ./tests/adapters -v -count=1 -run '^TestShowAdapters$$'

show-branches: ## 500 random sequences of edits, new answers, branches, deletions …: SQLite and PostgreSQL
	BOBBIN_BRANCHES_SEQUENCES=500 go test ./tests/branches -v -count=1 -timeout=30m -run '^TestShowBranches$$'

show-interleave: ## 500 conversations beside two summarizers, call by call at random, with crashes: SQLite and PostgreSQL
	BOBBIN_INTERLEAVE_SEEDS=500 go test ./tests/branches -v -count=1 -timeout=30m -run '^TestShowInterleave$$'

show-fuzz: ## 24,000 requests generated from the OpenAPI document: SQLite, and 6,000 on PostgreSQL
	BOBBIN_FUZZ_REQUESTS=24000 go test ./tests/openapi -v -count=1 -timeout=10m -run '^TestShowFuzz$$'

show-owners: ## two owners, every operation and every kind of id: 404 everywhere; every scope: 403 without it
	go test ./tests/openapi -v -count=1 -timeout=5m -run '^TestShow(Owners|Scopes)$$'

show-feeds: ## 5,000 open feeds on one process: memory, how late events are, slow readers: SQLite and PostgreSQL
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowFeeds$$' -timeout=30m

show-eval: ## every policy over the four sample conversations: prompts, summaries, caches, facts
	go test ./tests/eval -v -count=1 -timeout=20m -run '^TestShowEval$$'

show-reviews: ## every finding of the reviews and the tests that hold it
	go test ./tests/arch -v -count=1 -run '^TestShowReviews$$'

pictures: ## draw the pictures of the documentation anew, and the golden files with them
	go test ./tests/eval -count=1 -timeout=20m -run '^TestShowEval$$' -update
	go test ./tests/eval -count=1 -run '^TestDocumentation$$' -update

samples: ## write the sample conversations anew
	go test ./app/eval/samples -count=1 -update

show-purge: ## a user is purged and no byte of the user is left in the files: SQLite and PostgreSQL
	$(measure) '^TestShowPurge$$'

graph: ## draw the agent's graph in Mermaid
	@go run . graph

clean: ## remove what was built
	rm -rf bin
