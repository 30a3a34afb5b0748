-- Words are folded in another way (vowel marks, invisible characters): all messages are indexed again,
-- in the background. Searches find everything meanwhile.

-- +goose Up
UPDATE sessions SET indexed_seq = -1 WHERE indexed_seq >= 0 AND NOT temporary;

-- +goose Down
UPDATE sessions SET indexed_seq = -1 WHERE indexed_seq >= 0 AND NOT temporary;
