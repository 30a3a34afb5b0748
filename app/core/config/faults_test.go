package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core/config"
	"bobbin/tests/compare"
)

// TestLoadFaults: every fault names its place, its key, what is wrong, and what to
// do; no fault holds a secret.
func TestLoadFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		source
		want string // lines
	}{
		{"unknown key", source{file: "addr: 127.0.0.1:1\nadrr: x\n"}, "./bobbin.yaml:2: adrr: is not a known key; did you mean addr?"},
		{"unknown key of a section", source{file: "limits:\n  run_tim: 5m\n"}, "./bobbin.yaml:2: limits.run_tim: is not a known key; did you mean limits.run_time?"},
		{"key outside its section", source{file: "run_time: 5m\n"}, "./bobbin.yaml:1: run_time: is not a known key; did you mean limits.run_time?"},
		{"unknown and like nothing", source{file: "hobby: red\n"}, "./bobbin.yaml:1: hobby: is not a known key; see docs/CONFIGURATION.md"},
		{"unknown flag", source{flags: map[string]string{"run_time": "1s"}}, "--run-time: run_time: is not a known key; did you mean limits.run_time?"},
		{"twice", source{file: "addr: 127.0.0.1:1\nlog: {level: info}\nlog.level: debug\naddr: 127.0.0.1:2\n"},
			"./bobbin.yaml:3: log.level: is there already, in line 2\n./bobbin.yaml:4: addr: is there already, in line 1"},
		{"section is a value", source{file: "limits: 5\n"}, "./bobbin.yaml:1: limits: is a section: write its keys below it, indented"},
		{"value is a section", source{file: "addr:\n  port: 80\n"}, "./bobbin.yaml:1: addr: this is a section, and should be text; put it in quotes"},
		{"value is a list", source{file: "default_llm: [a]\n"}, "./bobbin.yaml:1: default_llm: this is a list, and should be text; put it in quotes"},
		{"retention", source{file: "retention: {events: 5m, archived_sessions: -1h}"},
			"./bobbin.yaml:1: retention.events: 5m0s is too short; use 1h or more, or 0s (for ever)\n./bobbin.yaml:1: retention.archived_sessions: -1h0m0s is too short; use 1h or more, or 0s (for ever)"},
		{"types", source{file: "addr: 80\nlimits:\n  queued_runs: many\n  concurrent_runs: 1.5\n  run_time: 10\n  message_bytes: big\nauth.required: perhaps\ncontext_usage_threshold: .nan\n"},
			`./bobbin.yaml:1: addr: this is not text; put it in quotes
./bobbin.yaml:8: context_usage_threshold: "NaN" is not a number
./bobbin.yaml:7: auth.required: "perhaps" is not true or false
./bobbin.yaml:6: limits.message_bytes: "big" is not a size; write bytes or a unit, such as 1MiB
./bobbin.yaml:3: limits.queued_runs: "many" is not a whole number
./bobbin.yaml:4: limits.concurrent_runs: "1.5" is not a whole number
./bobbin.yaml:5: limits.run_time: "10" is not a time with a unit, such as 30s or 5m`},
		{"type of a variable", source{env: map[string]string{"BOBBIN_LIMITS_RUN_TIME": "10"}},
			`BOBBIN_LIMITS_RUN_TIME: limits.run_time: "10" is not a time with a unit, such as 30s or 5m`},
		{"address", source{flags: map[string]string{"addr": "8080"}}, `--addr: addr: "8080" is not host:port; write for example 127.0.0.1:8080`},
		{"port", source{flags: map[string]string{"addr": "localhost:99999"}}, `--addr: addr: "99999" is not a port; use 0 (any that is free) to 65535`},
		{"database", source{file: "database.url: mysql://root:hush@db/x"}, "./bobbin.yaml:1: database.url: it must begin with sqlite:// or postgres://, such as sqlite://bobbin-data/bobbin.db"},
		{"database path", source{file: "database.url: sqlite://"}, "./bobbin.yaml:1: database.url: the path is missing; write for example sqlite://bobbin-data/bobbin.db"},
		{"database password", source{file: "database.url: 'postgres://u:hu%sh@db/x'"},
			"./bobbin.yaml:1: database.url: it cannot be read; write for example postgres://user:password@host:5432/name, special characters in the password as %40"},
		{"nats", source{file: "nats: {url: 'nats://u:hush@n:4222,nats://u:hu%sh@n', peers: [a, b], secret: hush, tls_key: k}"},
			`./bobbin.yaml:1: nats.url: it is for several processes, and SQLite has one; set database.url to a PostgreSQL, or remove it
./bobbin.yaml:1: nats.url: this is not an address; write for example nats://user:password@host:4222, special characters in the password as %40
./bobbin.yaml:1: nats.peers: it is for the replicas' own cluster; set nats.cluster_addr (host:port), or remove it
./bobbin.yaml:1: nats.secret: it is for the replicas' own cluster; set nats.cluster_addr (host:port), or remove it
nats.tls_cert: certificate and key belong together; set nats.tls_cert and nats.tls_key, or none`},
		{"the replicas' own cluster", source{file: "database.url: postgres://h/x\nreplica.name: a b\nnats: {url: 'nats://n:4222', cluster_addr: h, peers: [':1', 'a:0', 'b:1'], secret: hush, tls_ca: ca.pem}"},
			`./bobbin.yaml:2: replica.name: "a b" must be 1 to 64 letters, digits, and . _ @ -
./bobbin.yaml:3: nats.cluster_addr: nats.url is set as well; choose one of them
./bobbin.yaml:3: nats.cluster_addr: "h" is not host:port; write for example 0.0.0.0:6222
./bobbin.yaml:3: nats.peers: ":1" is not host:port; write for example bobbin-1:6222
./bobbin.yaml:3: nats.peers: "a:0" is not host:port; write for example bobbin-1:6222
./bobbin.yaml:3: nats.secret: it keeps others out of the cluster and has 4 characters, and 24 are the least: make one with: openssl rand -hex 32
./bobbin.yaml:3: nats.tls_ca: replicas show certificates to each other; set nats.tls_ca, nats.tls_cert and nats.tls_key`},
		{"certificates for nothing", source{file: "nats.tls_ca: ca.pem"},
			"./bobbin.yaml:1: nats.tls_ca: there is no NATS to talk to; set nats.url or nats.cluster_addr, or remove it"},
		{"a cluster on one file", source{file: "nats: {cluster_addr: 'h:1', secret: hush-hush-hush-hush-hush-hush}"},
			"./bobbin.yaml:1: nats.cluster_addr: it is for several processes, and SQLite has one; set database.url to a PostgreSQL, or remove it"},
		{"empty folders", source{file: "data_dir: ' '\nagents_dir: ''\n"},
			"./bobbin.yaml:1: data_dir: it is empty; name a folder, such as ./bobbin-data\n./bobbin.yaml:2: agents_dir: it is empty; name a folder, such as agents (it need not exist)"},
		{"default agent", source{file: "default_agent: My Agent"}, `./bobbin.yaml:1: default_agent: "My Agent" is not an agent's name; use lower-case letters, digits, - and _`},
		{"threshold", source{file: "context_usage_threshold: 80"}, "./bobbin.yaml:1: context_usage_threshold: 80 is not a share of the window; use a number above 0 and at most 1, such as 0.8"},
		{"log", source{file: "log: {level: inof, format: xml}"},
			"./bobbin.yaml:1: log.level: \"inof\" does not exist; did you mean info? There are debug, info, warn, error\n./bobbin.yaml:1: log.format: \"xml\" does not exist; use one of auto, text, json"},
		{"keys", source{file: "auth:\n  keys:\n    - alice\n    - {name: bob}\n    - 7\n    - {name: 'b c', secret: 1-hush-hush-hush-hush-hush-hush}\n    - 'dora:'\n    - x:2-hush-hush-hush-hush-hush-hush\n    - y:2-hush-hush-hush-hush-hush-hush\n"},
			`./bobbin.yaml:3: auth.keys[0]: write name:secret; there is no colon
./bobbin.yaml:4: auth.keys[1]: write name and secret, both as text in quotes, and nothing else
./bobbin.yaml:5: auth.keys[2]: write {name: …, secret: …} or name:secret
./bobbin.yaml:6: auth.keys[3]: the name "b c" must be 1 to 64 letters, digits, and . _ @ -
./bobbin.yaml:7: auth.keys[4]: the secret of "dora" is missing; write name:secret
./bobbin.yaml:9: auth.keys[6]: "y" has the same secret as "x"; every key needs its own`},
		{"metrics for an unknown key", source{file: "metrics: {keys: [alice, prometheus]}\nauth.keys: ['alice:hush-hush-hush-hush-hush-hush']\n"},
			`./bobbin.yaml:1: metrics.keys: there is no API key "prometheus"; name one of auth.keys`},
		{"origins", source{file: "server.cors_origins: ['*', 'https://Chat.example', 'https://chat.example/', 'null', 'https://*.example']"},
			strings.TrimSuffix(originFault("*")+originFault("https://Chat.example")+originFault("https://chat.example/")+originFault("null")+originFault("https://*.example"), "\n")},
		{"widget", source{file: "server.widget_origins: ['https://shop.example', shop.example]"},
			`./bobbin.yaml:1: server.widget_origins: "shop.example" is not an origin; write scheme, host and port as a browser does, in small letters and without a path, such as https://chat.example
./bobbin.yaml:1: server.widget_origins: visitors of these pages would need no token on this machine; set auth.required: true, and make tokens for visitors (auth.jwt)`},
		{"proxies", source{file: "server.trusted_proxies: ['10.0.0.0/8', proxy.example, 10.0.0.1:80]"},
			`./bobbin.yaml:1: server.trusted_proxies: "proxy.example" is no address or network; write for example 10.0.0.7 or 10.0.0.0/8
./bobbin.yaml:1: server.trusted_proxies: "10.0.0.1:80" is no address or network; write for example 10.0.0.7 or 10.0.0.0/8`},
		{"webhooks", source{file: "webhooks: {secret: whsec_hush, time: 1m, concurrent: 0}"},
			"./bobbin.yaml:1: webhooks.secret: it is not one; make it by: echo whsec_$(openssl rand -base64 32)\n" +
				"./bobbin.yaml:1: webhooks.time: 1m is out of range; use 100ms to 50s\n./bobbin.yaml:1: webhooks.concurrent: 0 is out of range; use 1 to 1000"},
		{"slack", source{file: "slack: {bot_token: hush, app_token: hush, owner: '', agent: My Agent, api_url: slack.com, approvers: [bob]}"},
			`./bobbin.yaml:1: slack.bot_token: it is not a bot token: these begin with xoxb-
./bobbin.yaml:1: slack.owner: it is empty; name the owner of the sessions, such as local
./bobbin.yaml:1: slack.app_token: it is not an app-level token: these begin with xapp-
./bobbin.yaml:1: slack.agent: "My Agent" is not an agent's name; use lower-case letters, digits, - and _
./bobbin.yaml:1: slack.api_url: "slack.com" is not an address; write for example https://slack.com/api/
./bobbin.yaml:1: slack.approvers: "bob" is not the id of a Slack user, such as U012ABCDEF`},
		{"slack for many workspaces", source{file: "slack: {client_id: '1.2', bot_token: xoxb-hush, signing_secret: hush, link_by_email: true}"},
			`./bobbin.yaml:1: slack.client_id: slack.bot_token is set too; keep that for one workspace, or slack.client_id for many
slack.client_secret: it is missing; copy it from the app's Basic Information
slack.token_key: it is missing, and encrypts the stored tokens: make one with: openssl rand -base64 32
./bobbin.yaml:1: slack.link_by_email: anybody's workspace could say whose e-mail address an account has; name your own in slack.teams`},
		{"slack with half a key", source{file: "slack: {client_id: '1.2', client_secret: hush, token_key: aHVzaA==, teams: [acme], app_token: xapp-1-b}"},
			`./bobbin.yaml:1: slack.teams: "acme" is not the id of a workspace, such as T012ABCDEF
./bobbin.yaml:1: slack.token_key: it is not base64 of 32 bytes: make one with: openssl rand -base64 32`},
		{"slack without a client id", source{file: "slack: {bot_token: xoxb-hush, signing_secret: hush, token_key: aHVzaA==}"},
			"slack.client_id: it is missing, but slack.client_secret, slack.token_key or slack.teams is set"},
		{"slack without a secret", source{file: "slack: {bot_token: xoxb-hush}"}, "slack.signing_secret: it is missing; set it, or slack.app_token for Socket Mode"},
		{"slack without a token", source{file: "slack: {signing_secret: hush}"}, "slack.bot_token: it is missing, but slack.signing_secret or slack.app_token is set"},
		{"traces to nowhere", source{file: "telemetry.otlp_endpoint: collector:4318"},
			`./bobbin.yaml:1: telemetry.otlp_endpoint: this is not an address; write for example http://localhost:4318`},
		{"keys are no list", source{file: "auth.keys: {alice: hush}"}, "./bobbin.yaml:1: auth.keys: write a list of {name, secret}, or name:secret,name:secret"},
		{"models", source{file: `models:
  - name: fast
    provder: openai
    context_windw: 8000
  - provider: antropic
    context_window: 10
    max_output_tokens: -1
    base_url: localhost:80
    api_key_env: sk-hush-1234
    encoding: gpt2
    input_price: -1
    output_price: x
  - {name: fast, provider: anthropic, thinking_budget: 1000}
  - 5
`}, `./bobbin.yaml:4: models[0].context_windw: is not a known key; did you mean context_window?
./bobbin.yaml:3: models[0].provder: is not a known key; did you mean provider?
./bobbin.yaml:12: models[1].output_price: "x" is not a number
./bobbin.yaml:14: models[3]: write keys and values
./bobbin.yaml:2: models[0].provider: it is missing; use one of openai, anthropic, gemini, ollama, mistral, openrouter, bedrock, vertex, demo, langchain/ollama
./bobbin.yaml:5: models[1].name: it is missing; agents call the model by it
./bobbin.yaml:5: models[1].provider: "antropic" does not exist; did you mean anthropic? There are openai, anthropic, gemini, ollama, mistral, openrouter, bedrock, vertex, demo, langchain/ollama
./bobbin.yaml:8: models[1].base_url: this is not an address; write for example http://localhost:8000/v1
./bobbin.yaml:9: models[1].api_key_env: this is not the name of an environment variable; write for example OPENAI_API_KEY, and put the key itself into that variable
./bobbin.yaml:10: models[1].encoding: "gpt2" does not exist; use one of cl100k_base, o200k_base
./bobbin.yaml:6: models[1].context_window: 10 tokens hold no conversation; use 1024 or more, or leave it out
./bobbin.yaml:7: models[1].max_output_tokens: -1 must be between 0 and context_window
./bobbin.yaml:11: models[1].input_price: -1 is out of range; use US dollars per million tokens, 0 (not known) to 1000000
./bobbin.yaml:13: models[2].name: "fast" is the name of models[0] too; choose another
./bobbin.yaml:13: models[2].thinking_budget: 1000 tokens are too few; use 1024 or more, or leave it out`},
		{"thinking", source{file: `models:
  - {name: a, provider: anthropic, thinking_budget: 1024, max_output_tokens: 2048}
  - {name: b, provider: anthropic, thinking_budget: 1025, max_output_tokens: 2048}
  - {name: c, provider: openai, thinking_budget: 4096}
`}, `./bobbin.yaml:3: models[1].thinking_budget: 1025 leaves too little of max_output_tokens (2048) for the answer; use 1024 less than that, at most
./bobbin.yaml:4: models[2].thinking_budget: only models of providers anthropic, bedrock and vertex have one; remove it`},
		{"clouds", source{file: `models:
  - {name: a, provider: bedrock, region: eu-central-1, thinking_budget: 1024}
  - {name: b, provider: vertex, region: eu, project: house, thinking_budget: 1024}
  - {name: c, provider: bedrock, project: house}
  - {name: d, provider: anthropic, region: eu}
`}, `./bobbin.yaml:4: models[2].project: only models of provider vertex have one; remove it
./bobbin.yaml:5: models[3].region: only models of providers bedrock and vertex have one; remove it`},
		{"apis of models", source{file: `models:
  - {name: a, provider: openai, api: responses}
  - {name: b, provider: openai, api: completions}
  - {name: c, provider: mistral, api: responses}
  - {name: d, provider: openai, api: responses, max_tokens_field: max_tokens, prompt_opens_thought: true}
`}, `./bobbin.yaml:3: models[1].api: "completions" does not exist; use one of chat, responses
./bobbin.yaml:4: models[2].api: only models of provider openai have one; remove it
./bobbin.yaml:5: models[3].max_tokens_field: only models of provider openai with api chat have one; remove it
./bobbin.yaml:5: models[3].prompt_opens_thought: only models of provider openai with api chat have one; remove it`},
		{"langchaingo", source{file: `models:
  - {name: a, provider: langchain/cohere}
  - {name: c, provider: langchain/ollama, images: true, documents: true}
`}, `./bobbin.yaml:2: models[0].provider: "langchain/cohere" does not exist; use one of openai, anthropic, gemini, ollama, mistral, openrouter, bedrock, vertex, demo, langchain/ollama
./bobbin.yaml:3: models[1].documents: models of provider langchain/ollama take no PDFs; remove it`},
		{"models in a variable", source{env: map[string]string{"BOBBIN_MODELS": `[{"name": "a", "provider": "opnai"}]`}},
			`BOBBIN_MODELS: models[0].provider: "opnai" does not exist; did you mean openai? There are openai, anthropic, gemini, ollama, mistral, openrouter, bedrock, vertex, demo, langchain/ollama`},
		{"models are no list", source{env: map[string]string{"BOBBIN_MODELS": "fast"}}, "BOBBIN_MODELS: models: write a list of entries, each with keys and values"},
		{"models are no YAML", source{env: map[string]string{"BOBBIN_MODELS": "[{"}}, "BOBBIN_MODELS: models: write a list in YAML or JSON"},
		{"spend limits", source{file: "auth:\n  keys: [\"alice:hush-hush-hush-hush-hush-hush\"]\n  limits:\n    - {key: local, tokens_per_day: x}\n    - {key: alice, token_per_day: 1}\n    - 5\n"},
			`./bobbin.yaml:4: auth.limits[0].tokens_per_day: "x" is not a whole number
./bobbin.yaml:5: auth.limits[1].token_per_day: is not a known key; did you mean tokens_per_day?
./bobbin.yaml:6: auth.limits[2]: write keys and values`},
		{"spend limits that limit nothing", source{file: "auth:\n  keys: [\"alice:hush-hush-hush-hush-hush-hush\"]\n  limits:\n    - {key: b b, usd_per_day: -1}\n    - {key: alice}\n    - {key: alice, tokens_per_day: 1}\n"},
			`./bobbin.yaml:4: auth.limits[0].key: "b b" is not the name of an owner; write the name of a key, or local for this machine's own user
./bobbin.yaml:4: auth.limits[0].usd_per_day: -1 is out of range; use 0 (no limit) to 1000000000
./bobbin.yaml:5: auth.limits[1]: it limits nothing; set usd_per_day or tokens_per_day
./bobbin.yaml:6: auth.limits[2].key: "alice" has a limit in auth.limits[1] already`},
		{"tokens without keys", source{file: "auth.jwt: {issuer: i, owner: o}"},
			`./bobbin.yaml:1: auth.jwt.issuer: there are no keys to check tokens with; set auth.jwt.jwks_url or auth.jwt.jwks_file, or remove it
./bobbin.yaml:1: auth.jwt.owner: there are no keys to check tokens with; set auth.jwt.jwks_url or auth.jwt.jwks_file, or remove it`},
		{"tokens of anybody", source{file: "auth: {jwt: {jwks_url: 'http://idp.example/keys', jwks_file: k.json}}"},
			`./bobbin.yaml:1: auth.jwt.jwks_file: auth.jwt.jwks_url is set as well; choose one of them
./bobbin.yaml:1: auth.jwt.jwks_url: keys that come by http can be changed on their way; use https, or set auth.jwt.allow_http if nobody is on it
auth.jwt.issuer: it is missing; name what tokens have as iss, else those of anybody with such a key count
auth.jwt.audience: it is missing; name what tokens have as aud, else those that are meant for other services count
auth.jwt.owner: it is missing; name the owner whose users the tokens are for, such as the name of your API key (or set auth.jwt.owner_claim)`},
		{"tokens", source{file: "auth: {jwt: {jwks_url: 'https://u:hush@idp.example/keys', issuer: i, audience: a, owner: o, owner_claim: c, user_claim: '', scopes: [metrics], leeway: 1h, max_life: 1s, refresh: 1s}}"},
			`./bobbin.yaml:1: auth.jwt.jwks_url: this is not an address; write for example https://login.example.com/.well-known/jwks.json
./bobbin.yaml:1: auth.jwt.owner_claim: auth.jwt.owner is set as well; choose one of them
./bobbin.yaml:1: auth.jwt.user_claim: it is empty; name the claim that has the user, such as sub
./bobbin.yaml:1: auth.jwt.scopes: "metrics" are not what a token may do; use read, write, delete and export
./bobbin.yaml:1: auth.jwt.leeway: 1h is out of range; use 0s to 5m
./bobbin.yaml:1: auth.jwt.max_life: 1s is too short; use 1m or more, or 0s (no limit)
./bobbin.yaml:1: auth.jwt.refresh: 1s is out of range; use 1m to 24h`},
		{"tools", source{file: "tools: {allow: [http, shell]}"}, `./bobbin.yaml:1: tools.allow: "shell" does not exist; use one of mcp, http, openapi, command`},
		{"fetch_url", source{file: "tools: {fetch_url: {ports: [http], time: 1ms, bytes: 1GiB}}"},
			`./bobbin.yaml:1: tools.fetch_url.ports: "http" is not a port; use 1 to 65535, such as 443
./bobbin.yaml:1: tools.fetch_url.time: 1ms is out of range; use 100ms to 10m
./bobbin.yaml:1: tools.fetch_url.bytes: 1GiB is out of range; use 1KiB to 8MiB`},
		{"limits", source{file: "limits: {message_bytes: 2MiB, body_bytes: 1MiB, import_bytes: 1, import_messages: 0, user_bytes: 1KiB, request_memory_bytes: 1KiB, request_disk_bytes: 0, tool_output_bytes: 1, queued_runs: 0, concurrent_runs: -1, open_streams: 0, open_streams_per_owner: 0, wait_time: 1ms, run_time: -1s, tool_time: 0s, summary_time: 1ns, background_summary_time: 0s, approval_time: 1ms, shutdown_grace: -1s}"},
			`./bobbin.yaml:1: limits.import_bytes: 1 is out of range; use 1KiB to 1GiB
./bobbin.yaml:1: limits.user_bytes: 1KiB is out of range; use 1MiB or more, or 0 for no limit
./bobbin.yaml:1: limits.request_memory_bytes: 1KiB is less than limits.body_bytes (1MiB); use more, or 0 for what suits the machine
./bobbin.yaml:1: limits.request_disk_bytes: 0 is less than limits.import_bytes (1): no history of that size could come in
./bobbin.yaml:1: limits.tool_output_bytes: 1 is out of range; use 1KiB to 8MiB
./bobbin.yaml:1: limits.body_bytes: 1MiB is less than limits.message_bytes (2MiB): no message of that size could be sent
./bobbin.yaml:1: limits.queued_runs: 0 is too few; use 1 or more
./bobbin.yaml:1: limits.import_messages: 0 is too few; use 1 or more
./bobbin.yaml:1: limits.open_streams: 0 is too few; use 1 or more
./bobbin.yaml:1: limits.open_streams_per_owner: 0 is too few; use 1 or more
./bobbin.yaml:1: limits.concurrent_runs: -1 is negative; use 1 or more, or 0 for what suits the machine
./bobbin.yaml:1: limits.wait_time: 1ms is too short; use 100ms or more
./bobbin.yaml:1: limits.run_time: -1s is too short; use 100ms or more
./bobbin.yaml:1: limits.tool_time: 0s is too short; use 100ms or more
./bobbin.yaml:1: limits.summary_time: 1ns is too short; use 100ms or more
./bobbin.yaml:1: limits.background_summary_time: 0s is too short; use 100ms or more
./bobbin.yaml:1: limits.approval_time: 1ms is too short; use 1s or more, or 0s (no limit)
./bobbin.yaml:1: limits.shutdown_grace: -1s is negative; use 0s (stop at once) or more`},
		{"not keys and values", source{file: "- addr\n"}, "./bobbin.yaml:1: expected keys and values, such as addr: 127.0.0.1:8080"},
		{"two documents", source{file: "addr: 127.0.0.1:1\n---\naddr: 127.0.0.1:2\n"}, "./bobbin.yaml: it holds more than one document; remove the line ---"},
		{"not YAML", source{file: "addr: [\n"}, "./bobbin.yaml: yaml: line 1: did not find expected node content"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := tt.load(t)
			if err == nil {
				t.Fatal("Load: got no error")
			}
			compare.Equal(t, "faults", tt.want, err.Error())
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("the faults hold a secret: %v", err)
			}
		})
	}
}

// A text that is short, or that stands in a file to be replaced, keeps nobody out; a
// hash is taken as it is.
func TestWeakSecretsAreRefused(t *testing.T) {
	t.Parallel()
	const strong = "PV3bLDUUqGwXgW4iSb0Uj2mh"
	for secret, why := range map[string]string{
		"a":                                "has 1 characters, and 24 are the least",
		"change-me":                        "is a placeholder (change-me)",
		"Change-Me-Change-Me-Change-Me":    "is a placeholder (change-me)",
		"my-long-and-not-so-good-password": "is a placeholder (password)",
		"a-secret-of-more-than-24-letters": "is a placeholder (secret)",
		strong[1:]:                         "has 23 characters, and 24 are the least",
	} {
		_, _, err := source{env: map[string]string{
			"BOBBIN_AUTH_KEYS": "web:" + secret, "BOBBIN_DATABASE_URL": "postgres://h/x", "BOBBIN_NATS_CLUSTER_ADDR": "h:1", "BOBBIN_NATS_SECRET": secret,
		}}.load(t)
		want := "BOBBIN_NATS_SECRET: nats.secret: it keeps others out of the cluster and " + why + ": make one with: openssl rand -hex 32\n" +
			`BOBBIN_AUTH_KEYS: auth.keys[0]: the secret of "web" ` + why + ": make one with: bobbin keys new web"
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", secret, err, want)
		}
	}
	for _, setting := range []string{"web:" + strong, "web:sha256:" + strings.Repeat("0a", 32)} {
		if _, _, err := (source{env: map[string]string{"BOBBIN_AUTH_KEYS": setting}}).load(t); err != nil {
			t.Errorf("%s: got %v, want none", setting, err)
		}
	}
}

// Faults of all sources come at once, each a *Fault.
func TestLoadAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	_, _, err := config.Load(config.Options{
		Dir: t.TempDir(), UserDir: t.TempDir(),
		Env:   func(name string) string { return map[string]string{"BOBBIN_LOG_LEVEL": "x", "BOBBIN_ADDR": "y"}[name] },
		Flags: map[string]string{"limits.run_time": "z"},
	})
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 3 {
		t.Fatalf("Load: got %v, want three joined errors", err)
	}
	for _, e := range joined.Unwrap() {
		var fault *config.Fault
		if !errors.As(e, &fault) || fault.Where == "" || fault.Key == "" || fault.Problem == "" {
			t.Errorf("got %#v, want a Fault with all its fields", e)
		}
	}
}

// A key without a value is as if it were not there.
func TestLoadEmptyValues(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"# nothing\n", "addr:\nlimits:\nlog: ~\n", "null\n", "---\n"} {
		got, _, err := source{file: file}.load(t)
		if err != nil {
			t.Errorf("file %q: %v", file, err)
			continue
		}
		if diff := cmp.Diff(config.Default(), got); diff != "" {
			t.Errorf("file %q (-default +got):\n%s", file, diff)
		}
	}
}

// Anchors and aliases work.
func TestLoadAliases(t *testing.T) {
	t.Parallel()
	got, _, err := source{file: "default_llm: &m fast\ncontext_summary_model: *m\nlimits: {run_time: &t 7s, tool_time: *t}\n"}.load(t)
	if err != nil || got.ContextSummaryModel != "fast" || got.Limits.ToolTime != got.Limits.RunTime {
		t.Errorf("got %q and %s (%v), want fast and 7s", got.ContextSummaryModel, got.Limits.ToolTime, err)
	}
}

// originFault is what is said of a wrong origin.
func originFault(origin string) string {
	return `./bobbin.yaml:1: server.cors_origins: "` + origin + `" is not an origin; write scheme, host and port as a browser does, in small letters and without a path, such as https://chat.example` + "\n"
}
