//! The tables of resources: their columns.

/// How a column shows what its field holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// As it is; lists joined by commas.
    Text,
    /// A moment to the second, in UTC.
    Time,
    /// US dollars.
    Money,
    /// `yes`, or nothing.
    Yes,
    /// `yes` or `no`.
    YesNo,
}

/// A column: its name, where its field is, and how it is shown. The place is a JSON pointer, in which `*` stands for the first name that leads
/// on; `|` separates places, of which the first that holds something counts.
pub(crate) type Column = (&'static str, &'static str, Form);

/// A kind of resource that is listed.
#[derive(Debug)]
pub(crate) struct Listed {
    /// Its path.
    pub(crate) path: &'static str,
    pub(crate) columns: &'static [Column],
    /// What to say when there is none.
    pub(crate) none: &'static str,
}

use Form::{Money, Text, Time, Yes, YesNo};

/// Messages.
pub(crate) const MESSAGES: Listed = Listed {
    path: "/v1/messages",
    columns: &[
        ("ID", "/id", Text),
        ("STATUS", "/status", Text),
        ("TO", "/to", Text),
        ("CHANNEL", "/channel", Text),
        ("CREATED (UTC)", "/createdAt", Time),
        ("COST", "/costTotal", Money),
        ("TEXT", "/text", Text),
    ],
    none: "no messages; `nuncio send TO TEXT` sends one",
};
/// Contacts.
pub(crate) const CONTACTS: Listed = Listed {
    path: "/v1/contacts",
    columns: &[
        ("ID", "/id", Text),
        ("NAME", "/displayName", Text),
        ("PHONE", "/primaryPhone", Text),
        ("EMAIL", "/primaryEmail", Text),
        ("CHANNELS", "/availableChannels", Text),
        ("CREATED (UTC)", "/createdAt", Time),
    ],
    none: "no contacts; the first message to or from a person creates one",
};
/// Broadcasts.
pub(crate) const BROADCASTS: Listed = Listed {
    path: "/v1/broadcasts",
    columns: &[
        ("ID", "/id", Text),
        ("STATUS", "/status", Text),
        ("CHANNEL", "/channel", Text),
        ("NAME", "/name", Text),
        ("RECIPIENTS", "/totalContacts", Text),
        ("DELIVERED", "/deliveredCount", Text),
        ("FAILED", "/failedCount", Text),
        ("COST", "/actualCost", Money),
    ],
    none: "no broadcasts; `nuncio broadcasts create` creates one",
};
/// Templates.
pub(crate) const TEMPLATES: Listed = Listed {
    path: "/v1/templates",
    columns: &[
        ("ID", "/id", Text),
        ("STATUS", "/status", Text),
        ("NAME", "/name", Text),
        ("LANGUAGE", "/language", Text),
        ("BODY", "/body", Text),
    ],
    none: "no templates; `nuncio templates create FILE` creates one",
};
/// Invitations.
pub(crate) const INVITATIONS: Listed = Listed {
    path: "/v1/invitations",
    columns: &[
        ("ID", "/id", Text),
        ("STATUS", "/status", Text),
        ("CLIENT", "/clientName", Text),
        ("LINK", "/url", Text),
        ("EXPIRES (UTC)", "/expiresAt", Time),
    ],
    none: "no invitations; `nuncio invitations create` creates one",
};
/// Suppressions.
pub(crate) const SUPPRESSIONS: Listed = Listed {
    path: "/v1/suppressions",
    columns: &[
        ("ID", "/id", Text),
        ("RECIPIENT", "/identifier", Text),
        ("CHANNEL", "/channel", Text),
        ("REASON", "/reason", Text),
        ("SINCE (UTC)", "/createdAt", Time),
    ],
    none: "no suppressions",
};
/// Deliveries of webhooks.
pub(crate) const DELIVERIES: Listed = Listed {
    path: "/v1/webhooks/deliveries",
    columns: &[
        ("ID", "/id", Text),
        ("STATUS", "/status", Text),
        ("EVENT", "/eventType", Text),
        ("URL", "/url", Text),
        ("UPDATED (UTC)", "/updatedAt", Time),
        ("RESOURCE", "/resourceId", Text),
    ],
    none: "no deliveries; `nuncio webhooks set URL` sets the URL for events",
};
/// Events.
pub(crate) const EVENTS: Listed = Listed {
    path: "/v1/events",
    columns: &[
        ("ID", "/id", Text),
        ("TYPE", "/type", Text),
        ("TIME (UTC)", "/timestamp", Time),
        ("RESOURCE", "/data/*/id", Text),
        ("SENDER", "/senderId", Text),
    ],
    none: "no events yet",
};

/// The original receipts of a message.
pub(crate) const RECEIPTS: Listed = Listed {
    path: "",
    columns: &[("RECEIVED (UTC)", "/receivedAt", Time), ("PROVIDER ID", "/providerMessageId", Text), ("RECEIPT", "/raw", Text)],
    none: "no receipts yet",
};
/// Recipients of a broadcast.
pub(crate) const RECIPIENTS: Listed = Listed {
    path: "",
    columns: &[
        ("ID", "/id", Text),
        ("STATUS", "/status", Text),
        ("RECIPIENT", "/recipient", Text),
        ("MESSAGE", "/messageId", Text),
        ("ERROR", "/errorCode", Text),
        ("COST", "/cost", Money),
    ],
    none: "no recipients; `nuncio broadcasts import` adds some",
};
/// Webhooks.
pub(crate) const WEBHOOKS: Listed = Listed {
    path: "/v1/webhook",
    columns: &[("SENDER", "/sender", Text), ("ACTIVE", "/active", YesNo), ("URL", "/url", Text), ("EVENTS", "/events", Text)],
    none: "no webhooks; `nuncio webhooks set URL` sets one",
};
/// The audit log.
pub(crate) const AUDIT_LOG: Listed = Listed {
    path: "/v1/audit-log",
    columns: &[
        ("TIME (UTC)", "/createdAt", Time),
        ("NAME", "/actor/name|/actor/id", Text),
        ("ACTION", "/action", Text),
        ("TYPE", "/resourceType", Text),
        ("RESOURCE", "/resourceId", Text),
        ("FROM", "/address", Text),
        ("ACTOR", "/actor/id", Text),
    ],
    none: "no changes",
};
/// API keys.
pub(crate) const KEYS: Listed = Listed {
    path: "/v1/keys",
    columns: &[
        ("ID", "/id", Text),
        ("NAME", "/name", Text),
        ("PERMISSIONS", "/permissions", Text),
        ("CREATED (UTC)", "/createdAt", Time),
        ("LAST USED (UTC)", "/lastUsedAt", Time),
        ("EXPIRES (UTC)", "/expiresAt", Time),
        ("REVOKED (UTC)", "/revokedAt", Time),
    ],
    none: "no keys; `nuncio keys create` creates one",
};
/// Senders.
pub(crate) const SENDERS: Listed = Listed {
    path: "/v1/senders",
    columns: &[
        ("ID", "/id", Text),
        ("NAME", "/name", Text),
        ("PHONE NUMBER", "/phoneNumber", Text),
        ("DEFAULT", "/isDefault", Yes),
        ("CHANNELS", "/channels", Text),
    ],
    none: "no senders; `nuncio senders create` creates one",
};
/// Connections.
pub(crate) const CONNECTIONS: Listed = Listed {
    path: "",
    columns: &[
        ("ID", "/id", Text),
        ("CHANNEL", "/channel", Text),
        ("KIND", "/kind", Text),
        ("SENDER", "/senderId", Text),
        ("STATE", "/health/state", Text),
        ("PROBLEM", "/health/reason", Text),
    ],
    none: "no connections; `nuncio connections set` sets one",
};
