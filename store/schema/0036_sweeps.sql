-- +goose Up

-- What a sweep deletes is found without reading the table, since others wait meanwhile.
CREATE INDEX devices_created ON devices (created_at);
CREATE INDEX devices_proved ON devices (second_at) WHERE second_at <> 0;
CREATE INDEX factors_unconfirmed ON factors (created_at) WHERE confirmed_at IS NULL;
