-- +goose Up

-- Of a connection of type saml, issuer is the entityID of its provider, and discovery what its metadata say.
-- Where those are read; '': they were given as a text.
ALTER TABLE connection_parameters ADD COLUMN metadata_url TEXT NOT NULL DEFAULT '';
-- The attribute with the subject; '': the NameID.
ALTER TABLE connection_parameters ADD COLUMN subject_from TEXT NOT NULL DEFAULT '';
-- Fingerprints of the provider's certificates that somebody has taken away by hand, words.
ALTER TABLE connection_parameters ADD COLUMN removed_certificates TEXT NOT NULL DEFAULT '';
-- When the last of the other ones ends; 0: it isn't known. And the mails sent about that.
ALTER TABLE connection_parameters ADD COLUMN certificates_until BIGINT NOT NULL DEFAULT 0;
ALTER TABLE connection_parameters ADD COLUMN certificate_notices BIGINT NOT NULL DEFAULT 0;
CREATE INDEX connection_parameters_certificates ON connection_parameters (certificates_until) WHERE certificates_until > 0 AND NOT pending;
