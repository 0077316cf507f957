-- +goose Up

-- Who is in a directory's group, by the id that the person has as a User of SCIM.
CREATE TABLE directory_places (
    group_id  TEXT NOT NULL REFERENCES directory_groups (id) ON DELETE CASCADE,
    member_id TEXT NOT NULL,
    PRIMARY KEY (group_id, member_id)
);
CREATE INDEX directory_places_member ON directory_places (member_id);
