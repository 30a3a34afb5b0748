package apitest

import "bobbin/app/api/handlers"

// Services returns the backend in all its parts, as handlers want it.
func (b *Backend) Services() handlers.Services {
	return handlers.Services{
		Chat: Chat{b}, Sessions: Sessions{b}, Messages: Messages{b}, Runs: Runs{b}, Summaries: Summaries{b}, Agents: Agents{b},
		Transfer: Transfer{b}, Memories: Memories{b}, Usage: Usage{b}, Search: Search{b}, Files: Files{b}, Blobs: Files{b},
		Deliveries: Deliveries{b},
	}
}
