-- For which prompts a version of a summary was made, and what it stands for: models with
-- larger windows use an older version, in which less is summarized. Since when one is made.

-- +goose Up
ALTER TABLE session_summaries ADD COLUMN made_for bigint NOT NULL DEFAULT 0;       -- trigger of the model that needed it, in cl100k_base tokens; 0 = it holds for every model
ALTER TABLE session_summaries ADD COLUMN tokens_covered bigint NOT NULL DEFAULT 0; -- of the messages that it covers; compared with other versions only
ALTER TABLE sessions ADD COLUMN summary_made_for bigint NOT NULL DEFAULT 0;        -- of the version in use
ALTER TABLE sessions ADD COLUMN summary_tokens_covered bigint NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN summary_lease_since timestamptz; -- when the summary that is being made began, by the database's clock

-- +goose Down
ALTER TABLE sessions DROP COLUMN summary_lease_since;
ALTER TABLE sessions DROP COLUMN summary_tokens_covered;
ALTER TABLE sessions DROP COLUMN summary_made_for;
ALTER TABLE session_summaries DROP COLUMN tokens_covered;
ALTER TABLE session_summaries DROP COLUMN made_for;
