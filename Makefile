# `make` or `make help` lists what there is. PKG narrows a target down:
#   make race PKG=./app/db/...
PKG ?= ./...

.DEFAULT_GOAL := help
.PHONY: help build release run test race lint fmt tidy notices check ci explore nightly e2e show show-long show-truth show-prefix show-native show-next show-many show-crash bench show-bench show-limits fault show-recall show-standing show-attacks show-injection show-backlog show-turns show-fallback show-garbage show-slack-sync show-dialects show-page show-page-context show-page-stream show-page-cuts show-page-xss show-page-a11y show-page-size house page-pictures graph clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9_-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Every build, test and measurement leaves out gin's MessagePack, as the release does: nothing uses it.
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
	scripts/explore $(TIME) $(PKG)

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

# measure prints what a test of tests/e2e measures.
measure = go test ./tests/e2e -v -count=1 -run

show-long: ## 2,000 turns against a window of 8,192 tokens: SQLite and PostgreSQL
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowLong$$'

show-fallback: ## 128K → 8K → 128K by fallback, message and session, five policies, random orders: what is still word for word
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowFallback$$'

show-truth: ## the numbers of /context and what the provider received, section by section
	$(measure) '^TestShowTruth$$'

show-prefix: ## providers that bind thoughts to their prompt: refused, dropped and kept thoughts by policy, with tools, edits, branches, other models; by where summaries are
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowPrefix'

show-native: ## 200 sessions with the providers' own compactions, of which many are refused: stuck sessions, uncovered messages, extra calls
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowNative$$'

show-next: ## 50,000 turns of 64 clients that write as soon as an answer has ended, beside an import and searches: refusals: SQLite and PostgreSQL
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowNext$$' -timeout=5h

show-many: ## 2,000 slow streams of one owner at default limits: first words, memory, CPU: SQLite and PostgreSQL
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowMany$$' -timeout=30m

show-crash: ## 200 kills with SIGKILL at random moments: SQLite and PostgreSQL
	BOBBIN_CRASH_KILLS=200 go test ./tests/crash -v -count=1 -timeout=60m -run '^TestKilledAtRandomMoments$$'

fault: ## three replicas, PostgreSQL, NATS, and everything breaks: 30 minutes, 200 sessions
	BOBBIN_FAULT_TIME=$${BOBBIN_FAULT_TIME:-30m} BOBBIN_FAULT_SESSIONS=$${BOBBIN_FAULT_SESSIONS:-200} go test ./tests/crash -v -count=1 -timeout=60m -run '^TestFaults$$'

bench: ## turns on both databases beside the bare rows of a turn and the provider alone: rates, times, CPU, commits, WAL, bytes, memory
	go test ./tests/bench -v -count=1 -run '^TestShowBench$$'

show-bench: ## the same with 1, 8 and 64 sessions, medians of five runs, as a table, and as JSON in docs/images
	BOBBIN_TEST_LONG=1 BOBBIN_BENCH_DIR=$${BOBBIN_BENCH_DIR:-$(CURDIR)/docs/images} go test ./tests/bench -v -count=1 -timeout=30m -run '^TestShowBench$$'

show-limits: ## how a turn grows with its session, what it takes where everything is sent, and what is answered at three times the load that can be: SQLite and PostgreSQL
	BOBBIN_TEST_LONG=1 go test ./tests/bench -v -count=1 -timeout=60m -run '^TestShow(Growth|LargePrompts|Overload)$$'

show-recall: ## how many questions about long conversations have their evidence among the first results, on both databases, beside plain FTS5, and in what a served Bobbin quotes to its model, with and without an embedding model (DATA=path)
	-scripts/clients embeddings # without them, words alone
	BOBBIN_RECALL_DATA=$(or $(DATA),$(BOBBIN_RECALL_DATA),$(abspath ../shared/data/recall-dev.json)) go test ./tests/eval -v -count=1 -timeout=60m -run '^TestShowRecall'
	BOBBIN_RECALL_DATA=$${BOBBIN_RECALL_DATA:-$(abspath ../shared/data/recall-dev.json)} go test ./app/db/repositories -v -count=1 -timeout=10m -run '^TestShowRankedRecall$$'

show-standing: ## what users set for the whole conversation: recognized, changed, withdrawn, by language; false ones in 100 messages (../shared/data); what providers receive after 1, 5 and 20 summaries that forget everything
	BOBBIN_RECALL_DATA=$${BOBBIN_RECALL_DATA:-$(abspath ../shared/data/recall-dev.json)} go test ./app/core/standing -v -count=1 -run '^Test(ShowStanding|Cases)'
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowStanding'

show-backlog: ## 125K, 500K and 2M imported tokens on windows of 8K and 128K: what the summarizer saw, calls, waits
	BOBBIN_TEST_LONG=1 go test ./app/core/compaction -v -count=1 -timeout=30m -run '^TestShowBacklog$$'

show-turns: ## people who write after 0, 1 and 3 s, models at a local and a remote address: turns over a hard limit, gaps, summary calls, by policy
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowTurns$$' -timeout=30m

show-injection: ## 60 planted instructions in messages, tools, summaries, ledgers and chat templates: where each ends
	BOBBIN_TEST_LONG=1 $(measure) '^TestShowInjection$$'

show-garbage: ## 408 bad and 100 good answers in four languages, 600 and 66 that nobody tuned by: which become the summary of a conversation, or extend one
	BOBBIN_TEST_LONG=1 go test ./tests/garbage -v -count=1 -timeout=20m -run '^TestShowGarbage$$'

show-attacks: ## end users who take all that their limits allow, on a server of 1 GiB: what each gets, memory, CPU
	BOBBIN_TEST_LONG=1 go test ./tests/commandline -v -count=1 -timeout=20m -run '^(TestExhaustion|TestExportsTakePlaces)$$'

show-slack-sync: ## 1,000 messages in 20 threads of Slack and on the web, two replicas, 429, lost answers, kill -9: missing, doubled, out of order, loops
	BOBBIN_TEST_LONG=1 go test ./tests/crash -v -count=1 -timeout=30m -run '^TestShowSlackSync$$'

show-dialects: ## the openai packages of npm and PyPI and LangChain's ChatOpenAI with a Bobbin in a process: client × feature: SQLite and PostgreSQL; the AI SDK, pydantic-ai and the Agents SDK
	scripts/clients
	scripts/clients python
	BOBBIN_TEST_LONG=1 go test ./tests/conformance -v -count=1 -timeout=20m -run '^(TestShowDialects|TestAISDK|TestPythonFrameworks)$$'

# measure_page prints what a test of tests/browser measures.
measure_page = go test ./tests/browser -v -count=1 -timeout=30m -run

show-page: ## the web page: flow × theme × width, and each state beside the design's picture of it, in tests/browser/report
	BOBBIN_PAGE_REPORT=$${BOBBIN_PAGE_REPORT:-$(CURDIR)/tests/browser/report} $(measure_page) '^TestShowPage$$'

show-page-context: ## 60 turns with summaries: meter, panel, line and chart of the page against the API after every turn
	$(measure_page) '^TestPage$$/^context$$'

show-page-stream: ## a log of 5,000 messages, then 100 tokens a second for a minute: longest task, dropped frames, heap before and after
	$(measure_page) '^TestShowStream$$'

show-page-cuts: ## 200 random cuts, delays, restarts and changes of replica: text in the page = stored, nothing twice, two tabs the same: SQLite and PostgreSQL
	BOBBIN_PAGE_CUTS=200 $(measure_page) '^(TestShowCuts|TestPage)$$/^(sqlite|postgres|cuts)$$'

show-page-xss: ## 300 hostile texts × message, tool output, title, name, summary, file name, author, runs, prompt, operation, Slack, and the widget: executed, foreign requests
	$(measure_page) '^(TestPage|TestWidget)$$/^(hostile|refused|messages)$$'

show-page-a11y: ## axe over every state in both themes and widths, in German, and in the widget, and every flow by keyboard alone
	$(measure_page) '^(TestPage|TestWidget)$$/^(access|language|audit)$$'

house: ## lines, packages, names, interfaces, imports, functions on the way of a message: recorded, now, goals (UPDATE=1 records)
	HOUSE=1 go test ./tests/arch/house -v -count=1 -timeout=30m -run '^TestShowHouse$$' $(if $(UPDATE),-update)

page-pictures: ## take the README's two pictures of the web page anew
	BOBBIN_PAGE_PICTURES=$(CURDIR)/docs/images $(measure_page) '^TestShowPictures$$'

show-page-size: ## bytes of each ordinary opening, at most 100,000, and of each file of the first one, compressed; time to usable, cold (at most 300 ms) and warm
	BOBBIN_PAGE_USABLE=300 $(measure_page) '^TestPage$$/^size$$'

graph: ## draw the agent's graph in Mermaid
	@go run . graph

clean: ## remove what was built
	rm -rf bin dist
