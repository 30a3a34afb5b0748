-- Words enter the index for the search in groups, each word once for many messages: it is
-- written by a loop that indexes many messages at once, not by turns.

-- +goose Up
-- Searches read up to 64 kB of words that are not in the tree yet; whoever adds more moves them.
ALTER INDEX search_entries_words SET (fastupdate = on, gin_pending_list_limit = 64);

-- +goose Down
ALTER INDEX search_entries_words RESET (gin_pending_list_limit);
ALTER INDEX search_entries_words SET (fastupdate = off);
