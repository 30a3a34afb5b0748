# `make` or `make help` lists what there is. PKG narrows a target down:
#   make race PKG=./app/db/...
PKG ?= ./...

.DEFAULT_GOAL := help
.PHONY: help build release run test race lint fmt tidy notices check ci explore nightly e2e show show-restart show-long show-loop show-sliding show-switch show-rounds show-truth show-calibration show-cache show-prefix show-native show-counting show-concurrent show-next show-many show-background show-memories show-search show-search-fuzz show-index show-index-kills show-growth show-crash show-takeover show-durability bench show-bench fault show-purge show-branches show-interleave show-adapters show-fuzz show-owners show-feeds show-eval show-recall show-standing show-reviews show-attacks show-refusals show-extract show-injection show-backlog show-turns show-privacy show-fallback show-garbage show-files show-files show-rights show-slack-edits show-slack-long show-slack-clients show-slack-sync show-slack-ack show-tools show-mcp show-dialects show-openai-whole show-dialects-cuts show-dialects-cost show-page show-page-context show-page-stream show-page-cuts show-page-xss show-page-a11y show-page-size page-pictures house pictures samples graph clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9_-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Every build, test and measurement leaves out gin's MessagePack, as the release does. `go run .` without
# make compiles it as well; nothing uses it.
export GOFLAGS := -trimpath -tags=nomsgpack $(GOFLAGS)

build: ## build bin/bobbin, one static file without debug information
	CGO_ENABLED=0 go build -ldflags '-s -w' -o bin/bobbin .

release: ## archives for Linux, macOS and Windows in dist/, one for an image, and SHA256SUMS
	scripts/release

run: ## serve from the folder bobbin-data
	go run . serve

test: ## the tests, quickly: without the race detector
	go test $(PKG)

race: ## the tests as everybody runs them: SQLite and PostgreSQL, race detector where goroutines share memory
	scripts/test $(PKG)

lint: ## golangci-lint
	scripts/lint run $(PKG)

fmt: ## format the source
	scripts/lint fmt

tidy: ## bring go.mod and go.sum in order
	go mod tidy

notices: ## write the licenses of what is linked in anew: after a change of dependencies
	scripts/notices

check: tidy fmt lint race ## before you say done: tidy, fmt, lint, race (with the end-to-end tests)

ci: ## what continuous integration runs
	.ci/run

# shows is every target that measures a promise.
shows := $(shell grep -oE '^show-[a-z-]+' $(MAKEFILE_LIST))

# What measures has its long form, and the same cases each time; make nightly has a new seed.
show-% fault: export BOBBIN_TEST_LONG = 1
show-% fault: export BOBBIN_TEST_SEED ?= 1

explore: TIME ?= 30m
explore: ## all random tests with new seeds and all fuzz targets for TIME=30m, several packages at once: a line for each failure
	go run ./tests/explore -time $(TIME) $(PKG)

nightly: export BOBBIN_TEST_SEED ?= $(shell date +%s)
nightly: ## everything: a new seed, race detector everywhere, long forms, every show-… target, half an hour of faults
	@echo "BOBBIN_TEST_SEED=$$BOBBIN_TEST_SEED"
	BOBBIN_TEST_RACE=all BOBBIN_TEST_LONG=1 scripts/test -timeout=90m
	$(MAKE) --no-print-directory --keep-going $(shows) fault

e2e: ## the end-to-end tests alone: the program over HTTP and in Slack
	scripts/test ./tests/e2e ./tests/slack

# Each figure that Bobbin promises has a target show-… that measures and prints it.
show: ## list the commands that measure what Bobbin promises
	@$(MAKE) --no-print-directory help | grep -E '^  show-' || echo "  nothing to show yet"

# measure prints what a test of tests/e2e measures, measure_slack one of tests/slack.
measure = go test ./tests/e2e -v -count=1 -run
measure_slack = go test ./tests/slack -v -count=1 -run

show-restart: ## 40 messages, a restart, and the session goes on: SQLite and PostgreSQL
	$(measure) '^TestShowRestart$$'

show-long: ## 2,000 turns against a window of 8,192 tokens: SQLite and PostgreSQL
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowLong$$'

show-loop: ## 60 rounds of tools with large results: prompt by prompt, with and without compaction
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowLoop$$'

show-sliding: ## 1,000 turns under the policy sliding: how large the prompts are
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowSliding$$'

show-privacy: ## provider × policy: who received which messages for answers, summaries and titles
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowPrivacy$$'

show-fallback: ## 128K → 8K → 128K by fallback, message and session, five policies, random orders: what is still word for word
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowFallback$$'

show-switch: ## in mid-session from a window of 128K to one of 8K, and back
	$(measure) '^TestShowSwitch$$'

show-truth: ## the numbers of /context and what the provider received, section by section
	$(measure) '^TestShowTruth$$'

show-calibration: ## how far our number is from the provider's, for providers that count in other ways
	$(measure) '^TestShowCalibration$$'

show-cache: ## 200 turns with providers that cache as OpenAI and Anthropic do: what of the prompts was in it
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowCache$$'

show-prefix: ## providers that bind thoughts to their prompt: refused, dropped and kept thoughts by policy, with tools, edits, branches, other models; by where summaries are
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowPrefix'

show-native: ## 200 sessions with the providers' own compactions, of which many are refused: stuck sessions, uncovered messages, extra calls
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowNative$$'

show-counting: ## 1 MiB of each kind of text: seconds of one core, and how far the count is off
	go test ./app/core/tokens -run '^$$' -bench MiB -benchtime 1x

show-rounds: ## 20 rounds with a bad summarizer: 60 planted facts in the ledger or found: SQLite and PostgreSQL
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowRounds$$'

show-concurrent: ## 16 requests at once on one session
	$(measure) '^TestShowConcurrent$$'

show-next: ## 50,000 turns of 64 clients that write as soon as an answer has ended, beside an import and searches: refusals: SQLite and PostgreSQL
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowNext$$' -timeout=5h

show-many: ## 2,000 slow streams of one owner at default limits: first words, memory, CPU: SQLite and PostgreSQL
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowMany$$' -timeout=30m

show-background: ## 300 turns beside a summarizer that takes 3 seconds: what a turn waits for: SQLite and PostgreSQL
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowBackground$$'

show-memories: ## the best 10 of 100,000 memories, in memory and by a scan: SQLite and PostgreSQL
	BOBBIN_TEST_LONG=1 go test ./tests/memories -v -count=1 -timeout=10m -run '^TestShowMemories$$'
	go test ./app/chat/memories -run '^$$' -bench Nearest -cpu 1,2

show-search: ## 100,000 messages, 57 searches, the same results: SQLite and PostgreSQL
	BOBBIN_TEST_SEARCH=100000 go test ./app/db/repositories -v -count=1 -timeout=20m -run '^TestShowSearch$$'
	BOBBIN_TEST_RANKED=$${BOBBIN_TEST_RANKED:-1000000} go test ./app/db/repositories -v -count=1 -timeout=90m -run '^TestShowRankedSearch$$'

show-search-fuzz: ## 20,000 random queries of two owners: errors, texts of the other owner: SQLite and PostgreSQL
	BOBBIN_TEST_LONG=1 go test ./app/db/repositories -v -count=1 -timeout=60m -run '^TestSearchFuzz$$'

show-index: ## bytes of the index of the search a message; what a turn writes and what the loop that indexes it writes: SQLite and PostgreSQL
	BOBBIN_RECALL_DATA=$${BOBBIN_RECALL_DATA:-$(abspath ../shared/data/recall-dev.json)} BOBBIN_TEST_LONG=1 go test ./app/db/repositories -v -count=1 -timeout=10m -run '^TestShowIndexCost$$'

show-index-kills: ## 100 kills with SIGKILL while messages come in and are indexed: each is found once: SQLite and PostgreSQL
	BOBBIN_TEST_LONG=1 go test ./tests/crash -v -count=1 -timeout=30m -run '^TestShowIndexKills$$'

show-growth: ## what questions read in a database of 200,000 sessions and 2,400,000 messages: SQLite and PostgreSQL
	BOBBIN_TEST_GROWTH=200000 go test ./app/db/repositories -v -count=1 -timeout=60m -run '^TestNothingReadsInProportionToHistory$$'

show-crash: ## 200 kills with SIGKILL at random moments: SQLite and PostgreSQL
	BOBBIN_CRASH_KILLS=200 go test ./tests/crash -v -count=1 -timeout=30m

fault: ## three replicas, PostgreSQL, NATS, and everything breaks: 30 minutes, 200 sessions
	BOBBIN_FAULT_TIME=$${BOBBIN_FAULT_TIME:-30m} BOBBIN_FAULT_SESSIONS=$${BOBBIN_FAULT_SESSIONS:-200} go test ./tests/fault -v -count=1 -timeout=60m -run '^TestFaults$$'

bench: ## turns on both databases beside the bare rows of a turn and the provider alone: rates, times, CPU, commits, WAL, bytes, memory
	go test ./tests/bench -v -count=1 -run '^TestShowBench$$'

show-bench: ## the same with 1, 8 and 64 sessions, medians of five runs, as a table, JSON and a picture in docs/images
	BOBBIN_TEST_LONG=1 BOBBIN_BENCH_DIR=$${BOBBIN_BENCH_DIR:-$(CURDIR)/docs/images} go test ./tests/bench -v -count=1 -timeout=30m -run '^TestShowBench$$'

show-durability: ## a turn before and after runs could outlive their process: SQLite and PostgreSQL
	scripts/show-durability

show-takeover: ## kill -9 of the replica that executes a run, in mid-answer: how long until another goes on
	BOBBIN_TEST_LONG=1 go test ./tests/fault -v -count=1 -timeout=10m -run '^TestShowTakeover$$'

show-adapters: ## the same scenarios with every adapter of models: scenario × adapter
	go test ./tests/adapters -v -count=1 -run '^TestShowAdapters$$'

show-branches: ## 500 random sequences of edits, new answers, branches, deletions …: SQLite and PostgreSQL
	BOBBIN_BRANCHES_SEQUENCES=500 go test ./tests/branches -v -count=1 -timeout=30m -run '^TestShowBranches$$'

show-interleave: ## 500 conversations beside two summarizers, call by call at random, with crashes: SQLite and PostgreSQL
	BOBBIN_INTERLEAVE_SEQUENCES=500 go test ./tests/branches -v -count=1 -timeout=30m -run '^TestShowInterleave$$'

show-fuzz: ## 24,000 requests generated from the OpenAPI document: SQLite, and 6,000 on PostgreSQL
	BOBBIN_FUZZ_REQUESTS=24000 go test ./tests/openapi -v -count=1 -timeout=10m -run '^TestShowFuzz$$'

show-owners: ## two owners, every operation and every kind of id: 404 everywhere; every scope: 403 without it
	go test ./tests/openapi -v -count=1 -timeout=5m -run '^TestShow(Owners|Scopes)$$'

show-feeds: ## 5,000 open feeds on one process: memory, how late events are, slow readers: SQLite and PostgreSQL
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowFeeds$$' -timeout=30m

show-eval: ## every policy over the four sample conversations: prompts, summaries, caches, facts
	BOBBIN_TEST_LONG=1 go test ./tests/eval -v -count=1 -timeout=20m -run '^TestShowEval$$'

show-recall: ## where the evidence of questions about long conversations is, by policy and window, on both databases, beside plain FTS5, and what a served Bobbin quotes to its model, with and without an embedding model (DATA=path)
	-scripts/clients embeddings # without them, words alone
	BOBBIN_RECALL_DATA=$(or $(DATA),$(BOBBIN_RECALL_DATA),$(abspath ../shared/data/recall-dev.json)) go test ./tests/eval -v -count=1 -timeout=60m -run '^TestShowRecall'
	BOBBIN_RECALL_DATA=$${BOBBIN_RECALL_DATA:-$(abspath ../shared/data/recall-dev.json)} go test ./app/db/repositories -v -count=1 -timeout=10m -run '^TestShowRankedRecall$$'

show-standing: ## what users set for the whole conversation: recognized, changed, withdrawn, by language; false ones in 100 messages (../shared/data); what providers receive after 1, 5 and 20 summaries that forget everything
	BOBBIN_RECALL_DATA=$${BOBBIN_RECALL_DATA:-$(abspath ../shared/data/recall-dev.json)} go test ./app/core/standing -v -count=1 -run '^TestShowStanding'
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowStanding'

show-backlog: ## 125K, 500K and 2M imported tokens on windows of 8K and 128K: what the summarizer saw, calls, waits
	BOBBIN_TEST_LONG=1 go test ./app/core/compaction -v -count=1 -timeout=30m -run '^TestShowBacklog$$'

show-turns: ## people who write after 0, 1 and 3 s, models at a local and a remote address: turns over a hard limit, gaps, summary calls, by policy
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowTurns$$' -timeout=30m

show-refusals: ## each vendor's and 200 generated ways to refuse a long prompt, 100 other refusals, end to end
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowRefusals$$' -timeout=30m

show-extract: ## what an extract tells of three long conversations (../shared/data), and of a user's standing wishes
	BOBBIN_RECALL_DATA=$${BOBBIN_RECALL_DATA:-$(abspath ../shared/data/recall-dev.json)} go test ./app/core/summarize -v -count=1 -run '^TestShow(Extract|Wishes)$$'

show-injection: ## 60 planted instructions in messages, tools, summaries, ledgers and chat templates: where each ends
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowInjection$$'

show-files: ## a PDF of 300 pages, a Word document and a workbook asked about: tokens, seconds; 200 hostile files: what they took
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowFiles$$'
	BOBBIN_TEST_LONG=1 go test ./app/extract -v -count=1 -timeout=30m -run '^TestHostileDocuments$$'

show-garbage: ## 408 bad and 100 good answers in four languages: which become the summary of a conversation, or extend one
	BOBBIN_TEST_LONG=1 go test ./tests/garbage -v -count=1 -timeout=20m -run '^TestShowGarbage$$'

show-reviews: ## every finding of the reviews and the tests that hold it
	go test ./tests/arch -v -count=1 -run '^TestShowReviews$$'

show-attacks: ## the attacks of the security review on a server of 1 GiB: what each gets, memory, CPU
	BOBBIN_TEST_LONG=1 go test ./tests/commandline -v -count=1 -timeout=20m -run '^(TestShowAttacks|TestExhaustion|TestExportsTakePlaces)$$'

show-tools: ## tools of one's own: MCP over both transports, HTTP, OpenAPI, a command, a client's tool with approvals; kill -9 of a server and of Bobbin in mid-call, 100 calls at once, servers that lie
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowTools$$'
	go test ./tests/crash -v -count=1 -run '^TestShowToolsCrash$$'

house: ## lines, packages, names, interfaces, imports, functions on the way of a message: recorded, now, goals (UPDATE=1 records)
	HOUSE=1 go test ./tests/arch/house -v -count=1 -timeout=30m -run '^TestShowHouse$$' $(if $(UPDATE),-update)

pictures: ## draw the pictures of the documentation anew, and the golden files with them
	go test ./tests/eval -count=1 -timeout=20m -run '^TestShowEval$$|^TestRecallSample$$' -update
	go test ./tests/eval -count=1 -run '^TestDocumentation$$' -update

samples: ## rewrite the sample conversations
	go test ./tests/eval/story -count=1 -update

show-purge: ## a user, and one of Slack, is purged and no byte of the user is left in the files: SQLite and PostgreSQL
	$(measure) '^TestShowPurge$$'
	$(measure_slack) '^TestShowPurgeOfSlackUser$$'

show-rights: ## a user is exported, read back and deleted over the API, no byte is left; one with 100,000 messages: SQLite and PostgreSQL
	BOBBIN_TEST_LONG=1 $(measure) '^TestShow(Large)?Rights$$'

show-slack-edits: ## 200 random edits and deletions in Slack and on the web, before, in and after runs: where something of them is left
	BOBBIN_TEST_LONG=1 $(measure_slack) '^TestShowSlackEdits$$' -timeout=30m

show-slack-long: ## answers of 60 kB with code, tables, lists, Chinese, long lines in Slack: parts, largest part, whether the text is whole
	BOBBIN_TEST_LONG=1 $(measure_slack) '^TestShowSlackLong$$'

show-slack-clients: ## Slack's own clients as apps and users of a Bobbin in a process: scenario × client, each known trap and its test
	BOBBIN_TEST_LONG=1 go test ./tests/slackclients -v -count=1 -timeout=10m -parallel=8 -run '^TestShow'

show-slack-sync: ## 1,000 messages in 20 threads of Slack and on the web, two replicas, 429, lost answers, kill -9: missing, doubled, out of order, loops
	BOBBIN_TEST_LONG=1 go test ./tests/crash -v -count=1 -timeout=30m -run '^TestShowSlackSync$$'

show-slack-ack: ## 50 events of Slack a second, a model that takes a minute, restarts: how fast they are acknowledged, and which are lost: SQLite and PostgreSQL
	BOBBIN_TEST_LONG=1 go test ./tests/crash -v -count=1 -timeout=30m -run '^TestShowSlackAck$$'

show-dialects: ## the openai packages of npm and PyPI and LangChain's ChatOpenAI with a Bobbin in a process: client × feature: SQLite and PostgreSQL
	scripts/clients
	scripts/clients python
	BOBBIN_TEST_LONG=1 go test ./tests/conformance -v -count=1 -timeout=20m -run '^TestShowDialects$$'

show-openai-whole: ## 500 turns against a window of 8,192 tokens, the whole history sent with each: prompts, log, branches, side calls, CPU against native turns: SQLite and PostgreSQL
	BOBBIN_TEST_LONG=1 go test ./tests/conformance -v -count=1 -timeout=20m -run '^TestShowOpenAIWhole$$'

show-dialects-cuts: ## 204 random cuts of connections of clients and of the provider: text at the client = stored message, or an error: SQLite and PostgreSQL
	scripts/clients
	BOBBIN_TEST_LONG=1 go test ./tests/conformance -v -count=1 -timeout=20m -run '^TestShowDialectsCuts$$'

show-dialects-cost: ## what a delta of each protocol takes, native beside it: nanoseconds, allocations; and its first byte
	go test ./app/api/openai -run '^$$' -bench '^BenchmarkDelta' -benchmem
	BOBBIN_TEST_LONG=1 go test ./tests/conformance -v -count=1 -run '^TestShowFirstByte$$'

show-mcp: ## MCP clients of Go, npm and PyPI × revision × operation, and headers, errors and caching hints by hand: SQLite and PostgreSQL
	scripts/clients
	scripts/clients python
	BOBBIN_TEST_LONG=1 go test ./tests/conformance -v -count=1 -timeout=10m -run '^TestMCPClients$$'

# browser runs a measurement of the web page in Chromium, measure_page one in its long form.
browser = go test ./tests/browser -v -count=1 -timeout=60m -run
measure_page = scripts/clients && BOBBIN_TEST_REQUIRE=browser BOBBIN_TEST_LONG=1 $(browser)

show-page: ## the web page: flow × theme × width, and each state beside the design's picture of it, in tests/browser/report
	BOBBIN_PAGE_REPORT=$${BOBBIN_PAGE_REPORT:-$(CURDIR)/tests/browser/report} $(measure_page) '^TestShowPage$$'

show-page-context: ## 60 turns with summaries: meter, panel, line and chart of the page against the API after every turn
	$(measure_page) '^TestContext$$'

show-page-stream: ## a log of 5,000 messages, then 100 tokens a second for a minute: longest task, dropped frames, heap before and after
	$(measure_page) '^TestStream$$'

show-page-cuts: ## 200 random cuts, delays and restarts: text in the page = stored, nothing twice, two tabs the same: SQLite and PostgreSQL
	BOBBIN_PAGE_CUTS=200 $(measure_page) '^TestShowCuts$$'

show-page-xss: ## 300 hostile texts × message, tool output, title, name, summary, file name, author: executed, foreign requests
	$(measure_page) '^TestPage$$/^hostile$$'

show-page-a11y: ## axe over every state in both themes and widths, and every flow by keyboard alone
	$(measure_page) '^TestPage$$/^access$$'

page-pictures: ## take the README's two pictures of the web page anew
	BOBBIN_PAGE_PICTURES=$(CURDIR)/docs/images $(measure_page) '^TestShowPictures$$'

show-page-size: ## bytes per file of the first load, compressed; time to usable, cold and warm
	$(measure_page) '^TestPage$$/^size$$'

graph: ## draw the agent's graph in Mermaid
	@go run . graph

clean: ## remove what was built
	rm -rf bin dist
