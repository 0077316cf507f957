-- +goose Up

-- What came from an address, in all trails: the operator looks for it after a theft.
CREATE INDEX events_of_ip ON events (ip, at, id);
