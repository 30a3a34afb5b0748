-- Adds words to the index of the search in batches (the pending list of GIN): the loop indexes many
-- messages at once, and each word is written once for all of them.

-- +goose Up
-- Searches scan up to 64 kB of pending words; the insert that exceeds that moves them into the tree.
ALTER INDEX search_entries_words SET (fastupdate = on, gin_pending_list_limit = 64);

-- +goose Down
ALTER INDEX search_entries_words RESET (gin_pending_list_limit);
ALTER INDEX search_entries_words SET (fastupdate = off);
SELECT gin_clean_pending_list('search_entries_words');
