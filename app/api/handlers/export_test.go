package handlers

// What end users see, for tests.
var (
	UserView  = userView
	UserEvent = userEvent
)
