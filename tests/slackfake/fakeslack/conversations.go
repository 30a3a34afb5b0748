package fakeslack

import (
	"slices"
	"strconv"
)

func conversationsInfo(c *call) (reply, error) {
	channel, err := c.findChannel("channel")
	if err != nil {
		return nil, err
	}
	return reply{"channel": channel.channelInfo()}, nil
}

// channelInfo is a conversation as the Web API has it.
func (ch *Channel) channelInfo() reply {
	r := reply{"id": ch.ID, "is_channel": ch.Kind == "channel", "is_group": ch.Kind == "group", "is_im": ch.Kind == "im", "is_mpim": ch.Kind == "mpim",
		"is_private": ch.Kind != "channel", "is_archived": false, "is_member": ch.Kind != "im"}
	if ch.Kind == "im" {
		r["user"] = ch.User
	} else {
		r["name"] = ch.Name
	}
	return r
}

// conversationsReplies returns a thread with its root, oldest first.
func conversationsReplies(c *call) (reply, error) {
	channel, err := c.findChannel("channel")
	if err != nil {
		return nil, err
	}
	at := channel.findMessage(c.args.text("ts"))
	if at == nil {
		return nil, failure{code: "thread_not_found"}
	}
	return c.listPage(slices.DeleteFunc(slices.Clone(channel.messages), func(m *Message) bool { return m.threadRoot() != at.threadRoot() }))
}

// listPage returns the part of a list that oldest, latest, cursor and limit select. The cursor
// is the place in the list.
func (c *call) listPage(list []*Message) (reply, error) {
	oldest, latest, inclusive := c.args.text("oldest"), c.args.text("latest"), c.args.flag("inclusive")
	list = slices.DeleteFunc(list, func(m *Message) bool {
		return oldest != "" && oldest != "0" && (m.TS < oldest || m.TS == oldest && !inclusive) ||
			latest != "" && (m.TS > latest || m.TS == latest && !inclusive)
	})
	start := 0
	if cursor := c.args.text("cursor"); cursor != "" {
		var err error
		if start, err = strconv.Atoi(cursor); err != nil || start < 0 || start > len(list) {
			return nil, failure{code: "invalid_cursor"}
		}
	}
	end := min(len(list), start+min(c.args.number("limit", 100), c.s.opts.PageLimit))
	next := ""
	if end < len(list) {
		next = strconv.Itoa(end)
	}
	messages := copyMessages(list[start:end])
	if !c.args.flag("include_all_metadata") {
		for i := range messages {
			messages[i].Metadata = nil
		}
	}
	return reply{"messages": messages, "has_more": next != "", "response_metadata": reply{"next_cursor": next}}, nil
}
