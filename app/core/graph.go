package core

// GraphView is an agent's graph for showing: what can follow what.
type GraphView struct {
	Nodes []GraphNode `json:"nodes"` // in the order in which they were added; START and END are __start__ and __end__
	Edges []GraphEdge `json:"edges"`
}

// GraphNode is one node of a GraphView.
type GraphNode struct {
	ID string `json:"id"`
}

// GraphEdge leads from one node to another.
type GraphEdge struct {
	Source      string `json:"source"`
	Target      string `json:"target"`
	Conditional bool   `json:"conditional"`     // taken only if the state asks for it
	Label       string `json:"label,omitempty"` // when it is taken
}
