package chat

import (
	"sync"

	"bobbin/app/core"
)

// maxCachedAgents bounds the sessions in the cache; when it is full, it is cleared.
const maxCachedAgents = 10_000

// agentKey is a session as a caller sees it.
type agentKey struct {
	tenant  core.Tenant
	session core.SessionID
}

// agentCache has the agents of the sessions that were served last, so that a message need not load
// its session first. An entry may be outdated: core.RunStore.Accept checks it. Safe for concurrent
// use.
type agentCache struct {
	mu     sync.Mutex
	agents map[agentKey]core.SessionAgent // guarded by mu
}

func newAgentCache() *agentCache { return &agentCache{agents: map[agentKey]core.SessionAgent{}} }

// findAgent returns the session's agent, if it is known.
func (c *agentCache) findAgent(tenant core.Tenant, id core.SessionID) (core.SessionAgent, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	agent, ok := c.agents[agentKey{tenant, id}]
	return agent, ok
}

// storeAgent stores the session's agent.
func (c *agentCache) storeAgent(tenant core.Tenant, id core.SessionID, agent core.SessionAgent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.agents) >= maxCachedAgents {
		clear(c.agents)
	}
	c.agents[agentKey{tenant, id}] = agent
}

// removeAgent removes the session's agent.
func (c *agentCache) removeAgent(tenant core.Tenant, id core.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.agents, agentKey{tenant, id})
}
