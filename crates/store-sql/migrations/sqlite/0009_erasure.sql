-- By whom somebody who is erased is found.
CREATE INDEX broadcast_contacts_recipient_idx ON broadcast_contacts (tenant_id, kind, recipient);
CREATE INDEX invitations_phone_idx ON invitations (tenant_id, client_phone) WHERE client_phone IS NOT NULL;
CREATE INDEX invitations_email_idx ON invitations (tenant_id, client_email) WHERE client_email IS NOT NULL;
