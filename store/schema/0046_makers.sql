-- +goose Up

-- Who made a webhook, and who gave it its present URL: a user, or the owner of the API key that
-- did; '' for the operator, a service, and Doorward. NULL: a row of an older version, whose maker
-- is looked up in the trail below.
ALTER TABLE webhooks ADD COLUMN created_by TEXT;
ALTER TABLE webhooks ADD COLUMN url_by TEXT NOT NULL DEFAULT '';

UPDATE webhooks SET created_by = coalesce((SELECT coalesce(k.owner_id, e.actor_id) FROM events e LEFT JOIN api_keys k ON k.id = e.actor_id
  WHERE e.target_id = webhooks.id AND e.action = 'webhook.create' AND e.actor_type IN ('user', 'key') LIMIT 1), '')
WHERE id IN (SELECT id FROM webhooks WHERE created_by IS NULL ORDER BY id LIMIT 1000);
