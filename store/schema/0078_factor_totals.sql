-- +goose Up

-- How many second factors there are, for the metrics of all nodes: the count reads all factors, so one node makes it.
CREATE TABLE factor_totals (
    id       BIGINT PRIMARY KEY, -- 1
    apps     BIGINT NOT NULL,
    passkeys BIGINT NOT NULL,
    accounts BIGINT NOT NULL
);
