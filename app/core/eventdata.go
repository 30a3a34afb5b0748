package core

import "encoding/json"

// DecodeEventData returns the JSON data of an event of the type, from the database, the bus or
// the API, as the struct that events of the type have. Data of a type that this version does
// not know, or that do not fit the struct, stay as they are, as a json.RawMessage.
func DecodeEventData(kind EventType, raw json.RawMessage) any {
	switch kind {
	case EventRunQueued, EventMessageCreated, EventMessageUpdated:
		return decodeData[MessageData](raw)
	case EventRunStarted, EventRunWaiting, EventRunSucceeded, EventRunFailed, EventRunCanceled:
		return decodeData[RunData](raw)
	case EventMessageStarted:
		return decodeData[StartedData](raw)
	case EventMessageDelta, EventReasoningDelta, EventArgumentsDelta:
		return decodeData[DeltaData](raw)
	case EventMessageDiscarded:
		return decodeData[DiscardedData](raw)
	case EventMessagesImported:
		return decodeData[ImportedData](raw)
	case EventNodeStarted, EventNodeFinished:
		return decodeData[NodeData](raw)
	case EventToolStarted:
		return decodeData[ToolStartedData](raw)
	case EventToolFinished:
		return decodeData[ToolFinishedData](raw)
	case EventApprovalRequested, EventApprovalDecided:
		return decodeData[ApprovalData](raw)
	case EventContextStarted, EventContextCompleted, EventContextFailed, EventContextSkipped, EventContextWarning:
		return decodeData[ContextData](raw)
	case EventSessionUpdated:
		return decodeData[SessionData](raw)
	case EventSessionHead:
		if removed, ok := decodeData[RemovedHead](raw).(RemovedHead); ok && removed.Deleted {
			return removed
		}
		return decodeData[SessionHead](raw)
	case EventDeliveryUpdated:
		return decodeData[DeliveryData](raw)
	case EventResync:
		return nil
	default:
		return raw
	}
}

// decodeData returns a T, or the data themselves if they are not one.
func decodeData[T any](raw json.RawMessage) any {
	var data T
	if json.Unmarshal(raw, &data) != nil {
		return raw
	}
	return data
}
